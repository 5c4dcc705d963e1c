"""A journal reads back as far as it is whole: junk is counted, never believed and never fatal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from straggler.engine.errors import UsageError
from straggler.engine.gather import NodeEnded, NodeStarted
from straggler.engine.model import Observation, Status, Vantage
from straggler.engine.records import decode, encode
from straggler.engine.session import Journal, list_sessions, recover
from straggler.engine.targets.replay import Replay, replay, replay_session, replay_target

META = {
    "kind": "meta",
    "target": {"kind": "hosts", "title": "two hosts", "spec": {"hosts": "n[1-2]"}},
    "started": 5.0,
}


def observation(number: int) -> Observation:
    return Observation(
        "governor", f"n{number}", Vantage.HOST_ROOT, Status.OK, text="cpu0 performance\nend\n", exit_code=0
    )


def lines(count: int = 5) -> list[bytes]:
    return [encode(META, 1.0, 0, 0), *(encode(observation(n), 1.0 + n, n, n) for n in range(1, count + 1))]


def written(path: Path, data: bytes) -> Path:
    file = path / "sessions" / "20261130T031200Z-abc123" / "journal.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def nodes(path: Path) -> list[str]:
    return [event.node for event in recover(path).events]


def test_a_torn_last_line_costs_that_line_only(tmp_path: Path) -> None:
    file = written(tmp_path, b"".join(lines())[:-30])
    back = recover(file)
    assert nodes(file) == ["n1", "n2", "n3", "n4"]
    assert back.torn == 1
    assert "1 damaged line" in back.why
    assert not back.ended


def test_every_place_a_write_can_break_off_leaves_the_whole_lines(tmp_path: Path) -> None:
    data = b"".join(lines(3))
    for length in range(0, len(data), 7):
        back = recover(written(tmp_path, data[:length]))
        assert len(back.records) + bool(back.meta) == data[:length].count(b"\n")


def test_a_line_altered_by_one_letter_is_not_believed(tmp_path: Path) -> None:
    every = lines()
    every[2] = every[2].replace(b"performance", b"powersave__")
    back = recover(written(tmp_path, b"".join(every)))
    assert [event.node for event in back.events] == ["n1", "n3", "n4", "n5"]
    assert back.torn == 1


def test_a_line_taken_out_whole_is_missed(tmp_path: Path) -> None:
    every = lines()
    del every[3]
    back = recover(written(tmp_path, b"".join(every)))
    assert back.torn == 1
    assert "1 record missing" in back.why


def test_without_its_first_line_a_session_still_opens(tmp_path: Path) -> None:
    back = recover(written(tmp_path, b"junk\n" + b"".join(lines()[1:])))
    assert back.meta == {}
    assert "first line" in back.why
    assert [node.id for node in back.nodes] == ["n1", "n2", "n3", "n4", "n5"]


def test_records_of_a_newer_version_are_kept_and_not_judged(tmp_path: Path) -> None:
    newer = encode({"kind": "hologram", "x": [1]}, 9.0, 6, 5)
    changed = encode(observation(7), 9.5, 7, 6)
    changed = changed[: changed.rindex(b',"crc"')].replace(b'"status":"ok"', b'"status":"psychic"')
    import zlib

    changed += b',"crc":"%08x"}\n' % zlib.crc32(changed)
    back = recover(written(tmp_path, b"".join([*lines(), newer, changed])))
    assert back.torn == 0
    assert [entry.kind for entry in back.records[-2:]] == ["hologram", "observation"]
    assert len(list(back.events)) == 5


@given(st.binary(max_size=300), st.integers(0, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_junk_between_the_lines_is_counted_and_costs_nothing_else(
    tmp_path: Path, junk: bytes, at: int
) -> None:
    every = lines()
    every.insert(at + 1, junk.replace(b"\n", b"") + b"!\n")
    file = written(tmp_path, b"".join(every))
    assert nodes(file) == ["n1", "n2", "n3", "n4", "n5"]
    assert recover(file).torn == 1
    assert list_sessions(tmp_path)


@given(st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
def test_nothing_in_a_file_makes_reading_it_fail(tmp_path: Path, data: bytes) -> None:
    file = written(tmp_path, data)
    recover(file)
    list_sessions(tmp_path)
    decode(data)


def test_what_is_no_file_says_why(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("absent", "pipe", "link"):
        back = recover(tmp_path / name)
        assert back.records == ()
        assert "cannot be read" in back.why


def test_a_file_that_names_itself_as_its_beginning_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "x" / "journal.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(encode({**META, "continues": str(path)}, 1.0, 0, 0) + lines()[1])
    assert nodes(path) == ["n1"]


async def test_the_list_tells_a_session_from_its_first_and_last_line(tmp_path: Path) -> None:
    target = {"kind": "hosts", "title": "two hosts", "spec": {}}
    journal = Journal.create(
        {"target": target, "nodes": [{"id": "n1"}, {"id": "n2"}], "symptom": "gpu-errors"}, tmp_path
    )
    for number in range(30):
        journal.append(observation(number))
    journal.append(NodeEnded("n1", 3.0))
    await journal.drained()
    [running] = list_sessions(tmp_path)
    journal.close()
    [clean] = list_sessions(tmp_path)
    with clean.path.open("rb+") as file:
        file.truncate(clean.size - 5)
    [killed] = list_sessions(tmp_path)
    assert [running.ended, clean.ended] == ["running", "clean"]
    assert killed.ended == "running", "its process is this one, and alive"
    for info in (running, clean, killed):
        assert (info.title, info.kind, info.symptom, info.nodes) == ("two hosts", "hosts", "gpu-errors", 2)
        assert info.observations == 30


def test_a_session_of_a_process_that_is_gone_was_killed(tmp_path: Path) -> None:
    written(tmp_path, b"".join(lines()))
    [info] = list_sessions(tmp_path)
    assert info.ended == "killed"
    assert info.observations == 5
    assert info.started == 5.0


def test_a_list_of_no_sessions_is_empty(tmp_path: Path) -> None:
    assert list_sessions(tmp_path / "absent") == []
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "stray").write_text("no session")
    (tmp_path / "sessions" / "empty").mkdir()
    assert list_sessions(tmp_path) == []


async def test_a_replay_gives_the_events_in_order(tmp_path: Path) -> None:
    written(tmp_path, b"".join([*lines(), encode({"kind": "note"}, 9.0, 6, 5)]))
    recovered = replay_session("20261130T0312", tmp_path)
    assert [event.node async for event in replay(recovered)] == ["n1", "n2", "n3", "n4", "n5"]
    assert [event.node async for event in Replay(recovered, speed=1_000.0).events()] == [
        "n1",
        "n2",
        "n3",
        "n4",
        "n5",
    ]
    target = replay_target(recovered)
    assert (target.kind, target.title, target.spec) == ("replay", "two hosts", {"hosts": "n[1-2]"})


async def test_a_replay_with_speed_keeps_the_recorded_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("straggler.engine.targets.replay.asyncio.sleep", sleep)
    times = [10.0, 10.5, 11.5, 4_000.0]
    every = [encode(NodeStarted(f"n{at}", at), at, n, 0) for n, at in enumerate(times, 1)]
    recovered = recover(written(tmp_path, b"".join([lines()[0], *every])))
    assert len([event async for event in replay(recovered, speed=2.0)]) == 4
    assert [seconds for seconds in waited if seconds] == [0.25, 0.5, 2.0]


def test_an_unknown_session_is_one_line_that_names_the_newest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are none yet"):
        replay_session("nope", tmp_path)
    written(tmp_path, b"".join(lines()))
    with pytest.raises(UsageError, match="20261130T031200Z-abc123"):
        replay_session("nope", tmp_path)
    (tmp_path / "notes.txt").write_text("shopping list\n")
    with pytest.raises(UsageError, match="no journal"):
        replay_session(tmp_path / "notes.txt", tmp_path)
