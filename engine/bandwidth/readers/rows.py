"""The table of nccl-tests: its columns, and one row of it however it is prefixed, broken or cut.

Columns by version: size count type [redop] [root], then per placement time algbw busbw and #wrong (before 2.13: error), and with
per-iteration reports four more. Sources: github.com/NVIDIA/nccl-tests src/util.cu and older src/*.cu, read 2026-12-01.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_TYPES = r"u?int(?:8|32|64)|u?char|int|half|float|double|bfloat16|f8e[45]m[23]|fp8_?e[45]m[23]|float(?:8|16|32|64)\w*"
KINDS_OF_TYPE = ("float", "int", "char", "half", "double", "f8e", "fp8")
"""One of these stands in every name of a type."""

START = re.compile(rf"(?a)(?<![\d.])(\d{{1,20}})\s+(\d{{1,20}})\s+({_TYPES})(?=\s|$)")
"""Where a row begins: size, count and type, after whatever a launcher put in front."""

_NUMBER = r"-?(?:[\d.]+(?:[eE][+-]?\d+)?|inf|nan|N/A)"
_NUMBERS = re.compile(rf"(?a){_NUMBER}(?:\s+{_NUMBER})*(?=\s|$|[A-DF-Za-df-z\[])")
"""Values up to the end, a blank, or a word that another writer put right behind one (an `e` may belong to a number that is cut)."""

LIKE_A_ROW = re.compile(rf"{START.pattern}\s+(?:[a-z]+\s+)?{_NUMBER}(?:\s+{_NUMBER}){{3,}}")
_WORD = re.compile(r"(?a)[a-z]+")
_TAG = re.compile(r"(?a)\s*(?:\[\d+,\d+\]<std\w+>:|\d+: )?\s*")

Cell = tuple[float | None, float | None, float | None, float | None]
"""Time in µs, algorithm and bus bandwidth in GB/s, and wrong values (or the old error); None for N/A, inf and nan."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table has between type and the first time, and how many values a placement prints."""

    redop: bool
    root: bool
    placements: int
    per_placement: int = 4
    cpu_time: bool = False

    @property
    def numbers(self) -> int:
        return self.root + self.placements * self.per_placement


@dataclass(frozen=True, slots=True)
class Row:
    """One whole line of the table."""

    size: int
    count: int
    type: str
    redop: str | None
    root: int | None
    oop: Cell
    ip: Cell | None


@dataclass(frozen=True, slots=True)
class Partial:
    """A row whose values so far are too few: another writer broke in, a terminal wrapped it, or it is cut."""

    head: tuple[int, int, str]
    redop: str | None
    numbers: tuple[str, ...]


_HEADER = re.compile(r"(?a)(?:size|bytes)\s+(?:count|N)\s+type\b(.*)")


def header(line: str) -> Columns | None:
    """The columns a header line names, or None for any other line."""
    found = _HEADER.search(line)
    if found is None:
        return None
    words = found[1].split()
    # A header that is cut or wrapped may end before its second busbw.
    placements = max(words.count("busbw"), words.count("time") + words.count("cputime"))
    extra = 4 if "i_min" in words else 0
    return Columns(
        "redop" in words or "op" in words,
        "root" in words,
        placements or 2,
        4 + extra,
        "cputime" in words,
    )


def row(line: str, columns: Columns | None) -> Row | Partial | None:
    """A row, the beginning of one, or None for a line that is neither."""
    start = START.search(line)
    if start is None:
        return None
    rest = line[start.end() :].strip()
    word = _WORD.match(rest)
    redop = None
    if word and word[0] not in ("inf", "nan"):
        redop, rest = word[0], rest[word.end() :].strip()
    found = _NUMBERS.match(rest)
    numbers = tuple(found[0].split()) if found else ()
    return complete(Partial((int(start[1]), int(start[2]), start[3]), redop, numbers), columns)


def more(partial: Partial, line: str, columns: Columns | None) -> Row | Partial | None:
    """A broken row together with the line that may hold its rest; None where the line is something else."""
    rest = line[_match_end(_TAG, line) :].rstrip()
    found = _NUMBERS.match(rest)
    if not found or (found.end() < len(rest) and columns is None):
        return None
    return complete(
        Partial(partial.head, partial.redop, (*partial.numbers, *found[0].split())),
        columns,
    )


def _match_end(pattern: re.Pattern[str], line: str) -> int:
    found = pattern.match(line)
    return found.end() if found else 0


def complete(partial: Partial, columns: Columns | None) -> Row | Partial:
    """The row, when there are exactly as many values as the table has columns."""
    fits = columns or guessed(partial)
    if (
        fits is None
        or len(partial.numbers) != fits.numbers
        or (columns and not columns.redop and partial.redop)
    ):
        return partial
    numbers = partial.numbers[fits.root :]
    try:
        root = int(partial.numbers[0]) if fits.root else None
    except ValueError:
        return partial
    oop, *ip = (
        tuple(_value(one) for one in numbers[at : at + 4])
        for at in range(0, len(numbers), fits.per_placement)
    )
    if any(len(one) != 4 for one in (oop, *ip)):
        return partial
    return Row(*partial.head, partial.redop, root, _cell(oop), _cell(ip[0]) if ip else None)


def _cell(values: tuple[float | None, ...]) -> Cell:
    time, algbw, busbw, wrong = values
    return time, algbw, busbw, wrong


def guessed(partial: Partial) -> Columns | None:
    """Columns of a table without its header, by the number of values: a root is the one that makes it odd."""
    count = len(partial.numbers)
    if count not in (4, 5, 8, 9, 16, 17):
        return None
    per = 8 if count in (16, 17) else 4
    return Columns(partial.redop is not None, count % 2 == 1, count // per, per)


def _value(text: str) -> float | None:
    """The number, or None for N/A, inf, nan and figures that make no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
