"""Where sessions live: directories of our own, mode 0700, and files nobody planted.

The state directory may be read-only, full, or on the very file system that hangs; `fallbacks` are tried then.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DIR_MODE, FILE_MODE = 0o700, 0o600
_OPEN_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def state_dir(override: Path | None = None) -> Path:
    """The state directory (`--state-dir` wins); it need not exist yet."""
    if override is not None:
        return override.expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_state_dir("straggler", appauthor=False))


def sessions_dir(state: Path | None = None) -> Path:
    """The directory that holds one directory per session."""
    return state_dir(state) / "sessions"


def fallbacks() -> list[Path]:
    """State directories to use when the wanted one does not take records; private to this user, gone after a reboot."""
    places = []
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(Path(runtime) / "straggler")
    with suppress(OSError):  # there may be no place for temporary files at all
        places.append(Path(tempfile.gettempdir()) / f"straggler-{os.geteuid()}")
    return places


@contextmanager
def private_dir(path: Path, *, strict: bool = False, own: bool = True) -> Iterator[int]:
    """A descriptor of directory `path`, made (0700) when missing.

    With `own` it raises OSError where the directory is a symlink, belongs to somebody else or, when `strict`, was open to
    others: such a directory was not made by us. Without, any directory will do: it is the operator's choice.
    """
    for parent in [one for one in path.parents if not one.exists()][::-1]:
        with suppress(FileExistsError):
            os.mkdir(parent, DIR_MODE)
    try:
        os.mkdir(path, DIR_MODE)
        made = True
    except FileExistsError:
        made = False
    fd = os.open(path, _OPEN_DIR if own else _OPEN_DIR & ~os.O_NOFOLLOW)
    try:
        if own:
            _own(fd, path, strict=strict and not made)
        yield fd
    finally:
        os.close(fd)


def _own(fd: int, path: Path, *, strict: bool) -> None:
    found = os.fstat(fd)
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user (uid {found.st_uid})")
    if stat.S_IMODE(found.st_mode) & 0o077:
        if strict:
            raise PermissionError(f"{path} is open to other users")
        os.fchmod(fd, DIR_MODE)
    elif stat.S_IMODE(found.st_mode) != DIR_MODE:
        os.fchmod(fd, DIR_MODE)


def new_file(name: str, dir_fd: int) -> int:
    """A descriptor of a new file (0600) in `dir_fd`; an existing one, a link included, is refused."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(name, flags, FILE_MODE, dir_fd=dir_fd)
    os.fchmod(fd, FILE_MODE)
    return fd


def reason(error: OSError) -> str:
    """Why a place does not take files, in words for the header."""
    return error.strerror or str(error)
