"""An acknowledged finding stays quiet until its time is over or it changes."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from straggler.engine.acknowledge import FILE, Acks
from straggler.engine.model import Finding, Level, Priority

NOW = 1_796_083_200.0
FINDING = Finding(
    id="xid.79", level=Level.FAIL, priority=Priority.P0, title="a GPU has fallen off the bus", subjects=("n1", "n2"),
    details=(), evidence=(), confidence=0.95, why="", false_alarm="", next_step="", reference="remedies/gpu.md#xid-79",
    route="", rule="xid",
)  # fmt: skip


def test_it_stays_quiet_until_its_time_is_over(tmp_path: Path) -> None:
    acks = Acks.load(tmp_path).acknowledge(FINDING, until=NOW + 3600, note="ticket 17", who="bob", now=NOW)
    assert acks.trouble == ""
    for known in (acks, Acks.load(tmp_path)):
        assert known.is_acknowledged(FINDING, NOW + 3599)
        assert not known.is_acknowledged(FINDING, NOW + 3600)
        assert (ack := known.of(FINDING, NOW))
        assert (ack.who, ack.note) == ("bob", "ticket 17")


@pytest.mark.parametrize(
    "changed",
    [
        replace(FINDING, subjects=("n1", "n2", "n3")),
        replace(FINDING, level=Level.WARN),
        replace(FINDING, title="two GPUs have fallen off the bus"),
        replace(FINDING, id="xid.48"),
    ],
)
def test_it_comes_back_when_it_changes(tmp_path: Path, changed: Finding) -> None:
    acks = Acks.load(tmp_path).acknowledge(FINDING, until=NOW + 3600, now=NOW)
    assert not acks.is_acknowledged(changed, NOW)


def test_the_order_of_its_nodes_and_fresh_evidence_are_no_change(tmp_path: Path) -> None:
    acks = Acks.load(tmp_path).acknowledge(FINDING, until=NOW + 3600, now=NOW)
    assert acks.is_acknowledged(replace(FINDING, subjects=("n2", "n1"), confidence=0.8), NOW)


def test_it_can_be_withdrawn_and_what_ran_out_is_dropped_from_the_file(tmp_path: Path) -> None:
    other = replace(FINDING, id="xid.48")
    Acks.load(tmp_path).acknowledge(FINDING, until=NOW + 10, now=NOW)
    acks = Acks.load(tmp_path).acknowledge(other, until=NOW + 100, now=NOW + 50)
    assert len(acks.by_fingerprint) == 1
    assert not acks.withdraw(other).is_acknowledged(other, NOW + 50)
    assert not Acks.load(tmp_path).is_acknowledged(other, NOW + 50)


def test_two_sessions_do_not_undo_each_other(tmp_path: Path) -> None:
    other = replace(FINDING, id="xid.48")
    mine, theirs = Acks.load(tmp_path), Acks.load(tmp_path)
    theirs.acknowledge(other, until=NOW + 100, now=NOW)
    mine.acknowledge(FINDING, until=NOW + 100, now=NOW)
    both = Acks.load(tmp_path)
    assert both.is_acknowledged(FINDING, NOW)
    assert both.is_acknowledged(other, NOW)


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"\xff\x00", b'{"schema":1}', b"[" * 100_000, b'{"schema":1,"acknowledged":[3]}']
)
def test_a_damaged_file_is_set_aside_and_said(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / FILE).write_bytes(junk)
    acks = Acks.load(tmp_path)
    assert "damaged" in acks.trouble
    assert not acks.is_acknowledged(FINDING, NOW)
    [aside] = tmp_path.iterdir()
    assert aside.read_bytes() == junk
    assert aside.name.startswith(f"{FILE}.damaged-")
    assert Acks.load(tmp_path).trouble == ""


def test_where_it_cannot_be_saved_it_holds_for_this_run_and_says_so() -> None:
    acks = Acks.load(Path("/proc/self/nowhere")).acknowledge(FINDING, until=NOW + 100, now=NOW)
    assert "this run only" in acks.trouble
    assert acks.is_acknowledged(FINDING, NOW)


def test_the_file_is_private_and_keeps_no_secret(tmp_path: Path) -> None:
    Acks.load(tmp_path / "state").acknowledge(FINDING, until=NOW + 100, note="password=hunter2!", now=NOW)
    file = tmp_path / "state" / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert "hunter2" not in file.read_text()
    assert [one.name for one in file.parent.iterdir()] == [FILE]
