"""The thread that owns one journal file: takes records, writes them, and only then says so.

All calls that may block (mkdir, open, write, fsync) happen here, on a daemon thread, so that a file system that hangs
stops neither the event loop nor the exit.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from straggler.engine.model import Observation
from straggler.engine.records import END, META, Record, encode
from straggler.engine.statedir import new_file, private_dir, reason

SYNC_SECONDS = 1.0
"""At most this often the file is forced to disk; what a crash of the whole machine may cost."""

ALIVE_SECONDS = 20.0
"""How often an idle session touches its file, so that another host sees it is alive."""

BATCH_RECORDS, BATCH_BYTES = 64, 4 * 2**20


@dataclass(slots=True)
class Item:
    """One record on its way to disk. `queued`: monotonic seconds when it was appended."""

    number: int
    record: Record
    at: float
    then: Callable[[], None] | None
    size: int
    queued: float = field(default_factory=time.monotonic)


class JournalFile(threading.Thread):
    """`written` and `failed` are called on this thread: with the number of the last record on disk, with the reason."""

    def __init__(
        self,
        state: Path,
        name: str,
        meta: Mapping[str, Any],
        written: Callable[[JournalFile, int], None],
        failed: Callable[[JournalFile, str], None],
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(name="straggler journal", daemon=True)
        self.state, self.session, self.meta, self.strict = state, name, meta, strict
        self.path = state / "sessions" / name / "journal.jsonl"
        self.written, self.failed = written, failed
        self.settled = threading.Event()
        """Set once it is known whether the file could be made."""
        self.why = ""
        self.dead = False
        self._items: queue.SimpleQueue[Item | str] = queue.SimpleQueue()
        self._fd = -1
        self._length = self._seq = self._observations = 0
        self.last = 0
        """Number of the last record on disk."""
        self.alive_at = time.monotonic()
        """When it last got a step further: slow is not the same as hanging."""
        self._left = False
        self._dirty = False
        self._synced = self._touched = time.monotonic()

    def put(self, item: Item) -> None:
        self._items.put(item)

    @property
    def has_records(self) -> bool:
        return self.last > 0

    def abandon(self) -> None:
        """Write nothing more, even if the file system comes back."""
        self._left = True
        self._items.put("")

    def finish(self, how: str, seconds: float) -> bool:
        """Write what is queued and the end mark; False when it died of it, or got no step further for so long."""
        begun = time.monotonic()
        self._items.put(how)
        while self.is_alive() and time.monotonic() - max(begun, self.alive_at) < seconds:
            self.join(min(seconds, 0.1))
        return not self.is_alive() and not self.dead

    def run(self) -> None:
        try:
            try:
                self._open()
            finally:
                self.settled.set()
            while self._step():
                pass
        except OSError as error:
            self._die(reason(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the operator must hear that nothing is being saved
            self._die(f"{type(error).__name__}: {error}")
        finally:
            self.settled.set()
            if self._fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(self._fd)

    def _die(self, why: str) -> None:
        self.why, self.dead = why, True
        self.settled.set()
        self.failed(self, why)

    def _open(self) -> None:
        try:
            with private_dir(self.state, strict=self.strict, own=self.strict):
                pass
            with private_dir(self.state / "sessions") as sessions:
                os.mkdir(self.session, 0o700, dir_fd=sessions)
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                own = os.open(self.session, flags, dir_fd=sessions)
                try:
                    os.fchmod(own, 0o700)
                    self._fd = new_file("journal.jsonl", own)
                finally:
                    os.close(own)
            self._write([encode({"kind": META, **self.meta}, time.time(), 0, 0)])
        except OSError as error:
            self.dead, self.why = True, reason(error)
            raise

    def _step(self) -> bool:
        """One batch; False after the end mark."""
        try:
            first = self._items.get(timeout=self._patience())
        except queue.Empty:
            self._idle()
            return True
        batch, lines, size, end = [], [], 0, None
        item: Item | str | None = first
        while item is not None:
            if isinstance(item, str):
                end = item
                break
            batch.append(item)
            lines.append(self._line(item))
            size += len(lines[-1])
            item = None
            if len(batch) < BATCH_RECORDS and size < BATCH_BYTES:
                with contextlib.suppress(queue.Empty):
                    item = self._items.get_nowait()
        if self._left:
            return False
        if batch:
            self._write(lines)
            self.last = batch[-1].number
            self.written(self, self.last)
        if end is not None:
            self._end(end)
            return False
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self._sync()
        return True

    def _line(self, item: Item) -> bytes:
        self.alive_at = time.monotonic()
        self._seq = item.number
        self._observations += isinstance(item.record, Observation)
        return encode(item.record, item.at, self._seq, self._observations)

    def _patience(self) -> float:
        now = time.monotonic()
        due = self._synced + SYNC_SECONDS if self._dirty else self._touched + ALIVE_SECONDS
        return max(due - now, 0.001)

    def _idle(self) -> None:
        if self._dirty:
            self._sync()
        else:
            os.utime(self._fd)
            self._touched = time.monotonic()

    def _write(self, lines: list[bytes]) -> None:
        """All of it, or an error and the file as it was: a full disk must not leave half a line before a later one."""
        data = memoryview(b"".join(lines))
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._length)
            raise
        self._length += done
        self._dirty = True
        self.alive_at = time.monotonic()

    def _sync(self) -> None:
        os.fdatasync(self._fd)
        self._dirty = False
        self._synced = self._touched = self.alive_at = time.monotonic()

    def _end(self, how: str) -> None:
        self._seq += 1
        self._write([encode({"kind": END, "how": how}, time.time(), self._seq, self._observations)])
        self._sync()
