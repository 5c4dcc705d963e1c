"""Two samples of /proc/stat become shares of the time between them, over all CPUs and on the worst."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.collectors import cpu_load
from straggler.engine.collectors.cpu_load import CpuLoad
from straggler.engine.model import Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.fake_tools import FakeTools

ZERO = "0 0 0 0 0 0 0 0 0 0"


def reply(*after: str, before: str = ZERO) -> str:
    """`after`: the counters of cpu, cpu0, cpu1, ... at the second sample; the first stands at `before` for all."""
    names = ["cpu", *(f"cpu{at}" for at in range(len(after) - 1))]
    first = "".join(f"{name} {before}\n" for name in names)
    second = "".join(f"{name} {one}\n" for name, one in zip(names, after, strict=True))
    return f"first\n{first}second\n{second}end\n"


def read(text: str) -> CpuLoad:
    facts = cpu_load.COLLECTOR.read(text)
    assert isinstance(facts, CpuLoad), facts
    return facts


def test_shares_are_of_the_sample_and_not_since_boot() -> None:
    facts = read(
        reply(
            "1100 0 0 1000 50 0 0 50 0 0", "1100 0 0 1000 50 0 0 50 0 0", before="1000 0 0 1000 0 0 0 0 0 0"
        )
    )
    assert (facts.all.iowait, facts.all.steal, facts.cpus) == (25.0, 25.0, 1)


def test_the_one_cpu_that_waits_is_named() -> None:
    facts = read(reply("190 0 0 0 10 0 0 0 0 0", "100 0 0 0 0 0 0 0 0 0", "90 0 0 0 10 0 0 0 0 0"))
    assert facts.all.iowait == 5.0
    assert (facts.worst_iowait.name, facts.worst_iowait.iowait) == ("cpu1", 10.0)


def test_iowait_that_runs_backwards_is_none_rather_than_less_than_none() -> None:
    text = reply("200 0 0 0 90 0 0 0 0 0", "200 0 0 0 90 0 0 0 0 0", before="100 0 0 0 100 0 0 0 0 0")
    assert read(text).all.iowait == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "first\nsecond\nend\n",
        reply(ZERO, ZERO),
        reply("1 2 3", "1 2 3", before="1 2 3"),
        reply("9 0 0 0 0 0 0 0 0 0", "9 0 0 0 0 0 0 0 0 0").replace("second\ncpu 9", "second\ncpu7 9"),
    ],
    ids=["nothing-came", "no-cpu", "counters-stood-still", "a-short-line", "other-cpus-in-the-second-sample"],
)
def test_what_is_no_two_samples_of_the_same_cpus_is_unread(text: str) -> None:
    assert isinstance(cpu_load.COLLECTOR.read(text), Unread)


@given(st.text())
def test_any_text_is_facts_or_a_reason_and_never_trips(text: str) -> None:
    cpu_load.COLLECTOR.read(text)
    cpu_load.COLLECTOR.read(reply(text, ZERO))


@given(st.text(min_size=1).filter(lambda one: one.strip()))
def test_a_banner_between_the_lines_makes_the_reply_unread(banner: str) -> None:
    text = reply("9 0 0 0 0 0 0 0 0 0", "9 0 0 0 0 0 0 0 0 0").replace("\ncpu0", f"\n{banner}\ncpu0", 1)
    assert isinstance(cpu_load.COLLECTOR.read(text), Unread)


def test_a_reply_cut_anywhere_is_unread() -> None:
    text = SAYS["cpu-load"](SimNode("w-1", 1, "m5.xlarge")).text
    assert all(isinstance(cpu_load.COLLECTOR.read(text[:at]), Unread) for at in range(len(text) - 1))


@pytest.mark.parametrize("shell", ["dash", "/bin/busybox sh"])
def test_the_real_snippet_samples_this_machine(tmp_path: Path, shell: str) -> None:
    facts = read(FakeTools(tmp_path / "bin").run(cpu_load.COLLECTOR, shell=shell).text)
    assert facts.cpus >= 1
    assert 0 <= facts.all.iowait <= 100
