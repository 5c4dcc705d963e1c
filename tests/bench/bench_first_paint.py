"""From process start to the first whole frame, against an empty Textual app, each in a pseudo-terminal of 80 by 24.

Runs take turns, so that a busy moment of the machine falls on both; medians are compared.

    python tests/bench/bench_first_paint.py            aim: ratio <= 1.5 for both
    python tests/bench/bench_first_paint.py --smoke    a few runs, no verdict (a loaded CI machine has none)
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time

AIM = 1.5
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("READY-TO-READ")
Empty().run()
"""
PROGRAMS: dict[str, tuple[list[str], bytes]] = {
    "an empty Textual app": (["-c", EMPTY], b"READY-TO-READ"),
    "straggler": (["-m", "straggler.tui"], b"type them"),
    "straggler --demo": (["-m", "straggler.tui", "--demo"], b"What hurts?"),
}
"""What is started, and what its first screen asks: by then it can be answered."""


def first_paint(words: list[str], sign: bytes, home: str) -> float:
    """Seconds until the sign is printed and the terminal has nothing more to say for a moment."""
    begun = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        os.environ.update(
            TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8", HOME=home, XDG_STATE_HOME=home
        )
        os.execv(sys.executable, [sys.executable, *words])
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        seen = b""
        while time.perf_counter() < begun + 30:
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 65536)
                if sign in seen:
                    return time.perf_counter() - begun
        raise SystemExit(f"{words}: no first frame within 30 s")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    runs = 3 if parser.parse_args().smoke else 15
    took: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as home:
        for at in range(runs + 1):
            for name, (words, sign) in PROGRAMS.items():
                seconds = first_paint(words, sign, home)
                if at:  # The first round only warms the file cache.
                    took[name].append(seconds)
    base, *ours = (statistics.median(one) for one in took.values())
    print(f"an empty Textual app: {base * 1000:.0f} ms to its first frame (median of {runs})")
    for name, median in zip(list(PROGRAMS)[1:], ours, strict=True):
        verdict = "" if runs < 15 else "  met" if median / base <= AIM else "  NOT MET"
        print(f"{name}: {median * 1000:.0f} ms, ratio {median / base:.2f}, aim <= {AIM}{verdict}")


if __name__ == "__main__":
    main()
