"""Who a node is: what it says of itself, whole or not at all, and what it could not say is not made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.collectors import identity
from straggler.engine.collectors.identity import Identity
from straggler.engine.model import Status, Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.fake_tools import FakeTools
from tests.support.own_root import own_root

SHELLS = ["/usr/bin/dash", "/bin/busybox sh", "/bin/bash"]
SIMULATED = SAYS["identity"](SimNode("w-1", 1)).text
BARE = "hostname h\nkernel 6.1\nuptime 10\nclock 100\n"
CURL = """
case "$*" in
*api/token*) echo TOKEN== ;;
*instance-type*) echo ml.p5.48xlarge ;;
*availability-zone*) case "$*" in *-f*) exit 22 ;; *) printf '<html>\\n<h1>404</h1>\\n</html>\\n' ;; esac ;;
esac"""
PCI = {
    "0000:f0:00.0": ("0x10de", "0x030200"),
    "0000:f1:00.0": ("0x10de", "0x068000"),
    "0000:f2:00.0": ("0x1d0f", "0x088000"),
    "0000:f3:00.0": ("0x1d0f", "0x020000"),
}
"""An H100, an NVSwitch, a Neuron device and an Amazon network card."""


def read(text: str) -> Identity:
    facts = identity.COLLECTOR.read(text)
    assert isinstance(facts, Identity), facts
    return facts


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("p5.48xlarge", "p5.48xlarge"),
        ("ml.p5.48xlarge", "p5.48xlarge"),
        ("p6-b200.48xlarge", "p6-b200.48xlarge"),
        ("Standard PC (Q35 + ICH9, 2009)", None),
        ("-", None),
        ("HVM domU", None),
    ],
)
def test_only_what_looks_like_an_instance_type_is_one(said: str, kind: str | None) -> None:
    assert read(f"{BARE}instance_type {said}\nend\n").instance_type == kind


def test_a_hidden_pci_bus_is_not_a_bus_without_gpus() -> None:
    assert read(f"{BARE}pci_gpus -\npci_neuron -\nend\n").pci_gpus is None
    assert read(f"{BARE}pci_gpus 0\npci_neuron 0\nend\n").pci_gpus == 0


@pytest.mark.parametrize("gone", ["hostname", "kernel", "uptime", "clock"])
def test_a_reply_without_one_of_its_lines_is_unread(gone: str) -> None:
    left = "".join(line for line in SIMULATED.splitlines(keepends=True) if not line.startswith(gone))
    assert isinstance(identity.COLLECTOR.read(left), Unread)


@given(st.text())
def test_any_text_is_facts_or_a_reason_and_never_trips(text: str) -> None:
    for one in (
        text,
        f"{BARE}{text}\nend\n",
        f"{BARE}pci_gpus {text}\ninstance_type {text}\naz {text}\nend\n",
    ):
        assert isinstance(identity.COLLECTOR.read(one), Identity | Unread)


@given(
    st.integers(0, 9), st.sampled_from(["Last login: Mon", "*** for staff only ***", "", "hostname other"])
)
def test_a_banner_anywhere_makes_the_reply_unread(at: int, banner: str) -> None:
    lines = SIMULATED.splitlines()
    lines.insert(at, banner)
    assert isinstance(identity.COLLECTOR.read("\n".join(lines) + "\n"), Unread)


def test_a_reply_cut_anywhere_is_unread() -> None:
    cuts = range(len(SIMULATED) - 1)
    assert all(isinstance(identity.COLLECTOR.read(SIMULATED[:at]), Unread) for at in cuts)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_real_snippet_says_the_lines_that_a_simulated_node_says(tmp_path: Path, shell: str) -> None:
    tools = FakeTools(tmp_path)
    tools.script("curl", "exit 7")
    block = tools.run(identity.COLLECTOR, shell=shell)
    assert block.status is Status.OK, (block.why, block.errors)
    assert read(block.text).uptime > 0
    assert [one.split()[0] for one in block.text.splitlines()] == [
        one.split()[0] for one in SIMULATED.splitlines()
    ]


def test_an_answer_that_is_an_error_page_costs_that_answer_only(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    tools.script("curl", CURL)
    facts = read(tools.run(identity.COLLECTOR).text)
    assert (facts.instance_type, facts.az) == ("p5.48xlarge", None)


@pytest.mark.real
@pytest.mark.parametrize("shell", SHELLS)
def test_gpus_and_neuron_devices_are_counted_by_vendor_and_class(tmp_path: Path, shell: str) -> None:
    made = tmp_path / "pci"
    for address, (vendor, kind) in PCI.items():
        (made / address).mkdir(parents=True)
        (made / address / "vendor").write_text(vendor + "\n")
        (made / address / "class").write_text(kind + "\n")
    node = own_root(tmp_path, {}, [f"mount --bind {made} /sys/bus/pci/devices"], shell=shell)
    facts = read(FakeTools(tmp_path / "bin").run(identity.COLLECTOR, shell=node, hide=["curl"]).text)
    assert (facts.pci_gpus, facts.pci_neuron) == (1, 1)


@pytest.mark.real
def test_a_container_without_sys_hides_its_bus_and_is_still_known(tmp_path: Path) -> None:
    node = own_root(tmp_path, {}, ["mount -t tmpfs none /sys"])
    facts = read(FakeTools(tmp_path / "bin").run(identity.COLLECTOR, shell=node, hide=["curl"]).text)
    assert (facts.pci_gpus, facts.pci_neuron, facts.instance_type) == (None, None, None)
    assert facts.hostname
