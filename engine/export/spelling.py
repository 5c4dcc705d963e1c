"""Text reports in ASCII, for a stdout that cannot spell more."""

from __future__ import annotations

_ASCII = str.maketrans(
    {
        **{"·": ".", "…": "~", "°": " ", "–": "-", "—": "-", "−": "-", "→": ">", "§": "S", "≥": ">"},
        **{
            "×": "x",
            "’": "'",
            "│": "|",
            "─": "-",
            "┼": "+",
            "║": "|",
            "═": "=",
            "╫": "+",
            "╪": "+",
            "╬": "+",
            "±": "+",
            "µ": "u",
            "✗": "X",
            "▲": "!",
        },
    }
)


def to_ascii(text: str) -> str:
    """The signs our reports use, each as its ASCII neighbour of the same width. What a cluster said is left as it is."""
    return text.translate(_ASCII)
