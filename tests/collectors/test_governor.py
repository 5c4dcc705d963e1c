"""Every CPU's governor, not the first one's; a list that is not whole is no list."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.collectors import governor
from straggler.engine.collectors.governor import Governors
from straggler.engine.model import Status, Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.fake_tools import FakeTools
from tests.support.own_root import own_root

SHELLS = ["/usr/bin/dash", "/bin/busybox sh", "/bin/bash"]
SIMULATED = SAYS["governor"](SimNode("w-1", 1, "t3.large")).text


def read(text: str) -> Governors:
    facts = governor.COLLECTOR.read(text)
    assert isinstance(facts, Governors), facts
    return facts


def test_a_hidden_governor_is_not_compared_with_its_peers() -> None:
    assert governor.fields(read("cpu0 performance\ncpu1 ?\nend\n"))["CPU governor"] is None
    assert governor.fields(read("cpu0 performance\ncpu1 powersave\nend\n")) == {
        "CPUs": "2",
        "CPU governor": "performance/powersave",
    }


@pytest.mark.parametrize(
    "text", ["", "end\n", "cpu0 performance\n", "cpu0 -\ncpu0 -\nend\n", "cpu[0-9]* -\nend\n"]
)
def test_what_is_no_whole_list_is_unread(text: str) -> None:
    assert isinstance(governor.COLLECTOR.read(text), Unread)


@given(st.text())
def test_any_text_is_facts_or_a_reason_and_never_trips(text: str) -> None:
    for one in (text, f"cpu0 {text}\nend\n", f"cpu0 -\n{text}\nend\n"):
        assert isinstance(governor.COLLECTOR.read(one), Governors | Unread)


@given(st.integers(0, 2), st.sampled_from(["Last login: Mon", "*** for staff only ***", "", "end"]))
def test_a_banner_anywhere_makes_the_reply_unread(at: int, banner: str) -> None:
    lines = SIMULATED.splitlines()
    lines.insert(at, banner)
    assert isinstance(governor.COLLECTOR.read("\n".join(lines) + "\n"), Unread)


def test_a_reply_cut_anywhere_is_unread() -> None:
    cuts = range(len(SIMULATED) - 1)
    assert all(isinstance(governor.COLLECTOR.read(SIMULATED[:at]), Unread) for at in cuts)


@pytest.mark.real
@pytest.mark.parametrize("shell", SHELLS)
def test_the_real_snippet_tells_none_from_hidden_on_every_cpu(tmp_path: Path, shell: str) -> None:
    made = tmp_path / "cpu"
    for at, word in ((0, "performance\n"), (1, "powersave\n"), (2, ""), (10, None)):
        home = made / f"cpu{at}" / "cpufreq"
        home.mkdir(parents=True)
        if word is not None:
            (home / "scaling_governor").write_text(word)
    (made / "cpufreq").mkdir()
    node = own_root(tmp_path, {}, [f"mount --bind {made} /sys/devices/system/cpu"], shell=shell)
    block = FakeTools(tmp_path / "bin").run(governor.COLLECTOR, shell=node)
    assert block.status is Status.OK, (block.why, block.errors)
    assert read(block.text).by_cpu == {"cpu0": "performance", "cpu1": "powersave", "cpu2": "?", "cpu10": "-"}


@pytest.mark.real
def test_a_container_without_sys_says_so(tmp_path: Path) -> None:
    node = own_root(tmp_path, {}, ["mount -t tmpfs none /sys"])
    block = FakeTools(tmp_path / "bin").run(governor.COLLECTOR, shell=node)
    assert (block.status, block.why) == (Status.NOT_APPLICABLE, "this kernel shows no CPUs in /sys")
