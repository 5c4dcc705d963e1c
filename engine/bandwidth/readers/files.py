"""Captures on disk: files and whole folders, read one after the other. What cannot be read or recognised is told, never dropped."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from straggler.engine.bandwidth.model import Run
from straggler.engine.bandwidth.readers import read_runs

LARGEST = 64 * 1024 * 1024
"""Bytes of one file that are read: a log of a few thousand ranks has one."""

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = "is a folder"


def read_paths(paths: Iterable[Path]) -> Iterator[tuple[Path, list[Run], str]]:
    """Every file with its runs and, where something is to be said of it, why it gave none. Folders in sorted order, to any depth."""
    for path, data, why in contents(map(str, paths)):
        runs = [] if why else read_runs(data, path)
        if not why and not runs:
            why = "is empty" if not data else "is no output of a bandwidth tool that is known here"
        elif not why:
            for run in runs:
                if not run.hosts:
                    why = "names no host; call the file after the two, A__B.txt"
        yield Path(path), runs, why


def contents(paths: Iterable[str]) -> Iterator[tuple[str, bytes, str]]:
    """Every file's content, or why there is none; those of a folder sorted, to any depth. Never raises for what is there."""
    for path in paths:
        yield from _contents(path, frozenset())


def read_bytes(path: str) -> tuple[bytes, str]:
    """A regular file's content, or nothing and the reason. Pipes and devices are not opened for reading: they may never end."""
    try:
        number = os.open(path, _OPEN)
    except OSError as error:
        return b"", f"cannot be read: {error.strerror}"
    try:
        seen = os.fstat(number)
        if stat.S_ISDIR(seen.st_mode):
            return b"", _FOLDER
        if not stat.S_ISREG(seen.st_mode):
            return b"", "is neither a file nor a folder; it was not read"
        if seen.st_size > LARGEST:
            return b"", f"is larger than {LARGEST >> 20} MiB; it was not read"
        data = os.read(number, seen.st_size + 1)
        while len(data) < seen.st_size and (more := os.read(number, seen.st_size - len(data))):
            data += more
        return data, ""
    except OSError as error:
        return b"", f"cannot be read: {error.strerror}"
    finally:
        os.close(number)


def _contents(path: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, bytes, str]]:
    """`above`: the folders one is in, so that a link back up ends there."""
    data, why = read_bytes(path)
    if why != _FOLDER:
        yield path, data, why
        return
    try:
        seen = os.stat(path)
        names = sorted(os.listdir(path))
    except OSError as error:
        yield path, b"", f"cannot be read: {error.strerror}"
        return
    mine = seen.st_dev, seen.st_ino
    if mine not in above:
        within = above | {mine}
        lead = path if path.endswith("/") else f"{path}/"
        for name in names:
            yield from _contents(lead + name, within)
