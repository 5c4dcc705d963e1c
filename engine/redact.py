"""What never reaches the journal: credentials, wherever they stand in a text.

Each secret is replaced by `[redacted:KIND]`, so that the shape of a line stays readable. Identifiers that are evidence
(hashes, UUIDs, PCI addresses, instance and account ids) stay. The patterns are in `secret_patterns.py`; every one is
linear in the text, and none is tried unless a word it needs occurs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from straggler.engine.secret_patterns import (
    ENDS_IN_SECRET,
    GATES,
    MARK,
    PATTERNS,
    PEM_MARK,
    PEM_REACH,
    SECRET_FLAG,
    Pattern,
)

ROUNDS = 6
"""Passes until nothing changes: taking out one secret can lay bare the start of its neighbour."""

SHORTEST = 8
"""No secret is shorter than this with the word that gives it away; most reasons and error texts are empty."""

LINES_AFTER = 6
"""Lines a secret may stand below the word that gives it away (YAML entries, netrc, arguments one a line)."""

_WIDE = re.compile(r"[A-Za-z0-9+/=]{16,}")
_TAIL = re.compile(r"(?:\\n|\s)*[A-Za-z0-9+/=]+")
_BETWEEN = " \t\r\n\\\"'"
"""What may stand between two lines of a key besides its headers."""


_GATES = tuple((word, frozenset(word)) for word in GATES)


class Redacted(str):
    """Text that has been through `redact`: the journal asks again, and need not search it twice."""

    __slots__ = ()


def redact(text: str) -> str:
    """The text without secrets, marked as such; redacting twice changes nothing more."""
    return text if isinstance(text, Redacted) else Redacted(_redact(text))


def _redact(text: str) -> str:
    if not _suspicious(text):
        return text
    for _ in range(ROUNDS):
        cleaned = _pass(text)
        if cleaned == text:
            break
        text = cleaned
    return text


def counts(text: str) -> dict[str, int]:
    """How many secrets of each kind have been taken out of an already redacted text."""
    return dict(Counter(found[1] for found in MARK.finditer(text)))


def redact_counted(text: str) -> tuple[str, dict[str, int]]:
    """The redacted text, and how many of each kind this call took out."""
    cleaned = redact(text)
    if cleaned == text:
        return text, {}
    return cleaned, dict(Counter(counts(cleaned)) - Counter(counts(text)))


def redact_tree(
    value: Any, clean: Callable[[Any], Any] = lambda leaf: redact(leaf) if isinstance(leaf, str) else leaf
) -> Any:
    """The same for plain data (dicts, lists, scalars), where the name of a secret stands in the key or the flag before it."""
    if isinstance(value, Mapping):
        return {clean(key): _named(str(key), item, clean) for key, item in value.items()}
    if isinstance(value, list):
        flags = [
            False,
            *(isinstance(one, str) and SECRET_FLAG.fullmatch(one) is not None for one in value[:-1]),
        ]
        return [
            "[redacted:secret]"
            if flag and isinstance(one, str) and not one.startswith("-")
            else redact_tree(one, clean)
            for flag, one in zip(flags, value, strict=False)
        ]
    return clean(value)


def _named(key: str, value: Any, clean: Callable[[Any], Any]) -> Any:
    if isinstance(value, str) and value and ENDS_IN_SECRET.search(key):
        return "[redacted:secret]"
    return redact_tree(value, clean)


def _suspicious(text: str) -> bool:
    if len(text) < SHORTEST:
        return False
    low = text.lower()
    # A word whose letters are not all in the text is not in it either: most tool output has few letters.
    letters = frozenset(low)
    return any(word in low for word, needed in _GATES if needed <= letters)


def _pass(text: str) -> str:
    low = _lower(text)
    if "private key" in low:
        text = _without_keys(text)
        low = _lower(text)
    for pattern in PATTERNS:
        if windows := _windows(low, pattern.words):
            cleaned = _in_windows(text, windows, pattern)
            if cleaned != text:
                text, low = cleaned, _lower(cleaned)
    return text


def _lower(text: str) -> str:
    """Lower case, letter for letter, so that a place in it is the same place in the text."""
    low = text.lower()
    return (
        low if len(low) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)
    )


def _windows(low: str, words: tuple[str, ...]) -> list[tuple[int, int]]:
    """The stretches a match can lie in: each line with one of the words, and a few lines more. In order, disjoint."""
    found: list[tuple[int, int]] = []
    for word in words:
        at = low.find(word)
        while at >= 0:
            line = end = _line_end(low, at)
            for _ in range(LINES_AFTER):
                end = _line_end(low, end + 1)
            found.append((max(0, low.rfind("\n", 0, at)), end))
            at = low.find(word, line)
    found.sort()
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _in_windows(text: str, windows: list[tuple[int, int]], pattern: Pattern) -> str:
    replace = _replacer(pattern)
    out: list[str] = []
    at = 0
    for start, end in windows:
        out += [text[at:start], pattern.regex.sub(replace, text[start:end])]
        at = end
    return "".join([*out, text[at:]])


def _replacer(pattern: Pattern) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        span = pattern.span(found)
        if span is None:
            return found[0]
        start, end = span[0] - found.start(), span[1] - found.start()
        return f"{found[0][:start]}[redacted:{pattern.kind}]{found[0][end:]}"

    return replace


def _without_keys(text: str) -> str:
    """Private key blocks go from BEGIN to END; where one mark is missing, the base64 next to the other goes."""
    out: list[str] = []
    at = 0
    for start, end in _key_spans(text):
        if end > at:
            out += [text[at : max(start, at)], "[redacted:private-key]"]
            at = end
    return "".join([*out, text[at:]])


def _key_spans(text: str) -> Iterator[tuple[int, int]]:
    marks = list(PEM_MARK.finditer(text))
    for at, mark in enumerate(marks):
        before = marks[at - 1] if at else None
        after = marks[at + 1] if at + 1 < len(marks) else None
        if mark[1] == "BEGIN":
            upto = after.start() if after else len(text)
            whole = after is not None and after[1] == "END" and upto - mark.end() <= PEM_REACH
            yield mark.start(), after.end() if whole and after else _after(text, mark.end(), upto)
        else:
            yield _before(text, before.end() if before else 0, mark.start()), mark.end()


def _after(text: str, at: int, upto: int) -> int:
    """The end of the base64 that follows a BEGIN whose END was cut off."""
    piece = text[at : min(upto, at + PEM_REACH)]
    end = 0
    for run in _WIDE.finditer(piece):
        if len(piece[end : run.start()].strip(_BETWEEN)) > 60:
            break
        end = run.end()
    tail = _TAIL.match(piece, end) if end else None
    return at + (tail.end() if tail else end)


def _before(text: str, floor: int, at: int) -> int:
    """The start of the base64 lines that precede an END whose BEGIN was cut off."""
    floor = max(floor, at - PEM_REACH)
    piece = text[floor:at]
    start = len(piece)
    for run in reversed(list(_WIDE.finditer(piece))):
        if len(piece[run.end() : start].strip(_BETWEEN)) > 15:
            break
        start = run.start()
    return floor + start
