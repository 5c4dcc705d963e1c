"""A key press while 1,024 simulated nodes report: time to the painted answer (p95), and the program's peak memory.

The real program runs in a pseudo-terminal of 80 by 24. Keys change between panes, so each answer is a whole new screen; an
answer counts when the tab that was asked for is painted as the one that is up.

    python tests/bench/bench_keys.py            aims: p95 <= 50 ms, peak <= 300 MB
    python tests/bench/bench_keys.py --smoke    fewer nodes and keys, no verdict on time (a loaded CI machine has none)
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time

AIM_MS, AIM_MB = 50.0, 300.0
# The tab that is up is drawn in bold, on a background of its own, number first.
UP = {
    key: re.compile(
        rb"\x1b\[1;[0-9;]*48;2;34;56;76m "
        + key.encode()
        + b"\x1b|"
        + rb"\x1b\[1;[0-9;]*48;2;34;56;76m "
        + key.encode()
        + b" "
    )
    for key in "124"
}


def spawn(nodes: int, state: str) -> tuple[int, int]:
    """Start the program on the demo in a terminal of its own; its process id and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        words = [
            "--demo",
            "efa-down",
            "--demo-nodes",
            str(nodes),
            "--state-dir",
            state,
            "--symptom",
            "everything",
        ]
        os.execv(sys.executable, [sys.executable, "-m", "straggler.tui", *words])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    return pid, terminal


def read_until(terminal: int, found: re.Pattern[bytes], seconds: float) -> float | None:
    """Seconds until the pattern was printed; None when it was not in time."""
    begun, seen = time.perf_counter(), b""
    while (left := begun + seconds - time.perf_counter()) > 0:
        if select.select([terminal], [], [], left)[0]:
            seen = seen[-4096:] + os.read(terminal, 65536)
            if found.search(seen):
                return time.perf_counter() - begun
    return None


def drain(terminal: int, seconds: float) -> bytes:
    """Take what is printed for a while, as a person reads before the next key."""
    until, seen = time.perf_counter() + seconds, b""
    while (left := until - time.perf_counter()) > 0:
        if select.select([terminal], [], [], left)[0]:
            seen += os.read(terminal, 65536)
    return seen


def peak_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def measure(nodes: int, presses: int, rest: float) -> tuple[list[float], float, str]:
    """Milliseconds per key press, peak memory in MB, and how far the gathering was at the last press."""
    with tempfile.TemporaryDirectory() as state:
        pid, terminal = spawn(nodes, state)
        try:
            if read_until(terminal, re.compile(rb"Findings"), 20) is None:
                raise SystemExit("the program did not draw its main screen")
            took: list[float] = []
            seen = b""
            for at in range(presses):
                seen = drain(terminal, rest)
                key = "214"[at % 3]
                os.write(terminal, key.encode())
                seconds = read_until(terminal, UP[key], 5)
                took.append(5000.0 if seconds is None else seconds * 1000)
            at_end = re.findall(rb"([\d,]+)/([\d,]+) ", seen)
            memory = peak_mb(pid)
            return took, memory, b"/".join(at_end[-1]).decode() if at_end else "?"
        finally:
            # A closed terminal is how sessions end in practice; the program ends by itself then.
            os.close(terminal)
            if not _ended(pid, 20):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                print("the program did not end with its terminal", file=sys.stderr)


def _ended(pid: int, seconds: float) -> bool:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.05)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--nodes", type=int, default=1024)
    args = parser.parse_args()
    nodes, presses = (128, 12) if args.smoke else (args.nodes, 90)
    took, memory, upto = measure(nodes, presses, 0.2)
    took.sort()
    p50, p95 = took[len(took) // 2], took[min(len(took) - 1, int(len(took) * 0.95))]
    print(f"{nodes} nodes, {presses} key presses while they report (at the last: {upto} nodes done)")
    print(
        f"  key press to painted answer  median {p50:.0f} ms  p95 {p95:.0f} ms  worst {took[-1]:.0f} ms  (p95/aim {p95 / AIM_MS:.2f})"
    )
    print(f"  peak memory                  {memory:.0f} MB  (of the aim {memory / AIM_MB:.2f})")
    if took[-1] >= 5000:
        print("a key press was never answered", file=sys.stderr)
        return 1
    return 0 if args.smoke or (p95 <= AIM_MS and memory <= AIM_MB) else 1


if __name__ == "__main__":
    sys.exit(main())
