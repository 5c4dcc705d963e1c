"""CSV of pairs: `a,b,busbw_gbs[,size_bytes]`, with or without a header line.

A header may name the columns in another order, name `latency_us` instead of a bandwidth, and add `status`. Several rows of one
pair and size are several runs; rows of other sizes join the run they stand beside.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

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
_SIZE = re.compile(r"(?a)(\d{1,15})(?:\.0+)? ?([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_NOT_A_VALUE = re.compile(
    r"(?a)|-|na|n/a|nan|[+-]?inf|null|none|failed|failure|fail|err(?:or)?|timeout|timed ?out|hung|hang|cancelled|truncated|implausible"
    r"|wrong|killed",
    re.IGNORECASE,
)
_STATES = {one.value: one for one in RunState}


class _Measured(NamedTuple):
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
    table = _Table(columns or _PLAIN, named=columns is not None)
    cut = _cut(rows)
    measured = []
    for number, row in enumerate(rows, 1):
        one = table.measured(row, cut=cut and number == len(rows))
        if one is None and not table.named:
            return []
        measured.append(
            one or _Measured((), NO_SIZE, None, RunState.FAILED, f"row not understood: {row}"[:200])
        )
    return _runs(measured, source, Metric.LATENCY if columns and "latency" in columns else Metric.BUSBW)


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


class _Table:
    """Where the columns are, and the names seen so far: in half a million rows there are a thousand of them."""

    def __init__(self, at: Mapping[str, int], *, named: bool) -> None:
        """`named`: a header named the columns, so a value is meant to be one."""
        self.named = named
        self.a, self.b, self.size, self.status = at["a"], at["b"], at.get("size"), at.get("status")
        self.value = at["latency"] if "latency" in at else at["busbw"]
        self.hosts: dict[str, bool] = {}
        self.sizes: dict[str, int | None] = {"": NO_SIZE}

    def measured(self, row: Sequence[str], *, cut: bool) -> _Measured | None:
        """One row; None for one that is no row of such a table."""
        a, b = _cell(row, self.a), _cell(row, self.b)
        if not (self.is_host(a) and self.is_host(b)):
            # A last row that is cut may not even have its second name; one name is no node alone.
            begun = cut and self.is_host(a)
            return _Measured((), NO_SIZE, None, RunState.TRUNCATED, "the last row is cut") if begun else None
        hosts = (a,) if a == b else (a, b)
        if cut:
            return _Measured(hosts, NO_SIZE, None, RunState.TRUNCATED, "the last row of the file is cut")
        size, given = self.size_of(_cell(row, self.size)), _cell(row, self.value)
        if size is None or not (_VALUE.fullmatch(given) or _NOT_A_VALUE.fullmatch(given)):
            why = f"row not understood: {','.join(row)}"[:200]
            return _Measured(hosts, NO_SIZE, None, RunState.FAILED, why) if self.named else None
        return _judged(hosts, size, given, _cell(row, self.status).lower())

    def is_host(self, name: str) -> bool:
        known = self.hosts.get(name)
        if known is None:
            known = self.hosts[name] = _HOST.fullmatch(name) is not None
        return known

    def size_of(self, text: str) -> int | None:
        """Bytes of `1073741824`, `1073741824.0`, `1G` or `1 GiB`; None for what is no size."""
        if text not in self.sizes:
            found = _SIZE.fullmatch(text)
            self.sizes[text] = int(found[1]) << _SHIFTS[found[2].upper()] if found else None
        return self.sizes[text]


def _cell(row: Sequence[str], where: int | None) -> str:
    return row[where] if where is not None and where < len(row) else ""


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
    again: Counter[tuple[tuple[str, ...], int]] = Counter()
    order: list[tuple[_Measured, Mapping[int, float]]] = []
    for one in measured:
        if one.value is None:
            order.append((one, NO_POINTS))
            continue
        mine = runs.get(one.hosts)
        if mine is None:
            mine = runs[one.hosts] = []
        nth = 0
        if mine and one.size in mine[0]:
            again[one.hosts, one.size] += 1
            nth = again[one.hosts, one.size]
        if nth == len(mine):
            mine.append({})
            order.append((one, MappingProxyType(mine[nth])))
        mine[nth][one.size] = one.value
    return [Run(source, TOOL, one.hosts, one.state, one.why, metric, points) for one, points in order]
