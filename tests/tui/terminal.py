"""The real program in a real terminal: a tmux server of the test's own, polled until the expected stands on the screen."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE = 30.0
"""Seconds until a text that never comes is a failed test."""


def needs_tmux() -> str:
    """The path of tmux. Without one: a failure in CI, elsewhere the test is skipped with the reason."""
    path = shutil.which("tmux")
    if path is None:
        why = "tmux is not installed: ./task real installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    return path


class Terminal:
    """One program in one pane. Its exit status is printed below what it leaves behind, as `status=N`."""

    def __init__(self, home: Path, *words: str, size: tuple[int, int] = (80, 24), **env: str) -> None:
        self.home, self.name = home, f"straggler-{os.getpid()}-{secrets.token_hex(4)}"
        self.tmux = needs_tmux()
        kept = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "XDG_STATE_HOME": str(home / "state"),
        }
        # What this process was told of its own terminal, or its absence, is not that of the new one.
        unset = [word for name in ("COLORTERM", "COLUMNS", "LINES", "NO_COLOR") for word in ("-u", name)]
        given = {**kept, **env}
        setting = [f"{key}={value}" for key, value in given.items()]
        program = shlex.join(["env", *unset, *setting, sys.executable, "-m", "straggler.tui", *words])
        # The shell stays, so that what was left on the terminal can be read after the program ended.
        script = f"cd {shlex.quote(str(home))}; {program}; echo status=$?; sleep 1000"
        width, height = size
        self.do("new-session", "-d", "-x", str(width), "-y", str(height), f"exec sh -c {shlex.quote(script)}")
        self.do("set-option", "-g", "status", "off")
        self.do("resize-window", "-x", str(width), "-y", str(height))

    def do(self, *words: str) -> str:
        done = subprocess.run(
            [self.tmux, "-L", self.name, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Named keys (`Enter`, `Escape`, `C-s`) and single characters."""
        for key in keys:
            self.do("send-keys", key)

    def type(self, text: str) -> None:
        self.do("send-keys", "-l", text)

    def screen(self) -> str:
        return self.do("capture-pane", "-p", "-J")

    def until(self, *texts: str, gone: str = "") -> str:
        """Wait until every text stands on the screen, and `gone` no longer does; the screen."""
        end = time.monotonic() + PATIENCE
        while True:
            shown = self.screen()
            if all(text in shown for text in texts) and not (gone and gone in shown):
                return shown
            if time.monotonic() > end:
                raise AssertionError(f"waited for {texts} (gone: {gone!r}), but saw:\n{shown}")
            time.sleep(0.05)

    def resize(self, width: int, height: int) -> None:
        self.do("resize-window", "-x", str(width), "-y", str(height))

    def program(self) -> int:
        """The process id of straggler itself."""
        shell = int(self.do("display-message", "-p", "#{pane_pid}"))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = subprocess.run(
                ["pgrep", "-P", str(shell)], capture_output=True, text=True, check=False
            ).stdout.split()
            if found:
                return int(found[0])
            time.sleep(0.05)
        raise AssertionError("the program is not running")

    def status(self) -> int:
        """Wait for the end; the exit status."""
        shown = self.until("status=")
        return int(re.findall(r"status=(\d+)", shown)[-1])

    def close(self) -> None:
        subprocess.run(
            [self.tmux, "-L", self.name, "kill-server"], capture_output=True, timeout=20, check=False
        )


def ended(pid: int) -> bool:
    """Wait until a process is gone."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def straggler(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The program without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "straggler.tui", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), **env},
    )
