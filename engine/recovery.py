"""Reading journals back: whole, or as little of them as a list needs. Junk is counted, never believed and never fatal."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from straggler.engine.gather import Event
from straggler.engine.journal_file import ALIVE_SECONDS
from straggler.engine.model import Node, Window
from straggler.engine.records import END, META, TAIL, Entry, decode
from straggler.engine.statedir import fallbacks, state_dir

JOURNAL = "journal.jsonl"
LINE_LIMIT = 64 * 2**20
"""Bytes of one line that are read; a longer one is damage, not a record."""

TAIL_BYTES = 4 * 2**20
PARTS_LIMIT = 8
"""Files one session may have been spread over by full or hanging disks."""

Ended = Literal["clean", "killed", "running"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A session read back. `torn`: lines that were damaged, cut or missing. `why` says so in words, empty when all is well.

    `meta` is empty where the first line is damaged. `ended`: the session was closed in order.
    """

    path: Path
    meta: Mapping[str, Any]
    records: tuple[Entry, ...]
    torn: int
    ended: bool
    why: str = ""

    @property
    def events(self) -> Iterator[Event]:
        """The events of the gathering in order; records of other kinds are left out."""
        return (entry.body for entry in self.records if not isinstance(entry.body, Mapping))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes asked; from the records where the first line does not say."""
        with contextlib.suppress(msgspec.ValidationError):
            if nodes := msgspec.convert(self.meta.get("nodes", ()), tuple[Node, ...]):
                return nodes
        return tuple(Node(name) for name in dict.fromkeys(event.node for event in self.events))

    @property
    def window(self) -> Window | None:
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(self.meta.get("window"), Window)
        return None

    def text(self, key: str, default: str = "") -> str:
        """A word of the meta line, such as `symptom`; hostile like everything read from a file."""
        value = self.meta.get(key)
        return value if isinstance(value, str) else default

    @property
    def target(self) -> Mapping[str, Any]:
        """`kind`, `title` and `spec` of the target, as far as the meta line says."""
        target = self.meta.get("target")
        return target if isinstance(target, Mapping) else {}


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What the first and the last line of a journal tell. `size`: bytes. Counts are 0 where the file does not say."""

    id: str
    path: Path
    started: float
    title: str
    nodes: int
    observations: int
    ended: Ended
    size: int
    symptom: str = ""
    kind: str = ""
    why: str = field(default="")


def recover(path: Path) -> Recovered:
    """Everything readable in the journal at `path` (the file, or its session directory). Never raises on what it finds."""
    file = path / JOURNAL if path.is_dir() else path
    parts: list[_Part] = []
    seen = set()
    while file not in seen and len(parts) < PARTS_LIMIT:
        seen.add(file)
        parts.insert(0, _read(file))
        earlier = parts[0].meta.get("continues")
        if not isinstance(earlier, str) or Path(earlier).name != JOURNAL or not Path(earlier).is_absolute():
            break
        file = Path(earlier)
    last = parts[-1]
    records = tuple({entry.seq: entry for part in parts for entry in part.records}.values())
    torn = sum(part.torn for part in parts)
    why = "; ".join(dict.fromkeys(part.why for part in parts if part.why))
    return Recovered(last.path, last.meta, records, torn, last.ended, why)


@dataclass
class _Part:
    """One file of a session, as it is being read."""

    path: Path
    meta: Mapping[str, Any] = field(default_factory=dict)
    records: list[Entry] = field(default_factory=list)
    torn: int = 0
    missing: int = 0
    ended: bool = False
    why: str = ""

    def take(self, line: bytes) -> None:
        entry = decode(line) if line.endswith(b"\n") else None
        if entry is None:
            self.torn += 1
        elif entry.kind == META and not self.meta and isinstance(entry.body, Mapping):
            self.meta = entry.body
        elif entry.kind == END:
            self.ended = True
        else:
            if self.records and entry.seq > self.records[-1].seq + 1:
                self.missing += entry.seq - self.records[-1].seq - 1
            self.records.append(entry)

    def close(self) -> None:
        self.missing = max(0, self.missing - self.torn)
        said = []
        if self.torn:
            said.append(f"{self.torn} damaged line{'s' * (self.torn != 1)} skipped")
        if self.missing:
            said.append(f"{self.missing} record{'s' * (self.missing != 1)} missing")
        if not self.meta:
            said.append("its first line, which says what was asked, is missing")
        self.torn += self.missing
        self.why = ", ".join(said)


