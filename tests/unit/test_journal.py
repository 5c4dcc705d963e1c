"""What is shown has been written; whatever the disk does, nothing shown is lost silently."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from straggler.engine import journal_file, session
from straggler.engine.compat import timeout
from straggler.engine.gather import NodeEnded, NodeNoise, NodeStarted
from straggler.engine.model import Observation, Status, Vantage
from straggler.engine.session import Journal, list_sessions, recover
from straggler.engine.statedir import private_dir, state_dir

META = {
    "target": {"kind": "demo", "title": "demo", "spec": {}},
    "symptom": "everything",
    "nodes": [{"id": "n1"}],
}
NOWHERE = Path("/proc/self/no-directory-can-be-made-here")


def observation(number: int, text: str = "cpu0 performance\n") -> Observation:
    return Observation("governor", f"n{number}", Vantage.HOST_ROOT, Status.OK, text=text)


@pytest.fixture(autouse=True)
def _own_fallbacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "tmp").mkdir(mode=0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def test_what_is_handed_on_is_already_in_the_file(tmp_path: Path) -> None:
    journal = Journal.create(META, tmp_path / "state")
    on_disk: list[bool] = []
    for number in range(200):
        marker = f"reading {number} of this test\n"
        journal.append(
            observation(number, marker),
            then=lambda marker=marker: on_disk.append(marker.encode()[:-1] in journal.path.read_bytes()),
        )
    assert on_disk == []
    await journal.drained()
    assert on_disk == [True] * 200
    journal.close()


async def test_a_session_reads_back_as_it_was_gathered(tmp_path: Path) -> None:
    events = [
        NodeStarted("n1", 1.0),
        NodeNoise("n1", "Welcome\x1b[2J \ud800 to n1"),
        observation(1),
        NodeEnded("n1", 2.0, "lost"),
    ]
    journal = Journal.create(META, tmp_path / "state")
    for event in events:
        journal.append(event)
    journal.append({"kind": "acknowledged", "finding": "xid.79"})
    health = journal.close()
    back = recover(health.path)
    assert health.saved
    assert health.why == ""
    assert back.ended
    assert back.torn == 0
    assert back.why == ""
    assert [type(event) for event in back.events] == [type(event) for event in events]
    assert list(back.events)[2] == events[2]
    assert back.records[-1].kind == "acknowledged"
    assert back.text("symptom") == "everything"
    assert [node.id for node in back.nodes] == ["n1"]


async def test_records_are_handed_on_in_order_and_a_listener_that_trips_stops_no_other(
    tmp_path: Path,
) -> None:
    loop, tripped = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: tripped.append(context["exception"]))
    journal, heard = Journal.create(META, tmp_path / "state"), []

    def hear(number: int) -> None:
        heard.append(number)
        if number == 3:
            raise ValueError("a pane tripped")

    for number in range(10):
        journal.append(observation(number), then=lambda number=number: hear(number))
    await journal.drained()
    journal.close()
    assert heard == list(range(10))
    assert len(tripped) == 1


@pytest.mark.parametrize("mask", [0o000, 0o777])
async def test_nobody_else_can_read_a_session_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        journal = Journal.create(META, tmp_path / "a" / "b" / "state")
        journal.append(observation(1))
        path = journal.close().path
    assert mode(path) == 0o600
    made = [one for one in path.parents if one.is_relative_to(tmp_path / "a")]
    assert [mode(one) & 0o077 for one in made] == [0] * len(made)
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


async def test_a_planted_link_in_place_of_the_sessions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "state" / "sessions").symlink_to(tmp_path / "theirs")
    journal = Journal.create(META, tmp_path / "state")
    journal.append(observation(1))
    health = journal.close()
    assert list((tmp_path / "theirs").iterdir()) == []
    assert health.saved
    assert health.path.is_relative_to(tmp_path / "run")


def test_a_directory_of_another_user_is_not_taken_for_ours(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    (tmp_path / "other").mkdir()
    os.chown(tmp_path / "other", 12345, 12345)
    with pytest.raises(PermissionError, match="another user"), private_dir(tmp_path / "other"):
        pass


def test_a_fallback_that_was_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match="open to other"), private_dir(tmp_path / "open", strict=True):
        pass


async def test_where_the_state_directory_takes_nothing_the_next_place_does_and_says_so(
    tmp_path: Path,
) -> None:
    journal = Journal.create(META, NOWHERE)
    heard: list[int] = []
    journal.append(observation(1), then=lambda: heard.append(1))
    await journal.drained()
    health = journal.health
    assert heard == [1]
    assert health.saved
    assert health.path.is_relative_to(tmp_path / "run")
    assert str(NOWHERE) in health.why
    assert "instead" in health.why
    journal.close()
    assert [one.path for one in list_sessions(NOWHERE)] == [health.path]
    assert list_sessions(tmp_path / "another") == []


async def test_where_no_place_takes_records_they_are_shown_and_said_to_be_unsaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "fallbacks", lambda: [NOWHERE / "either"])
    journal, heard = Journal.create(META, NOWHERE), []
    for number in range(3):
        journal.append(observation(number), then=lambda number=number: heard.append(number))
    await journal.drained()
    assert heard == [0, 1, 2]
    assert not journal.health.saved
    assert journal.health.unsaved == 3
    assert str(NOWHERE) in journal.health.why
    assert not journal.close().saved


async def test_a_place_that_works_again_gets_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "fallbacks", list)
    monkeypatch.setattr(session, "RETRY_SECONDS", 0.01)
    (tmp_path / "state").write_text("a file where the directory should be")
    journal = Journal.create(META, tmp_path / "state")
    journal.append(observation(1))
    await journal.drained()
    assert not journal.health.saved
    (tmp_path / "state").unlink()
    async with timeout(10):
        while not journal.health.saved or journal.health.unsaved:
            await asyncio.sleep(0.01)
    journal.append(observation(2))
    health = journal.close()
    assert health.saved
    assert [event.node for event in recover(health.path).events] == ["n1", "n2"]


async def test_memory_for_unsaved_records_is_bounded_and_what_is_lost_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "fallbacks", list)
    monkeypatch.setattr(session, "MEMORY_BYTES", 10_000)
    journal = Journal.create(META, NOWHERE)
    for number in range(50):
        journal.append(observation(number, "x" * 1_000))
    await journal.drained()
    assert journal.health.unsaved == 50
    assert sum(item.size for item in journal._kept) <= 10_000
    journal.close()


async def test_a_disk_that_hangs_stops_neither_the_screen_nor_the_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HANG_SECONDS", 0.1)
    monkeypatch.setattr(session, "CLOSE_SECONDS", 0.5)
    freed, real_write = threading.Event(), os.write
    journal = Journal.create(META, tmp_path / "state")
    first = journal.path

    def write(fd: int, data: memoryview) -> int:
        if os.readlink(f"/proc/self/fd/{fd}") == str(first):
            freed.wait(20)
        return real_write(fd, data)

    monkeypatch.setattr(journal_file.os, "write", write)
    heard: list[int] = []
    try:
        for number in range(5):
            journal.append(observation(number), then=lambda number=number: heard.append(number))
        async with timeout(10):
            await journal.drained()
        assert heard == list(range(5))
        health = journal.close()
        assert health.saved
        assert "does not answer" in health.why
        assert health.path.is_relative_to(tmp_path / "run")
        assert [event.node for event in recover(health.path).events] == [f"n{number}" for number in range(5)]
    finally:
        freed.set()


async def test_a_slow_disk_with_much_to_write_is_not_taken_for_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HANG_SECONDS", 0.2)
    monkeypatch.setattr(journal_file, "BATCH_RECORDS", 2)
    real_write = os.write

    def slow(fd: int, data: memoryview) -> int:
        time.sleep(0.02)
        return real_write(fd, data)

    journal = Journal.create(META, tmp_path / "state")
    monkeypatch.setattr(journal_file.os, "write", slow)
    for number in range(100):
        journal.append(observation(number))
    await journal.drained()
    health = journal.close()
    assert health.why == ""
    assert len(list(recover(health.path).events)) == 100


async def test_a_hang_in_the_middle_costs_no_record_of_either_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(META, tmp_path / "state")
    journal.append(observation(1))
    await journal.drained()
    real_write = os.write

    def full(fd: int, data: memoryview) -> int:
        if os.readlink(f"/proc/self/fd/{fd}").startswith(str(tmp_path / "state")):
            real_write(fd, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        return real_write(fd, data)

    monkeypatch.setattr(journal_file.os, "write", full)
    journal.append(observation(2))
    await journal.drained()
    health = journal.close()
    back = recover(health.path)
    assert "No space left" in health.why
    assert health.saved
    assert [event.node for event in back.events] == ["n1", "n2"]
    assert back.torn == 0
    assert back.ended


async def test_closing_hands_on_what_was_still_on_its_way(tmp_path: Path) -> None:
    journal, heard = Journal.create(META, tmp_path / "state"), []
    for number in range(500):
        journal.append(observation(number), then=lambda number=number: heard.append(number))
    journal.close()
    assert heard == list(range(500))
    journal.append(observation(1000), then=lambda: heard.append(1000))
    await journal.drained()
    assert heard[-1] == 1000
    assert not journal.health.saved


async def test_cancelling_a_wait_for_the_disk_loses_nothing(tmp_path: Path) -> None:
    journal, heard = Journal.create(META, tmp_path / "state"), []
    for number in range(100):
        journal.append(observation(number), then=lambda number=number: heard.append(number))
    waiting = asyncio.ensure_future(journal.drained())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(list(recover(journal.close().path).events)) == 100 == len(heard)


async def test_two_sessions_at_once_keep_apart(tmp_path: Path) -> None:
    journals = [Journal.create(META, tmp_path / "state") for _ in range(2)]
    for number in range(20):
        journals[number % 2].append(observation(number))
    paths = [journal.close().path for journal in journals]
    assert paths[0] != paths[1]
    read = [[event.node for event in recover(path).events] for path in paths]
    assert read == [[f"n{n}" for n in range(20) if n % 2 == which] for which in (0, 1)]


async def test_a_hundred_thousand_records_leave_no_trace_in_memory(tmp_path: Path) -> None:
    journal = Journal.create(META, tmp_path / "state")
    tracemalloc.start()
    try:
        for batch in range(100):
            for number in range(1_000):
                journal.append(observation(batch * 1_000 + number))
            await journal.drained()
        assert tracemalloc.get_traced_memory()[0] < 5 * 2**20
    finally:
        tracemalloc.stop()
    journal.close()
    [info] = list_sessions(tmp_path / "state")
    assert info.observations == 100_000
    assert info.ended == "clean"


CHILD = """
import asyncio, os, sys
from pathlib import Path
from straggler.engine.model import Observation, Status, Vantage
from straggler.engine.session import Journal

