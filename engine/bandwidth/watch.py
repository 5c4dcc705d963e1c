"""Results as they appear: a folder is looked at again and again, and a file is handed on once it has come to rest.

Polled, as inotify says nothing of what other hosts write to a shared file system.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from straggler.engine.bandwidth.results import Source
from straggler.engine.bandwidth.so_far import MOST_BYTES, closed, unreadable

POLL_SECONDS = 2.0

OLD_SECONDS = 60.0
"""A file that nobody has written to for so long is whole, whatever its last line is."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was found: what changes when somebody writes to it."""

    size: int
    changed: int
    inode: int


async def appearing(
    folder: Path,
    *,
    whole: Callable[[bytes], bool] = closed,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    old: float = OLD_SECONDS,
    poll: float = POLL_SECONDS,
) -> AsyncIterator[tuple[str, bytes]]:
    """Name below `folder` (with /) and bytes of every new or changed file, without end: cancel or close it.

    A file counts once its size is that of the look before and it is `whole` or `old` seconds old. Hidden files, links, pipes and
    devices are passed over; of a file that is very long the first 64 MB are given. A folder that is not there yet is waited for.
    """
    before: dict[str, _Seen] = {}
    given: dict[str, _Seen] = {}
    while True:
        now = await asyncio.to_thread(_look, folder)
        for name, seen in now.items():
            if given.get(name) == seen or before.get(name) != seen:
                continue
            data = await asyncio.to_thread(_read, folder / name, seen)
            if data is not None and (whole(data) or clock() - seen.changed / 1e9 >= old):
                given[name] = seen
                yield name, data
        given = {name: seen for name, seen in given.items() if name in now}
        before = now
        await sleep(poll)


async def present(folder: Path) -> AsyncIterator[tuple[str, bytes]]:
    """Name below `folder` and bytes of every file that is there now, whole or not: how a run ended is for its reader to say."""
    for name, seen in (await asyncio.to_thread(_look, folder)).items():
        data = await asyncio.to_thread(_read, folder / name, seen)
        if data is not None:
            yield name, data


def folder_source(folder: Path) -> Source:
    """A folder of results as a session takes them: those that are there, or also those that appear."""

    def results(follow: bool) -> AsyncIterator[tuple[str, bytes]]:
        return appearing(folder) if follow else present(folder)

    return results


def _look(folder: Path) -> dict[str, _Seen]:
    """The plain files below a folder, sorted by name; what cannot be looked at is not among them."""
    found: dict[str, _Seen] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith(".")]
        for name in names:
            if name.startswith("."):
                continue
            path = os.path.join(place, name)
            try:
                about = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(about.st_mode):
                below = os.path.relpath(path, folder).replace(os.sep, "/")
                found[below] = _Seen(about.st_size, about.st_mtime_ns, about.st_ino)
    return dict(sorted(found.items()))


def _read(path: Path, seen: _Seen) -> bytes | None:
    """The bytes of the very file that was looked at, or that they cannot be read; None where it has gone or changed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return unreadable(error)
    with open(fd, "rb") as file:
        try:
            about = os.fstat(fd)
            if (
                not stat.S_ISREG(about.st_mode)
                or _Seen(about.st_size, about.st_mtime_ns, about.st_ino) != seen
            ):
                return None
            return file.read(MOST_BYTES)
        except OSError as error:
            return unreadable(error)