def _read(file: Path) -> _Part:
    part = _Part(file)
    try:
        with _open(file) as stream:
            while line := stream.readline(LINE_LIMIT):
                if line != b"\n":
                    part.take(line)
    except OSError as error:
        part.why = f"{file} cannot be read: {error.strerror or error}"
        return part
    part.close()
    return part


def _open(file: Path) -> IO[bytes]:
    """Regular files only: a pipe or a device in their place would hang the reader."""
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "not a regular file")
    return os.fdopen(fd, "rb", buffering=1 << 20)


def list_sessions(state: Path | None = None) -> list[SessionInfo]:
    """Sessions of a state directory, newest first, with those of it that had to be saved elsewhere. Reads no whole file."""
    wanted = state_dir(state)
    found = [info for info, _ in _sessions(wanted)]
    for place in fallbacks():
        if place != wanted:
            found += [info for info, meta in _sessions(place) if meta.get("wanted") == str(wanted)]
    return sorted(found, key=lambda one: (one.started, one.id), reverse=True)


def find_session(name: str | Path, state: Path | None = None) -> Path | None:
    """The journal a session id, a unique start of one, or a path means; None when there is no such session."""
    for path in (Path(name), Path(name) / JOURNAL):
        # os.path answers False where pathlib raises: a name too long, a folder that may not be entered.
        if os.path.isfile(path):
            return path
    alike = [one for one in list_sessions(state) if one.id.startswith(str(name))]
    exact = [one for one in alike if one.id == str(name)] or alike
    return exact[0].path if len(exact) == 1 and str(name) else None


def _sessions(state: Path) -> Iterator[tuple[SessionInfo, Mapping[str, Any]]]:
    try:
        with os.scandir(state / "sessions") as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            yield _info(name, state / "sessions" / name / JOURNAL)


def _info(name: str, path: Path) -> tuple[SessionInfo, Mapping[str, Any]]:
    with _open(path) as stream:
        found = os.fstat(stream.fileno())
        first = decode(stream.readline(LINE_LIMIT))
        stream.seek(max(0, found.st_size - 4096))
        tail = stream.read()
        if TAIL.search(tail) is None and found.st_size > len(tail):
            stream.seek(max(0, found.st_size - TAIL_BYTES))
            tail = stream.read()
    meta = first.body if first is not None and first.kind == META and isinstance(first.body, Mapping) else {}
    ends = list(TAIL.finditer(tail))
    last = decode(tail[tail.rfind(b"\n", 0, len(tail) - 1) + 1 :])
    clean = last is not None and last.kind == END
    target = meta.get("target")
    target = target if isinstance(target, Mapping) else {}
    nodes = meta.get("nodes")
    return (
        SessionInfo(
            id=name,
            path=path,
            started=_number(meta.get("started"), found.st_mtime),
            title=str(target.get("title", "")),
            nodes=len(nodes) if isinstance(nodes, list) else 0,
            observations=int(ends[-1][2]) if ends else 0,
            ended="clean" if clean else "running" if _alive(meta, found.st_mtime) else "killed",
            size=found.st_size,
            symptom=str(meta.get("symptom", "")),
            kind=str(target.get("kind", "")),
            why="" if meta else "its first line is damaged",
        ),
        meta,
    )


def _number(value: Any, default: float) -> float:
    return float(value) if isinstance(value, (int, float)) else default


def process_mark() -> dict[str, Any]:
    """What tells later whether the writer still lives: host and boot, process and when it started (clock ticks)."""
    pid = os.getpid()
    return {"pid": pid, "host": socket.gethostname(), "boot": _boot(), "ticks": _ticks(pid)}


def _alive(meta: Mapping[str, Any], touched: float) -> bool:
    """On this host by the process itself; on another by the touch a living session gives its file."""
    mark = meta.get("process")
    if not isinstance(mark, Mapping):
        return False
    if (mark.get("host"), mark.get("boot")) == (socket.gethostname(), _boot()):
        pid = mark.get("pid")
        return isinstance(pid, int) and _ticks(pid) == mark.get("ticks") != 0
    return mark.get("host") != socket.gethostname() and time.time() - touched < 3 * ALIVE_SECONDS


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _ticks(pid: int) -> int:
    """When the process started, in clock ticks since boot; 0 where there is no such process or no /proc."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return 0 if words[0] in "ZX" else int(words[19])
    except (OSError, ValueError, IndexError):
        return 0
