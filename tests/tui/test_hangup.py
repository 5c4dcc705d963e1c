"""The terminal goes away: the program ends by itself, its session whole, and nothing waits for a screen that is gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from straggler.engine.recovery import list_sessions
from straggler.tui.terminal_driver import Forgiving

PATIENCE = 60.0


def spawn(state: Path, *words: str) -> tuple[int, int]:
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - the child
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            os.environ.pop(name, None)
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", HOME=str(state))
        args = ["-m", "straggler.tui", *words, "--state-dir", str(state)]
        os.execv(sys.executable, [sys.executable, *args])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    return pid, terminal


def read_until(terminal: int, wanted: bytes) -> None:
    seen, until = b"", time.monotonic() + PATIENCE
    while wanted not in seen:
        assert time.monotonic() < until, seen[-2000:]
        if select.select([terminal], [], [], 1)[0]:
            seen = seen[-65536:] + os.read(terminal, 65536)


def ended(pid: int) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        select.select([], [], [], 0.05)
    return False


@pytest.mark.parametrize("nodes", ["4", "512"])
def test_a_closed_terminal_ends_the_program_and_the_session_is_whole(nodes: str, tmp_path: Path) -> None:
    pid, terminal = spawn(tmp_path, "--demo", "efa-down", "--demo-nodes", nodes, "--symptom", "everything")
    try:
        read_until(terminal, b"saved")
        os.close(terminal)
        assert ended(pid), "it still runs though its terminal is gone"
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        raise
    [session] = list_sessions(tmp_path)
    assert session.ended == "clean"
    assert session.nodes == int(nodes)


def test_a_file_that_is_gone_is_quiet() -> None:
    reading, writing = os.pipe()
    file = Forgiving(os.fdopen(writing, "w", buffering=1))
    os.close(reading)
    for _ in range(3):
        assert file.write("x\n") == 2
        file.flush()
    assert file.gone
    with contextlib.suppress(OSError):
        file._file.close()
