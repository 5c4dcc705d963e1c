"""Where a command's words go: the result to stdout, everything else to stderr, neither of them trusted to be there.

A shell may close a stream, a disk may be full behind it, its reader may be gone, and it may speak less than UTF-8.
"""

from __future__ import annotations

import contextlib
import os
import sys

from straggler.engine.errors import FatalError


def settle_streams() -> None:
    """Stand-ins for closed streams, before anything else is opened: a journal must not become file 1 or 2.

    What a stream cannot spell is escaped in it, not an exception.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for the life of the program
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as above
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def only_ascii() -> bool:
    """Whether stdout cannot spell what the reports use."""
    try:
        "·→≥°".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def put(text: str) -> None:
    """The result, whole. Raises FatalError where stdout does not take it.

    A reader that has gone has what it wanted, and the exit status still says what was asked.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()
    except OSError as error:
        drop_stdout()
        raise FatalError(f"the result could not be written to stdout: {error.strerror}") from error


def drop_stdout() -> None:
    """What is still held for stdout goes nowhere, so that the interpreter's last flush fails no second time."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(message: str) -> None:
    """One line on stderr, whatever stands in it; where stderr takes nothing there is nobody to tell."""
    from straggler.engine.safetext import safe

    with contextlib.suppress(OSError, ValueError):
        print(f"straggler: {safe(message)}", file=sys.stderr, flush=True)
