"""Captured bytes as clean lines: any line end, no escape sequences, whatever the encoding."""

from __future__ import annotations

import codecs
import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_LINE_END = re.compile(r"\r\n|\n|\r")


def clean(data: bytes) -> str:
    """Text with `\\n` as its only line end. A lone CR (a progress bar's) ends a line too; bytes that are no UTF-8 are replaced."""
    wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    text = data.decode("utf-16" if wide else "utf-8-sig", "replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = _LINE_END.sub("\n", text)
    return text


def first_words(text: str, limit: int = 160) -> str:
    """The first line that says anything, cut to `limit` characters: what a reader quotes of a text it does not know."""
    line = next((one.strip() for one in text.split("\n") if one.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"
