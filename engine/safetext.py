"""The only door from cluster text to a screen or a pipe: what comes out is printable, bounded, and cannot act.

Everything a node, an API or a file says is hostile text. `SafeText` is made here and nowhere else, so the type checker
keeps raw text off the screen. What is neutralised stays visible as an escape (`\\x1b`, `\\u202e`): it is evidence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NewType

SafeText = NewType("SafeText", str)

LINE_LIMIT = 2_000
"""Characters of one line that are shown; what is longer is cut and the cut is said."""

LINES_LIMIT = 5_000
"""Lines of one block that are shown."""

MARKS_LIMIT = 3
"""Combining marks one character may carry: enough for every living script, too few to paint over other lines."""

TAB = 8

# Invisible, but letters, marks or symbols by their Unicode category: fillers, blanks and variation selectors.
_FILLERS = (
    0x034F,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    0x180B,
    0x180C,
    0x180D,
    0x180F,
    0x2800,
    0x3164,
    0xFFA0,
    0x1D159,
)
_INVISIBLE = frozenset([*_FILLERS, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": " "}


def safe(text: str, *, ascii_only: bool = False, limit: int = LINE_LIMIT) -> SafeText:
    """One printable line of at most `limit` characters. Line ends become visible, tabs and odd blanks a space."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return SafeText(text)
    shown: list[str] = []
    ends: list[int] = []
    length = used = 0
    for taken, piece in _pieces(text[:limit], ascii_only):
        shown.append(piece)
        length += len(piece)
        used += taken
        ends.append(used)
        if length > limit:
            break
    if length <= limit and len(text) <= limit:
        return SafeText("".join(shown))
    return _cut(shown, ends, len(text), limit, ascii_only)


def safe_lines(
    text: str, *, ascii_only: bool = False, limit: int = LINE_LIMIT, most: int = LINES_LIMIT
) -> list[SafeText]:
    """A block, line by line. Tabs keep their columns; a CR before the line end (a PTY's) is dropped, others are shown."""
    if not text:
        return []
    lines = text.split("\n", most)
    rest = lines.pop() if len(lines) > most else ""
    if lines and not lines[-1] and not rest:
        lines.pop()
    out = [safe(_untabbed(line, limit), ascii_only=ascii_only, limit=limit) for line in lines]
    if rest:
        more = rest.count("\n") + (not rest.endswith("\n"))
        dots = "..." if ascii_only else "…"
        out.append(SafeText(f"{dots} [+{more} lines]"))
    return out


def _untabbed(line: str, limit: int) -> str:
    line = line[:-1] if line.endswith("\r") else line
    if "\t" not in line:
        return line
    return line[:limit].expandtabs(TAB) + line[limit:]


def _pieces(text: str, ascii_only: bool) -> Iterator[tuple[int, str]]:
    """Per character (or flood of marks): how many characters it stands for, and what is shown of them."""
    marks = flood = 0
    based = False
    for char in text:
        if not char.isascii() and unicodedata.category(char)[0] == "M" and ord(char) not in _INVISIBLE:
            marks += 1
            if marks > MARKS_LIMIT:
                flood += 1
                continue
            yield 1, char if based and not ascii_only else _escaped(char)
            continue
        if flood:
            yield flood, f"[+{flood} marks]"
        marks = flood = 0
        piece = _shown(char, ascii_only)
        based = piece == char and char != " "
        yield 1, piece
    if flood:
        yield flood, f"[+{flood} marks]"


def _shown(char: str, ascii_only: bool) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable() and ord(char) not in _INVISIBLE and (char.isascii() or not ascii_only):
        return char
    if unicodedata.category(char) == "Zs":
        return " "
    return _escaped(char)


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cut(shown: list[str], ends: list[int], total: int, limit: int, ascii_only: bool) -> SafeText:
    """As many whole pieces as fit before the note that says how many characters are not shown."""
    dots = "..." if ascii_only else "…"
    room = limit - len(f"{dots} [+{total} characters]")
    length = kept = 0
    while kept < len(shown) and length + len(shown[kept]) <= room:
        length += len(shown[kept])
        kept += 1
    hidden = total - (ends[kept - 1] if kept else 0)
    return SafeText(("".join(shown[:kept]) + f"{dots} [+{hidden} characters]")[: max(limit, 0)])
