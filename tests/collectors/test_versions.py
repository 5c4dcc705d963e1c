"""Versions come from files and package names of both kinds of distribution; none there and not readable are two things."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.collectors import versions
from straggler.engine.collectors.versions import Versions
from straggler.engine.model import Status, Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.fake_tools import FakeTools, Said
from tests.support.own_root import own_root

KEYS = (
    "driver",
    "cuda",
    "efa_installer",
    "libfabric",
    "ofi",
    "efa_module",
    "nccl",
    "container_toolkit",
    "os",
)


def reply(**said: str) -> str:
    return "".join(f"{key} {said.get(key, '-')}\n" for key in KEYS) + "end .\n"


def read(text: str) -> Versions:
    facts = versions.COLLECTOR.read(text)
    assert isinstance(facts, Versions), facts
    return facts


@pytest.mark.parametrize(
    ("key", "field", "line", "version"),
    [
        ("driver", "driver", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12", "535.183.01"),
        ("cuda", "cuda", 'CUDA Version 11.8.0', "11.8.0"),
        ("cuda", "cuda", '"version" : "12.8.1"', "12.8.1"),
        ("efa_installer", "efa_installer", "# EFA installer version: 1.43.2", "1.43.2"),
        ("libfabric", "libfabric", "libfabric-aws-2.1.0amzn5.0-1.amzn2023.x86_64", "2.1.0amzn5.0"),
        ("libfabric", "libfabric", "libfabric1-aws_2.1.0amzn5.0_amd64", "2.1.0amzn5.0"),
        ("ofi", "ofi_plugin", "libnccl-ofi-1.16.2-1.amzn2023.x86_64", "1.16.2"),
        ("ofi", "ofi_plugin", "libnccl-ofi-ubuntu_1.16.2-1_amd64", "1.16.2"),
        ("nccl", "nccl", "libnccl.so.2.26.5", "2.26.5"),
        ("container_toolkit", "container_toolkit", "1.17.8-1", "1.17.8"),
    ],
)  # fmt: skip
def test_a_version_is_read_in_both_spellings_of_distributions(
    key: str, field: str, line: str, version: str
) -> None:
    assert getattr(read(reply(**{key: line})), field) == version


def test_the_open_kernel_module_is_told_from_the_proprietary_one() -> None:
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build"
    shown = versions.fields(read(reply(driver=line)))
    assert shown["NVIDIA kernel module"] == "open"
    assert versions.fields(read(reply()))["NVIDIA kernel module"] == "none"


def test_none_there_and_not_readable_are_different_facts() -> None:
    shown = versions.fields(read(reply(efa_installer="?", cuda="nothing like a version")))
    assert (shown["EFA installer"], shown["CUDA"], shown["libfabric"]) == (None, None, "none")


@given(st.text())
def test_any_text_is_facts_or_a_reason_and_never_trips(text: str) -> None:
    versions.COLLECTOR.read(text)
    versions.COLLECTOR.read(reply(driver=text, cuda=text))


@given(st.sampled_from(range(10)), st.text(min_size=1).filter(lambda one: one.strip()))
def test_a_banner_between_the_lines_makes_the_reply_unread(at: int, banner: str) -> None:
    lines = reply().splitlines(keepends=True)
    assert isinstance(versions.COLLECTOR.read("".join([*lines[:at], banner + "\n", *lines[at:]])), Unread)


def test_a_reply_cut_anywhere_is_unread() -> None:
    text = SAYS["versions"](SimNode("w-1", 1)).text
    assert all(isinstance(versions.COLLECTOR.read(text[:at]), Unread) for at in range(len(text)))


@pytest.mark.parametrize("filler", ["1", "1.", "a", " "])
def test_a_hostile_flood_is_read_in_no_time(filler: str) -> None:
    begun = time.process_time()
    flood = filler * 200_000
    versions.COLLECTOR.read(reply(driver=flood, cuda=flood, efa_installer=flood))
    assert time.process_time() - begun < 2


MANIFEST = """# EFA installer version: 1.43.2
# Debug packages installed: no
# Packages installed:
efa-config_1.18_all efa_2.17.2-1.amzn1_amd64 libfabric1-aws_2.1.0amzn5.0_amd64 libnccl-ofi_1.16.2-1_amd64
"""
NODE = {
    "/opt/amazon/efa_installed_packages": MANIFEST,
    "/usr/local/cuda/version.json": '{\n   "cuda" : {\n      "name" : "CUDA SDK",\n      "version" : "12.8.1"\n   }\n}',
    "/usr/local/lib/libnccl.so.2.26.5": "",
    "/sys/module/efa/version": "2.17.2g",
}


@pytest.mark.real
@pytest.mark.parametrize("shell", ["/usr/bin/dash", "/bin/busybox sh"])
def test_the_real_snippet_finds_the_stack_of_a_node(tmp_path: Path, shell: str) -> None:
    tools = FakeTools(tmp_path / "bin")
    tools.tool("dpkg-query", {("-W", "-f", "${Version} ", "nvidia-container-toolkit"): "1.17.8-1 "})
    block = tools.run(versions.COLLECTOR, shell=own_root(tmp_path, NODE, shell=shell))
    assert block.status is Status.OK, (block.why, block.errors)
    facts = read(block.text)
    assert (facts.cuda, facts.efa_installer, facts.libfabric) == ("12.8.1", "1.43.2", "2.1.0amzn5.0")
    assert (facts.ofi_plugin, facts.nccl, facts.container_toolkit) == ("1.16.2", "2.26.5", "1.17.8")
    assert (facts.driver, facts.efa_module) == ("", "2.17.2g")


def test_a_package_that_rpm_does_not_know_is_none_and_spoils_nothing(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path / "bin")
    query = ("-q", "--qf", "%{VERSION} ", "nvidia-container-toolkit")
    tools.tool("rpm", {query: Said("package nvidia-container-toolkit is not installed\n", code=1)})
    facts = read(tools.run(versions.COLLECTOR, hide=("dpkg-query",)).text)
    assert facts.container_toolkit == ""
