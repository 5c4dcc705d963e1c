"""Time to first paint of `straggler --demo` and of `straggler` (the chooser) ÷ an empty Textual app's, in a real PTY.

First paint: the bytes of the first frame that covers all 24 lines have arrived. Beside it, the time until the first question can be
read. Runs are paired: one of each in turn, so that a busy machine slows them alike; the ratio is the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Mapping, Sequence

ROUNDS, SMOKE_ROUNDS = 21, 5
AIM = 1.5
ROWS, COLUMNS = 24, 80
LAST_LINE = f"\x1b[{ROWS};1H".encode()
PATIENCE = 30.0
"""Seconds after which a screen that does not come is an error."""

EMPTY = [sys.executable, "-c", "from textual.app import App; App().run()"]
STRAGGLER = [sys.executable, "-m", "straggler.tui"]
PROGRAMS: Mapping[str, tuple[Sequence[str], bytes]] = {
    "empty app": (EMPTY, b""),
    "straggler": (STRAGGLER, b"want to look at?"),
    "straggler --demo": ([*STRAGGLER, "--demo"], b"What hurts?"),
}
"""What is run, and the words of its first question."""


def measure(command: Sequence[str], words: bytes) -> tuple[float, float]:
    """Seconds from the start of the process to its first whole frame, and to its first question."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        begun = time.perf_counter()
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(home)
            os.execve(command[0], list(command), environment)
        try:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            return _watch(terminal, words, begun)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)


def _watch(terminal: int, words: bytes, begun: float) -> tuple[float, float]:
    seen, painted = b"", 0.0
    while (now := time.perf_counter() - begun) < PATIENCE:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        seen += os.read(terminal, 65536)
        now = time.perf_counter() - begun
        # The last line has begun, and what stands on it has come too.
        if not painted and seen.rpartition(LAST_LINE)[2].count(b" ") > COLUMNS // 2 and LAST_LINE in seen:
            painted = now
        if painted and words in seen:
            return painted, now
    raise SystemExit(f"no whole frame within {PATIENCE:.0f} s; what came ends with {seen[-200:]!r}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="few rounds; says the ratio, judges nothing")
    args = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    measure(*PROGRAMS["straggler"])  # files come into the page cache, byte code is written
    for _ in range(SMOKE_ROUNDS if args.smoke else ROUNDS):
        for name, (command, words) in PROGRAMS.items():
            times[name].append(measure(command, words))
    empty = times.pop("empty app")
    print(f"empty Textual app: {_median(one for one, _ in empty):.0f} ms to its first paint")
    late = 0
    for name, runs in times.items():
        ratio = statistics.median(one / base for (one, _), (base, _) in zip(runs, empty, strict=True))
        late += ratio > AIM
        print(
            f"{name}: first paint ÷ empty app = {ratio:.2f} (aim ≤ {AIM}); "
            f"{_median(one for one, _ in runs):.0f} ms, first question after {_median(one for _, one in runs):.0f} ms"
        )
    return 0 if args.smoke or not late else 1


def _median(seconds: object) -> float:
    return statistics.median(seconds) * 1000  # type: ignore[call-overload,no-any-return]


if __name__ == "__main__":
    sys.exit(main())
