"""What earlier sweeps of the same nodes reached: kept beside the sessions, one short line each, to set today's beside it.

Where nothing is published for an instance type, a cluster's own past is the only thing its pairs can be held against.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from straggler.engine.statedir import FILE_MODE, private_dir, state_dir

if TYPE_CHECKING:
    from straggler.engine.bandwidth.view import MatrixView

FILE = "bandwidth.jsonl"
SIZE_LIMIT = 8 * 2**20
"""Bytes of the file that are read, from its end."""

PATIENCE = 1.0
"""Seconds a session waits for the disk that holds them."""

SAME = 0.5
"""Share of today's nodes that must have been in an earlier sweep: nodes are replaced, clusters stay."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """One sweep. `usual`: what its unaffected pairs reached, in the unit of `metric`; `at`: Unix seconds; `slow`: it called the
    fleet slow as a whole, and is no measure for anything then."""

    session: str
    at: float
    metric: str
    size: int
    usual: float
    nodes: tuple[str, ...]
    collective: str | None = None
    slow: bool = False


def of(view: MatrixView, session: str, at: float) -> Baseline | None:
    """The line for one judged matrix; None where it has no value to keep."""
    from straggler.engine.bandwidth.model import Kind

    found, matrix = view.attribution, view.matrix
    if found.usual is None or matrix.size is None:
        return None
    slow = any(one.kind is Kind.CLUSTER for one in found.verdicts)
    return Baseline(
        session,
        at,
        matrix.metric.value,
        matrix.size,
        found.usual,
        tuple(matrix.nodes),
        matrix.collective,
        slow,
    )


def keep(one: Baseline, state: Path | None = None) -> str:
    """Append the line. Never raises: why it could not be kept, empty where it was."""
    home = state_dir(state)
    try:
        with private_dir(home, own=state is None) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(FILE, flags, FILE_MODE, dir_fd=folder)
            with os.fdopen(fd, "ab") as stream:
                stream.write(msgspec.json.encode(one) + b"\n")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def earlier(view: MatrixView, lines: Sequence[bytes], but: str = "") -> Baseline | None:
    """The last sweep before this one of mostly the same nodes, by the same measure at the same size; `but`: this session.

    A damaged line is passed over.
    """
    matrix = view.matrix
    today = set(matrix.nodes)
    for line in reversed(lines):
        try:
            one = msgspec.json.decode(line, type=Baseline)
        except (msgspec.MsgspecError, ValueError):
            continue
        same = (one.metric, one.size, one.collective) == (matrix.metric.value, matrix.size, matrix.collective)
        if same and not one.slow and one.session != but and one.usual > 0 and _mostly(today, one.nodes):
            return one
    return None


class Past:
    """The earlier sweeps of one state directory, read beside everything else: the disk may be the very one that hangs."""

    def __init__(self, state: Path | None) -> None:
        self._state = state
        self._found: list[bytes] = []
        self._reader = threading.Thread(target=self._read, name="earlier sweeps", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self._found = _lines(state_dir(self._state) / FILE)

    def earlier(self, view: MatrixView, but: str = "", patience: float = PATIENCE) -> Baseline | None:
        """The last sweep to set beside this one, waiting `patience` seconds for the disk at most."""
        self._reader.join(patience)
        return earlier(view, self._found, but)

    def keep(self, view: MatrixView, session: str, at: float, patience: float = PATIENCE) -> None:
        """Add this sweep; a disk that does not take it in time does without."""
        one = of(view, session, at)
        if one is not None:
            writer = threading.Thread(target=keep, args=(one, self._state), name="this sweep", daemon=True)
            writer.start()
            writer.join(patience)


def _mostly(today: Collection[str], then: tuple[str, ...]) -> bool:
    return len(set(today) & set(then)) >= SAME * max(1, len(today))


def _lines(path: Path) -> list[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as stream:
            stream.seek(max(0, os.fstat(fd).st_size - SIZE_LIMIT))
            return stream.read(SIZE_LIMIT).splitlines()
    except OSError:
        return []
