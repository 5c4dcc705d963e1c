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

_WIDE = re.compile(r"[A-Za-z0-9+/=]{16,}")


def redact(text: str) -> str:
    """The text without secrets; redacting twice changes nothing more."""
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
    low = text.lower()
    return any(word in low for word in GATES)


def _pass(text: str) -> str:
    low = text.lower()
    if "private key" in low:
        text = _without_keys(text)
    for pattern in PATTERNS:
        if any(word in low for word in pattern.words):
            text = pattern.regex.sub(_replacer(pattern), text)
    return text


def _replacer(pattern: Pattern) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        name, value = pattern.value(found)
        if value is None:
            return found[0]
        whole, (start, end) = found[0], found.span(name)
        start, end = start - found.start(), end - found.start()
        return f"{whole[:start]}[redacted:{pattern.kind}]{whole[start + len(value) : end]}{whole[end:]}"

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
    begun: re.Match[str] | None = None
    for mark in PEM_MARK.finditer(text):
        if mark[1] == "BEGIN":
            if begun is not None:
                yield begun.start(), _after(text, begun.end())
            begun = mark
        elif begun is not None and mark.start() - begun.end() <= PEM_REACH:
            yield begun.start(), mark.end()
            begun = None
        else:
            if begun is not None:
                yield begun.start(), _after(text, begun.end())
                begun = None
            yield _before(text, mark.start()), mark.end()
    if begun is not None:
        yield begun.start(), _after(text, begun.end())


def _after(text: str, at: int) -> int:
    """The end of the base64 that follows a BEGIN whose END was cut off."""
    piece = text[at : at + PEM_REACH]
    end = 0
    for run in _WIDE.finditer(piece):
        if len(piece[end : run.start()].strip(" \t\r\n\\nr\"'")) > 60:
            break
        end = run.end()
    tail = re.compile(r"(?:\\n|\s)*[A-Za-z0-9+/=]+").match(piece, end) if end else None
    return at + (tail.end() if tail else end)


def _before(text: str, at: int) -> int:
    """The start of the base64 lines that precede an END whose BEGIN was cut off."""
    start = at
    floor = max(0, at - PEM_REACH)
    for run in reversed(list(_WIDE.finditer(text[floor:at]))):
        if len(text[floor + run.end() : start].strip(" \t\r\n\\nr\"'")) > 15:
            break
        start = floor + run.start()
    return start
