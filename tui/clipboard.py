"""Copying that works over SSH, in tmux and not at all: OSC 52 for the terminal, and always a file.

A terminal gives no answer to OSC 52, so nobody can know whether it took the text; the file is there either way.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from straggler.engine.statedir import fallbacks, new_file, private_dir, state_dir

OSC52_LIMIT = 74_994
"""Bytes of text that terminals take at most: xterm's and hterm's limit of 100,000 bytes of sequence, after base64."""

FILE_NAME = "copied.txt"


def sequence(text: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The escape sequence that puts `text` on the clipboard; None when it is too long for one. Wrapped for tmux."""
    raw = text.encode()
    if len(raw) > OSC52_LIMIT:
        return None
    plain = f"\x1b]52;c;{base64.b64encode(raw).decode()}\x07"
    if environment.get("TMUX"):
        return "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return plain


def write_file(text: str, state: Path | None) -> Path:
    """The text in a file only this user can read (0600), replacing the one before. Raises OSError when no place takes it."""
    trouble: OSError | None = None
    for place in (state_dir(state), *fallbacks()):
        try:
            return _write(text, place)
        except OSError as error:
            trouble = trouble or error
    raise trouble or OSError("no place to write to")


def _write(text: str, place: Path) -> Path:
    with private_dir(place) as folder:
        draft = f".{FILE_NAME}.{os.getpid()}"
        with open(new_file(draft, folder), "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(draft, FILE_NAME, src_dir_fd=folder, dst_dir_fd=folder)
    return place / FILE_NAME


def copyable(text: str) -> str:
    """Without the line end that would run a pasted command by itself."""
    return text.rstrip("\n")
