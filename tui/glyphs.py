"""Every sign the screens draw: a state is a glyph, a word and a colour, so that any one of the three may be missing.

The screens draw Unicode; with `--ascii` one filter turns each sign into its ASCII twin of the same width as it leaves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from straggler.engine.model import Level


@dataclass(frozen=True, slots=True)
class Mark:
    """`tone` names the colour: a component class of every line pane and a variable of the theme."""

    glyph: str
    word: str
    tone: str


FAIL = Mark("✗", "FAIL", "fail")
WARN = Mark("▲", "WARN", "warn")
UNKNOWN = Mark("?", "UNKN", "unknown")
OK = Mark("✓", "ok", "ok")
INFO = Mark("·", "info", "quiet")
WAITING = Mark("…", "wait", "quiet")
READING = Mark("…", "read", "busy")

LEVELS: Mapping[Level, Mark] = {
    Level.FAIL: FAIL,
    Level.WARN: WARN,
    Level.UNKNOWN: UNKNOWN,
    Level.PASS: OK,
    Level.INFO: INFO,
}

TONES: Mapping[str, str] = {
    "fail": "$error",
    "warn": "$warning",
    "unknown": "$secondary",
    "ok": "$success",
    "busy": "$accent",
    "quiet": "$quiet",
}
"""The theme's variable for each tone, for widgets that take styled text rather than lines."""

BAR, BAR_HALF, BAR_REST = "━", "╸", "─"
STEP, FOLDED, OPEN, ARROW, POINTER = "›", "▸", "▾", "→", "▌"

ASCII: Mapping[str, str] = {
    **{
        "✗": "X",
        "▲": "!",
        "✓": "+",
        "·": ".",
        "…": "~",
        "›": ">",
        "▸": ">",
        "▾": "v",
        "→": ">",
        "←": "<",
        "▌": "|",
    },
    **{
        "━": "=",
        "╸": "-",
        "─": "-",
        "│": "|",
        "┃": "|",
        "║": "|",
        "═": "=",
        "╫": "+",
        "╪": "+",
        "╬": "+",
        "▎": "|",
        "▏": "|",
        "▊": "|",
        "▐": "|",
        "▕": "|",
    },
    **{
        "┌": "+",
        "┐": "+",
        "└": "+",
        "┘": "+",
        "╭": "+",
        "╮": "+",
        "╰": "+",
        "╯": "+",
        "├": "+",
        "┤": "+",
        "┬": "+",
    },
    **{
        "┴": "+",
        "┼": "+",
        "▔": "-",
        "▁": "_",
        "▀": "-",
        "▄": "_",
        "█": "#",
        "▓": "#",
        "▒": "#",
        "░": ".",
        "■": "#",
    },
    **{
        "•": "*",
        "●": "*",
        "○": "o",
        "–": "-",
        "−": "-",
        "—": "-",
        "×": "x",
        "±": "~",
        "≤": "<",
        "≥": ">",
        "°": " ",
        "µ": "u",
    },
    **{
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "«": '"',
        "»": '"',
        "§": "S",
        "⭘": "O",
        "⌄": "v",
        "≠": "!",
        "≈": "~",
    },
    **{
        "▇": "#",
        "▆": "#",
        "▅": "#",
        "▃": "_",
        "▂": "_",
        "▉": "#",
        "▋": "#",
        "▍": "|",
        "🔎": "/ ",
        "↑": "^",
        "↓": "v",
    },
}
_TABLE = str.maketrans(dict(ASCII))


def to_ascii(text: str) -> str:
    """The same width in ASCII. What has no twin becomes one `?` per column."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    return text if text.isascii() else "".join(one if one.isascii() else "?" * cell_len(one) for one in text)


class AsciiFilter(LineFilter):
    """The last station before the terminal when only ASCII may reach it."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(one.text), one.style, one.control) for one in segments]


def locale_is_ascii(environment: Mapping[str, str] = os.environ) -> bool:
    """True where the locale names another encoding than UTF-8, or none at all: then the signs would be garbage."""
    said = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    return "utf" not in said.lower()
