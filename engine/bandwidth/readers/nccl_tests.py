"""nccl-tests' text as facts and as runs. "Avg bus bandwidth" is a fact and never a value: it mixes message sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from straggler.engine.bandwidth.model import NO_POINTS, Metric, Run, RunState
from straggler.engine.bandwidth.readers import endings, names
from straggler.engine.bandwidth.readers.digits import COARSE, sharp
from straggler.engine.bandwidth.readers.nccl_text import MARK, WORDS, Failure, Reading, stretches
from straggler.engine.bandwidth.readers.rows import KINDS_OF_TYPE, LIKE_A_ROW, Cell, Row

TOOL = "nccl-tests"

ROUNDING = MappingProxyType({"half": 1e-2, "bfloat16": 1e-2, "float": 1e-5, "double": 1e-12})
"""The old `error` column is the largest deviation; up to these the tool itself calls it rounding.

deltaMaxValue() in github.com/NVIDIA/nccl-tests src/common.cu before 2.13, read 2026-12-01. A number of 1 or more is a count.
"""


@dataclass(frozen=True, slots=True)
class NcclTests:
    """The facts of one capture. Bandwidths in GB/s as printed; None: not printed or not readable, never 0."""

    version: str | None
    collective: str | None
    ranks_listed: int
    hosts: tuple[str, ...]
    world_size: int | None
    has_redop: bool | None
    has_root: bool | None
    has_in_place: bool | None
    rows: int
    first_row: Row | None
    last_row: Row | None
    max_busbw_gbps: float | None
    avg_busbw_gbps: float | None
    out_of_bounds: int | None
    complete: bool
    nccl_version: str | None
    failure: Failure | None


def recognise(text: str) -> bool:
    """Whether any line is nccl-tests' own: a whole row counts, as the rest may be cut off."""
    if any(word in text for word in WORDS) and MARK.search(text):
        return True
    return any(kind in text for kind in KINDS_OF_TYPE) and LIKE_A_ROW.search(text) is not None


def facts(one: Reading) -> NcclTests:
    columns = one.columns
    return NcclTests(
        version=one.version,
        collective=one.collective,
        ranks_listed=len(one.ranks),
        hosts=one.hosts,
        world_size=one.world,
        has_redop=columns.redop if columns else None,
        has_root=columns.root if columns else None,
        has_in_place=columns.placements > 1 if columns else None,
        rows=len(one.rows),
        first_row=one.rows[0] if one.rows else None,
        last_row=one.rows[-1] if one.rows else None,
        max_busbw_gbps=max(
            (cell[2] for row in one.rows for cell in (row.oop, row.ip) if cell and cell[2] is not None),
            default=None,
        ),
        avg_busbw_gbps=one.average,
        out_of_bounds=one.out_of_bounds,
        complete=one.complete,
        nccl_version=one.nccl_version,
        failure=one.failure,
    )


def read(text: str, source: str) -> list[Run]:
    """One run per stretch of output; none where the text is not nccl-tests' at all."""
    if not recognise(text):
        return []
    return [run_of(one, source) for one in stretches(text)]


def run_of(one: Reading, source: str) -> Run:
    state, why = state_of(one)
    hosts = names.settle(one.hosts, one.others, source, whole=one.world == len(one.ranks))
    trusted = not one.mixed and not (one.columns and one.columns.cpu_time)
    ranks = one.world if one.world is not None else len(one.ranks) or None
    return Run(
        source=source,
        tool=TOOL,
        hosts=hosts,
        state=state,
        why=why,
        metric=Metric.BUSBW,
        points=points(one.rows, ranks, one.collective) if trusted else NO_POINTS,
        collective=one.collective,
        ranks=ranks,
    )


def points(
    rows: Sequence[Row], ranks: int | None = None, collective: str | None = None
) -> MappingProxyType[int, float]:
    """Bus bandwidth by size: out of place, in place where that is N/A; of repeated cycles the best.

    0.00 is no value: too small to be printed, or a single rank, which has no bus.
    """
    best: dict[int, float] = {}
    cells = [(row.size, row.oop if row.oop[2] is not None or row.ip is None else row.ip) for row in rows]
    # On a fast network only the smallest messages are coarse, and nobody compares those.
    slow = max((cell[2] or 0.0 for _, cell in cells), default=0.0) < COARSE
    for size, cell in cells:
        value = sharp(size, cell[0], cell[1], cell[2], ranks, collective) if cell[2] and slow else cell[2]
        if value and size and value > best.get(size, 0.0):
            best[size] = value
    return MappingProxyType(best)


def state_of(one: Reading) -> tuple[RunState, str]:
    """How the run ended, and why it counts as that. The worst that can be said of it wins."""
    if one.mixed:
        return RunState.FAILED, "rows of several runs are mixed, so none of them can be trusted"
    if wrong(one):
        return RunState.FAILED, "computed wrong results"
    if one.failure:
        return RunState.FAILED, f"failed in NCCL: {one.failure.text} ({one.failure.where})"
    if not one.complete or not one.settled:
        how, line = endings.sign(one.text)
        if how:
            return RunState.FAILED, f"{how}: {line}"
        if not one.rows:
            return RunState.FAILED, "ended or was cut before its first result"
        return RunState.TRUNCATED, "its output stops before its closing lines"
    if one.columns and one.columns.cpu_time:
        return RunState.IMPLAUSIBLE, "measured the CPU's time (-C), which says nothing about the wire"
    if not one.rows:
        return RunState.FAILED, "ended without a single result"
    if single_rank(one):
        return RunState.OK, "a single rank has no bus bandwidth"
    if one.printed_error:
        return RunState.OK, f"nccl-tests printed an error: {one.printed_error}"
    return RunState.OK, ""


def wrong(one: Reading) -> bool:
    """A wrong value in any row, or the tool's own count of values out of bounds."""
    if one.out_of_bounds or one.out_of_bounds_failed:
        return True
    return any(_wrong(cell, row.type) for row in one.rows for cell in (row.oop, row.ip) if cell)


def _wrong(cell: Cell, kind: str) -> bool:
    count = cell[3]
    return count is not None and (count >= 1 or count > ROUNDING.get(kind, 0.0))


def single_rank(one: Reading) -> bool:
    """One rank: bus bandwidth is 0 though data moved. With two ranks or more it is at least half the algorithm's bandwidth."""
    if one.world is not None:
        return one.world == 1
    cells = [cell for row in one.rows for cell in (row.oop, row.ip) if cell]
    return (
        bool(cells)
        and not any(cell[2] for cell in cells)
        and any(cell[1] is not None and cell[1] > 0.02 for cell in cells)
    )


def as_json(given: NcclTests) -> dict[str, Any]:
    """The facts under the names scripts know."""
    shown: dict[str, Any] = {name: getattr(given, name) for name in NcclTests.__slots__}
    shown["hosts"] = list(given.hosts)
    shown["first_row"], shown["last_row"] = _row(given.first_row), _row(given.last_row)
    if given.failure:
        shown["failure"] = {
            "text": given.failure.text,
            "where": given.failure.where,
            "hosts": list(given.failure.hosts),
        }
    return shown


def _row(one: Row | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "size": one.size,
        "count": one.count,
        "type": one.type,
        "redop": one.redop,
        "root": one.root,
        "oop": list(one.oop),
        "ip": list(one.ip) if one.ip else None,
    }