async def main():
    journal = Journal.create({"nodes": []}, Path(sys.argv[1]))
    number = 0
    while True:
        for _ in range(50):
            seen = Observation("governor", f"n{number}", Vantage.HOST_ROOT, Status.OK, text="x" * 3000)
            journal.append(seen, then=lambda number=number: os.write(1, b"%d\\n" % number))
            number += 1
        await journal.drained()
asyncio.run(main())
"""


def test_kill_minus_nine_costs_nothing_that_was_shown(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "state")], stdout=subprocess.PIPE)
    assert child.stdout is not None
    shown = [int(child.stdout.readline()) for _ in range(500)]
    [running] = list_sessions(tmp_path / "state")
    child.send_signal(signal.SIGKILL)
    shown += [int(line) for line in child.stdout.read().splitlines()]
    child.stdout.close()
    child.wait()
    [info] = list_sessions(tmp_path / "state")
    back = recover(info.path)
    assert running.ended == "running"
    assert info.ended == "killed"
    assert not back.ended
    assert [event.node for event in back.events][: len(shown)] == [f"n{number}" for number in shown]
    assert back.torn <= 1
    assert info.observations >= len(shown)


FULL = """
import asyncio, sys
from pathlib import Path
from straggler.engine.model import Observation, Status, Vantage
from straggler.engine.session import Journal, recover

