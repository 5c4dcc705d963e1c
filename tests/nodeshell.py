"""Test side of the node script: collectors that are in no closed list, and a shell that runs the script composed of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from straggler.engine import script
from straggler.engine.collectors.base import AnyCollector, Collector
from straggler.engine.frames import Block, Done, FrameReader, Hello

NONCE = "0123456789abcdef"
MARKS: list[str] = []
"""What the scripts rendered since the last test call their scratch and their processes."""

OUTER = 60
"""Seconds after which a script that still runs is a failure, however slow the machine is."""

SHELLS: Mapping[str, tuple[str, ...]] = {
    "dash": ("dash",),
    "busybox": ("busybox", "sh"),
    "bash": ("bash",),
    "bash --posix": ("bash", "--posix"),
}


def collector(snippet: str, *, seconds: int = 20, id: str = "probe") -> AnyCollector:
    return Collector(id=id, what="a probe", snippet=snippet, parse=str, commands=(), seconds=seconds)


def rendered(*collectors: AnyCollector, sudo: bool = False) -> bytes:
    """The script as it would be sent, past the closed list: only tests do this, and one of them looks that it is so."""
    body = script._render(script.Request(collectors, since=1000, until=2000, sudo=sudo), NONCE)
    MARKS.append(body.split("S_MARK=")[1].split()[0])
    return body.encode()


@dataclass(frozen=True)
class Said:
    """What came back from one run of the script."""

    hello: Hello | None
    blocks: Mapping[int, Block]
    done: Done | None
    noise: str
    errors: str
    order: Sequence[int]

    def __getitem__(self, index: int) -> Block:
        return self.blocks[index]


def understood(output: bytes, count: int, errors: bytes = b"") -> Said:
    reader = FrameReader(NONCE, count)
    frames = list(reader.feed(output))
    blocks = [one for one in frames if isinstance(one, Block)]
    assert len({one.index for one in blocks}) == len(blocks), "no block comes twice"
    return Said(
        hello=next((one for one in frames if isinstance(one, Hello)), None),
        blocks={one.index: one for one in blocks},
        done=next((one for one in frames if isinstance(one, Done)), None),
        noise=reader.noise.decode(errors="replace").strip(),
        errors=errors.decode(errors="replace"),
        order=[one.index for one in blocks],
    )


def ask(
    shell: Sequence[str],
    *collectors: AnyCollector,
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    sudo: bool = False,
) -> Said:
    """Run the script of these collectors under `shell` and read what it says. `prefix` goes before the shell's argv."""
    done = subprocess.run(
        [*prefix, *shell],
        input=rendered(*collectors, sudo=sudo),
        capture_output=True,
        env=None if env is None else dict(env),
        timeout=OUTER,
        cwd="/",
        check=False,
    )
    return understood(done.stdout, len(collectors), done.stderr)


def eventually(true: Callable[[], bool], seconds: float = OUTER) -> bool:
    """Whether it becomes true; asks again until the outer limit, so a slow machine is no failure."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.05)
    return true()


def processes_with(word: str) -> set[int]:
    """Living processes whose command line or environment contains `word`."""
    found = set()
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit() or int(proc.name) == os.getpid():
            continue
        try:
            text = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
        except OSError:
            continue
        if word.encode() in text:
            found.add(int(proc.name))
    return found


def below(pid: int) -> set[int]:
    """Living processes whose ancestor is `pid`."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if rest[0] != "Z":
            parents[int(stat.parent.name)] = int(rest[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def alive(pids: set[int]) -> set[int]:
    left = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            left.add(pid)
    return left


def scratches() -> set[Path]:
    """Scratch directories of the scripts rendered since MARKS was cleared."""
    places = (Path(base, f"straggler.{mark}") for base in ("/dev/shm", "/run", "/tmp") for mark in MARKS)
    return {one for one in places if one.exists()}


def end(pids: set[int]) -> None:
    """Clean up behind a test that made a process nobody else can end."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
