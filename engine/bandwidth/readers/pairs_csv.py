"""CSV of pairs: `a,b,busbw_gbs[,size_bytes]`, with or without a header line.

A header may name the columns in another order, name `latency_us` instead of a bandwidth, and add `status`. Several rows of one
pair and size are several runs; rows of other sizes join the run they stand beside.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from straggler.engine.bandwidth.model import NO_POINTS, Metric, Run, RunState

TOOL = "csv"

NO_SIZE = 0
"""Stands for a message size that was not given."""

_NAMES: Mapping[str, frozenset[str]] = {
    "a": frozenset({"a", "node_a", "host_a", "node1", "host1", "src", "source", "from"}),
    "b": frozenset({"b", "node_b", "host_b", "node2", "host2", "dst", "dest", "destination", "to"}),
    "busbw": frozenset({"busbw_gbs", "busbw", "busbw_gbps", "bus_bw", "bandwidth_gbs"}),
    "latency": frozenset({"latency_us", "usec", "latency"}),
    "size": frozenset({"size_bytes", "size", "bytes"}),
    "status": frozenset({"status", "state"}),
}
_PLAIN = {"a": 0, "b": 1, "busbw": 2, "size": 3}
_HOST = re.compile(r"(?a)[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
_VALUE = re.compile(r"(?a)[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_SIZE = re.compile(r"(?a)\d{1,19}")
_NOT_A_VALUE = re.compile(
    r"(?a)|-|na|n/a|nan|[+-]?inf|null|none|fail(?:ed|ure)?|err(?:or)?|timeout|timed ?out|hung|hang|cancelled|truncated|implausible"
    r"|wrong|killed",
    re.IGNORECASE,
)
_STATES = {one.value: one for one in RunState}


@dataclass(frozen=True, slots=True)
class _Measured:
    hosts: tuple[str, ...]
    size: int
    value: float | None
    state: RunState
    why: str


def read(text: str, source: str) -> list[Run]:
    """The runs in the order of their first rows. Without a header every line has to be such a row, or the file is something else."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    if not lines or lines[0].count(",") < 2:
        return []
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, strict=True)]
    except csv.Error:
        return []
    columns = _columns(rows[0])
    if columns is not None:
        rows = rows[1:]
    at = columns or _PLAIN
    cut = _cut(rows)
    measured = []
    for number, row in enumerate(rows):
        one = _measured(row, at, cut=cut and number == len(rows) - 1, named=columns is not None)
        if one is None and columns is None:
            return []
        measured.append(
            one or _Measured((), NO_SIZE, None, RunState.FAILED, f"row not understood: {row}"[:200])
        )
    return _runs(measured, source, Metric.LATENCY if "latency" in at else Metric.BUSBW)


def _columns(first: Sequence[str]) -> Mapping[str, int] | None:
    """Where a header line says each column is; None where the first line is none."""
    words = [word.lower() for word in first]
    at = {
        name: next(number for number, word in enumerate(words) if word in spelled)
        for name, spelled in _NAMES.items()
        if any(word in spelled for word in words)
    }
    return at if {"a", "b"} <= at.keys() and ("busbw" in at or "latency" in at) else None


def _cut(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the last row has fewer cells than every other one: the file was cut within it."""
    return len(rows) > 1 and len(rows[-1]) < min(len(row) for row in rows[:-1])


def _measured(row: Sequence[str], at: Mapping[str, int], *, cut: bool, named: bool) -> _Measured | None:
    """One row; None for one that is no row of such a table. `named`: a header named the columns, so a value is meant to be one."""

    def cell(name: str) -> str | None:
        where = at.get(name)
        return row[where] if where is not None and where < len(row) else None

    a, b = cell("a"), cell("b")
    if a is None or b is None or not _HOST.fullmatch(a) or not _HOST.fullmatch(b):
        # A last row that is cut may not even have its second name; one name is no node alone.
        begun = cut and a is not None and _HOST.fullmatch(a)
        return _Measured((), NO_SIZE, None, RunState.TRUNCATED, "the last row is cut") if begun else None
    hosts = tuple(dict.fromkeys((a, b)))
    given = cell("latency" if "latency" in at else "busbw")
    size = cell("size")
    if size and not _SIZE.fullmatch(size):
        return None
    if cut:
        return _Measured(hosts, NO_SIZE, None, RunState.TRUNCATED, "the last row of the file is cut")
    if given is None or not (_VALUE.fullmatch(given) or _NOT_A_VALUE.fullmatch(given)):
        return (
            _Measured(hosts, NO_SIZE, None, RunState.FAILED, f"row not understood: {given}")
            if given and named
            else None
        )
    return _judged(hosts, int(size) if size else NO_SIZE, given, (cell("status") or "").lower())


def _judged(hosts: tuple[str, ...], size: int, given: str, status: str) -> _Measured:
    if status in _STATES and _STATES[status] is not RunState.OK:
        return _Measured(hosts, size, None, _STATES[status], f"its status is {status}")
    if not _VALUE.fullmatch(given):
        word = given.lower()
        why = f"the row says {word}" if word not in ("", "-") else "the row has no value"
        return _Measured(hosts, size, None, _STATES.get(word, RunState.FAILED), why)
    value = float(given)
    if not 0 < value < 1e300:
        return _Measured(hosts, size, None, RunState.FAILED, f"{given} is no bandwidth: nothing was measured")
    return _Measured(hosts, size, value, RunState.OK, "")


def _runs(measured: Sequence[_Measured], source: str, metric: Metric) -> list[Run]:
    """Each row goes to the first run of its pair that has not got its size yet; a row without a value is a run of its own."""
    runs: dict[tuple[str, ...], list[dict[int, float]]] = {}
    seen: Counter[tuple[tuple[str, ...], int]] = Counter()
    order: list[tuple[_Measured, dict[int, float] | None]] = []
    for one in measured:
        if one.value is None:
            order.append((one, None))
            continue
        mine = runs.setdefault(one.hosts, [])
        nth = seen[one.hosts, one.size]
        seen[one.hosts, one.size] += 1
        if nth == len(mine):
            mine.append({})
            order.append((one, mine[nth]))
        mine[nth][one.size] = one.value
    return [
        Run(
            source,
            TOOL,
            one.hosts,
            one.state,
            one.why,
            metric,
            NO_POINTS if points is None else MappingProxyType(points),
        )
        for one, points in order
    ]