async def main():
    journal, heard = Journal.create({"nodes": []}, Path(sys.argv[1])), []
    for number in range(400):
        seen = Observation("governor", f"n{number}", Vantage.HOST_ROOT, Status.OK, text="x" * 3000)
        journal.append(seen, then=lambda number=number: heard.append(number))
        if number % 10 == 0:
            await journal.drained()
    await journal.drained()
    health = journal.close()
    back = recover(health.path)
    nodes = [event.node for event in back.events]
    assert heard == list(range(400)), heard
    assert nodes == [f"n{n}" for n in range(400)], (len(nodes), nodes[:3])
    assert health.saved and back.ended and back.torn == 0, (health, back.why)
    assert not health.path.is_relative_to(sys.argv[1])
    print(health.why)
asyncio.run(main())
"""


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.parametrize(("options", "why"), [("size=256k", "No space left"), ("size=1m,ro", "Read-only")])
def test_a_real_full_or_read_only_disk_costs_nothing(tmp_path: Path, options: str, why: str) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "full.py").write_text(FULL)
    mount = f"mount --make-rprivate / && mount -t tmpfs -o {options} tmpfs {tmp_path}/small || exit 99"
    inside = f"{mount}; exec {sys.executable} {tmp_path}/full.py {tmp_path}/small/state"
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run"), "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside], env=env, capture_output=True, text=True, timeout=60
    )
    if done.returncode == 99:
        pytest.skip(f"no mount here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert why in done.stdout


def test_the_state_directory_is_the_platforms_unless_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_dir() == tmp_path / "straggler"
    assert state_dir(tmp_path / "x") == tmp_path / "x"
