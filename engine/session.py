"""The journal of a session: what is shown has been written before, and nothing shown is lost silently.

A record is appended on the event loop without waiting, written by a thread of its own, and only then handed on (`then`).
Where the state directory is full, read-only or hangs, the next place is tried; where none takes records, they are kept
in memory up to a bound, tried again, and handed on all the same: `health` says that they are not saved.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from straggler.engine.journal_file import Item, JournalFile
from straggler.engine.model import Node, Window
from straggler.engine.records import Record, plain
from straggler.engine.recovery import (
    Recovered,
    SessionInfo,
    find_session,
    list_sessions,
    process_mark,
    recover,
)
from straggler.engine.statedir import fallbacks, sessions_dir, state_dir
from straggler.engine.targets.base import Target

__all__ = [
    "Health",
    "Journal",
    "Recovered",
    "SessionInfo",
    "describe",
    "find_session",
    "list_sessions",
    "recover",
    "sessions_dir",
    "state_dir",
]

SCHEMA = 1

HANG_SECONDS = 2.0
"""A place that has not answered for this long is left for the next one."""

RETRY_SECONDS = 10.0
CLOSE_SECONDS = 3.0

MEMORY_BYTES = 64 * 2**20
"""Unsaved records kept in memory for a place that works again; beyond it the oldest are lost, and counted."""

SLICE_SECONDS = 0.01
"""Longest stretch of handing on before the event loop gets its turn."""


@dataclass(frozen=True, slots=True)
class Health:
    """`saved`: everything so far is, or is about to be, in the file at `path`. `why`: what went wrong, also where a fallback
    then saved it. `unsaved` counts records that are only in memory, or no longer even there."""

    saved: bool
    path: Path
    why: str = ""
    unsaved: int = 0


def describe(target: Target, symptom: str, window: Window, **more: Any) -> dict[str, Any]:
    """The meta of a session in the form `Recovered` reads back: what was asked, of whom."""
    about = {"kind": target.kind, "title": target.title, "spec": dict(target.spec), "now": target.now}
    return {"target": about, "symptom": symptom, "window": window, "nodes": list[Node](target.nodes), **more}


@dataclass
class _Place:
    """A state directory and what came of it."""

    state: Path
    strict: bool
    why: str = ""
    file: JournalFile | None = None

    @property
    def stuck(self) -> bool:
        """Its last thread still hangs there: another one would hang as well."""
        return self.file is not None and self.file.is_alive()


@dataclass
class Journal:
    """One session's journal; every method but `create` belongs to the event loop's thread."""

    id: str
    meta: Mapping[str, Any]
    _places: list[_Place]
    _at: int = -1
    _file: JournalFile | None = None
    _pending: deque[Item] = field(default_factory=deque)
    _kept: deque[Item] = field(default_factory=deque)
    _kept_bytes: int = 0
    _lost: int = 0
    _ready: deque[Item] = field(default_factory=deque)
    _number: int = 0
    _handed: int = 0
    _moved: float = 0.0
    _tries: int = 0
    _closed: bool = False
    _loop: asyncio.AbstractEventLoop | None = None
    _pumping: bool = False
    _watching: asyncio.TimerHandle | None = None
    _retry: asyncio.TimerHandle | None = None
    _waiters: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)

    @classmethod
    def create(cls, meta: Mapping[str, Any], state: Path | None = None) -> Journal:
        """A new journal with its first line written, in `state` or the next best place. Blocks for HANG_SECONDS a place at
        most and never raises for a disk: `health` tells."""
        now = time.time()
        name = (
            datetime.fromtimestamp(now, timezone.utc).strftime("%Y%m%dT%H%M%SZ") + "-" + secrets.token_hex(3)
        )
        wanted = state_dir(state)
        head = {
            "schema": SCHEMA,
            "straggler": _version(),
            "id": name,
            "started": now,
            "process": process_mark(),
            "wanted": str(wanted),
        }
        places = [_Place(wanted, strict=False)]
        places += [_Place(other, strict=True) for other in fallbacks() if other != wanted]
        journal = cls(name, {**plain(meta), **head}, places)
        while journal._next():
            file = journal._file
            if file is not None and file.settled.wait(HANG_SECONDS) and not file.dead:
                break
            journal._leave("does not answer")
        return journal

    @property
    def path(self) -> Path:
        """The file in use, or the one that was wanted."""
        return (
            self._file.path if self._file else self._places[0].state / "sessions" / self.id / "journal.jsonl"
        )

    @property
    def health(self) -> Health:
        troubles = [f"{place.state}: {place.why}" for place in self._places if place.why]
        unsaved = len(self._kept) + self._lost
        if self._file is None:
            return Health(
                not unsaved and self._closed and not troubles, self._last_path(), "; ".join(troubles), unsaved
            )
        if troubles:
            troubles.append(f"saved in {self._file.state} instead")
        if unsaved:
            troubles.append(f"{unsaved} records are in no file")
        return Health(not unsaved, self._file.path, "; ".join(troubles), unsaved)

    def append(self, record: Record, then: Callable[[], None] | None = None) -> None:
        """Take a record; returns at once. `then` is called on the event loop after the record was written, in order, and
        also when it could not be: look at `health`."""
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._number += 1
        item = Item(self._number, record, time.time(), then, _size(record))
        if self._file is not None and self._file.dead and not self._closed:
            self._failed(self._file, self._file.why)
        if self._file is None or self._closed:
            self._keep(item)
            self._hand_on([item])
            if self._retry is None and not self._closed:
                self._retry = loop.call_later(RETRY_SECONDS, self._again)
            return
        self._pending.append(item)
        self._file.put(item)
        if self._watching is None:
            self._watching = loop.call_later(HANG_SECONDS / 4, self._watch)

    async def drained(self) -> None:
        """Return when everything appended before this call was handed on."""
        if self._handed >= self._number:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((self._number, waiter))
        await waiter

    def close(self, how: str = "clean") -> Health:
        """Write what is left and the end mark, force it to disk, hand on the rest. Waits seconds at most, also when a disk
        hangs; calling it again does nothing."""
        if self._closed:
            return self.health
        self._closed = True
        for timer in (self._watching, self._retry):
            if timer is not None:
                timer.cancel()
        if self._file is None and self._kept:
            self._at = -1
            self._next()
        while (file := self._file) is not None and not file.finish(how, CLOSE_SECONDS):
            self._leave(file.why or "does not answer")
            self._next()
        if self._file is not None:
            self._forget(self._number)
        self._ready.extend(self._pending)
        self._pending.clear()
        while self._ready:
            self._call(self._ready.popleft())
        return self.health

    # On the journal's thread: nothing but a message to the event loop.

    def _written_there(self, file: JournalFile, number: int) -> None:
        self._post(self._written, file, number)

    def _failed_there(self, file: JournalFile, why: str) -> None:
        self._post(self._failed, file, why)

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: close() has handed everything on
                self._loop.call_soon_threadsafe(call, *args)

    # On the event loop.

    def _written(self, file: JournalFile, number: int) -> None:
        if file is self._file and not self._closed:
            self._forget(number)
            done = []
            while self._pending and self._pending[0].number <= number:
                done.append(self._pending.popleft())
            self._hand_on(done)

    def _forget(self, number: int) -> None:
        while self._kept and self._kept[0].number <= number:
            self._kept_bytes -= self._kept.popleft().size

    def _failed(self, file: JournalFile, why: str) -> None:
        if file is self._file and not self._closed:
            self._leave(why)
            if not self._next():
                self._give_up()

    def _watch(self) -> None:
        self._watching = None
        if self._closed or not self._pending or self._loop is None:
            return
        if self._file is not None:
            since = max(self._pending[0].queued, self._moved, self._file.alive_at)
            if time.monotonic() - since > HANG_SECONDS:
                self._failed(self._file, "does not answer")
        self._watching = self._loop.call_later(HANG_SECONDS / 4, self._watch)

    def _leave(self, why: str) -> None:
        place = self._places[self._at]
        if self._file is not None:
            why = self._file.why or why
            self._file.abandon()
        place.why = why
        self._file = None

    def _next(self) -> bool:
        """Start on the next place that is not known to hang, with everything no file has yet; False: there is none."""
        for at in range(self._at + 1, len(self._places)):
            place = self._places[at]
            if place.stuck:
                continue
            name = self.id if place.file is None else f"{self.id}-{self._tries}"
            earlier = [one.file for one in self._places if one.file is not None and one.file.has_records]
            more = {"continues": str(max(earlier, key=lambda one: one.last).path)} if earlier else {}
            self._at, self._moved, self._tries = at, time.monotonic(), self._tries + 1
            self._file = place.file = JournalFile(
                place.state,
                name,
                {**self.meta, **more},
                self._written_there,
                self._failed_there,
                strict=place.strict,
            )
            for item in (*self._kept, *self._pending):
                self._file.put(item)
            self._file.start()
            return True
        return False

    def _give_up(self) -> None:
        """No place takes records: show them all the same, keep them for a place that works again."""
        waiting = list(self._pending)
        self._pending.clear()
        for item in waiting:
            self._keep(item)
        self._hand_on(waiting)
        if self._loop is not None and self._retry is None:
            self._retry = self._loop.call_later(RETRY_SECONDS, self._again)

    def _again(self) -> None:
        self._retry = None
        if self._file is None and not self._closed:
            self._at = -1
            if not self._next():
                self._give_up()

    def _keep(self, item: Item) -> None:
        self._kept.append(item)
        self._kept_bytes += item.size
        while self._kept_bytes > MEMORY_BYTES:
            self._kept_bytes -= self._kept.popleft().size
            self._lost += 1

    def _hand_on(self, items: list[Item]) -> None:
        self._ready.extend(items)
        if self._ready and not self._pumping and self._loop is not None:
            self._pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        until = time.monotonic() + SLICE_SECONDS
        while self._ready and time.monotonic() < until:
            self._call(self._ready.popleft())
        self._hand_on([])

    def _call(self, item: Item) -> None:
        try:
            if item.then is not None:
                then, item.then = item.then, None
                then()
        except Exception as error:  # one listener that trips must not stop the others
            if self._loop is None:
                raise
            self._loop.call_exception_handler({"message": "a journal listener failed", "exception": error})
        finally:
            self._handed = item.number
            while self._waiters and self._waiters[0][0] <= self._handed:
                waiter = self._waiters.pop(0)[1]
                if not waiter.done():
                    waiter.set_result(None)

    def _last_path(self) -> Path:
        used = [one.file.path for one in self._places if one.file is not None]
        return used[-1] if used else self.path


def _version() -> str:
    try:
        return version("straggler")
    except PackageNotFoundError:
        return "unknown"


def _size(record: Record) -> int:
    """Bytes a record holds in memory, roughly: its texts and the object around them."""
    if isinstance(record, Mapping):
        return 1024
    return 512 + len(getattr(record, "text", "")) + len(getattr(record, "errors", ""))
