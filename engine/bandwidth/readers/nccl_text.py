"""nccl-tests' own text, line by line: what each run of a capture printed, however it is prefixed, mixed, broken or cut."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from straggler.engine.bandwidth.readers import rows
from straggler.engine.bandwidth.readers.rows import Columns, Partial, Row
from straggler.engine.bandwidth.readers.taking_part import RANK, Others, Rank, rank

_VERSION = re.compile(r"(?a)nccl-tests version (\S+)")
_STARTING = re.compile(r"(?a)Collective test starting: (?:\S*/)?(\w+?)_perf")
_THREADS = re.compile(r"(?a)# nThread (\d{1,18}) nGpus (\d{1,18}) minBytes")
_VALIDATION = re.compile(r"(?a)validation: (\d{1,18})")
_BOUNDS = re.compile(r"(?a)# Out of bounds values\s*:\s*(\d{1,18})\s+(OK|FAILED)")
_AVERAGE = re.compile(r"(?a)# Avg bus bandwidth\s*:\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?|-?nan|inf)(\s|$)")
_REDUCED = re.compile(r"(?a)Reducing maxBytes to (\d{1,18})")
_NCCL_VERSION = re.compile(r"(?a)NCCL version (\d\S*)")
_FAILURE = re.compile(r"(?a)(?:(?<![\w.-])([\w.-]+): )?(?:Test )?NCCL failure (\S+:\d+) '([^']*)")
_PRINTED_ERROR = re.compile(r"(?a)# error: (.+)")

MARK = re.compile(
    r"(?a)nccl-tests version \S|Collective test starting: |# nThread \d+ nGpus|# Out of bounds values|# Avg bus bandwidth"
    r"|(?:Test )NCCL failure \S+:\d+|\bRank\s+\d+\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s"
    r"|(?:size|bytes)\s+(?:count|N)\s+type\b.*busbw"
)
"""Any one of these makes a text nccl-tests' output; a row of its table does too."""

WORDS = (
    "nccl-tests version",
    "Collective test",
    "# nThread",
    "# Out of bounds",
    "# Avg bus",
    "NCCL failure",
    "Rank",
    "busbw",
)
"""One of these stands in every text that MARK knows: looking for them is much faster."""


_BODY = re.compile(rf"{RANK.pattern}|# Avg bus bandwidth|Test (?:NCCL |CUDA )?failure \S+:\d+")
"""What only a run that has begun prints."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first failure line: its text, file:line, and every host that printed one."""

    text: str
    where: str
    hosts: tuple[str, ...]


@dataclass(slots=True)
class Reading:
    """What one stretch of output says. `first_line` counts from 0; `text` is the stretch itself, cleaned.

    `settled`: the average's line is whole, so nothing of the table can be missing. `world`: number of ranks, None unless the list
    is whole or another line says it. `mixed`: its rows cannot all be of one run. `others`: hosts that other lines speak of.
    """

    first_line: int
    text: str
    version: str | None = None
    collective: str | None = None
    ranks: list[Rank] = field(default_factory=list)
    columns: Columns | None = None
    rows: list[Row] = field(default_factory=list)
    out_of_bounds: int | None = None
    out_of_bounds_failed: bool = False
    average: float | None = None
    averages: int = 0
    settled: bool = False
    failure: Failure | None = None
    reduced: int | None = None
    validation: bool | None = None
    nccl_version: str | None = None
    world: int | None = None
    mixed: bool = False
    printed_error: str = ""
    others: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.host for one in self.ranks))

    @property
    def complete(self) -> bool:
        """Both closing lines are there."""
        return self.out_of_bounds is not None and self.averages > 0


def stretches(text: str) -> list[Reading]:
    """One reading per run in the text, in order. A text with no sign of nccl-tests gives none."""
    lines = text.split("\n")
    starts = list(_starts(lines))
    if not starts:
        return []
    ends = [*starts[1:], len(lines)]
    starts[0] = 0
    return [
        _read(lines[start:end], start, last=end == len(lines))
        for start, end in zip(starts, ends, strict=True)
    ]


def whole(text: str) -> Reading:
    """The text as one stretch, for its facts; `mixed` only where the rows of a single run are."""
    parts = stretches(text)
    if len(parts) == 1:
        return parts[0]
    one = _read(text.split("\n"), 0, last=True)
    one.mixed = any(part.mixed for part in parts)
    return one


def _starts(lines: Sequence[str]) -> Iterator[int]:
    """Where runs begin: at the first sign; at an opening line after what only a run that has begun prints; at a row after an end."""
    begun = body = closed = False
    opening = -1
    for at, line in enumerate(lines):
        opens = "# nThread " in line or "nccl-tests version " in line or "Collective test starting" in line
        if opens and (opening < 0 or body):
            yield at
            begun, body, closed, opening = True, False, False, at
            continue
        is_row = rows.START.search(line) is not None
        if not begun and (is_row or MARK.search(line)):
            yield at
            begun = True
        elif closed and (is_row or RANK.search(line)):
            yield at
            closed = False
        if begun and not opens and (is_row or _BODY.search(line)):
            body, opening = True, max(opening, 0)
            closed = closed or _AVERAGE.search(line) is not None


def _read(lines: Sequence[str], first_line: int, *, last: bool) -> Reading:
    one = Reading(first_line, "\n".join(lines))
    failures: list[Failure] = []
    others = Others()
    for line in lines:
        _facts(one, line, failures, others)
    others.note_end(lines, last=last)
    if last and lines and (found := _AVERAGE.search(lines[-1])) and not found[2]:
        one.settled = False
    if failures:
        hosts = tuple(dict.fromkeys(host for each in failures for host in each.hosts))
        one.failure = Failure(failures[0].text, failures[0].where, hosts)
    one.columns = one.columns or _columns(lines)
    one.rows = list(_rows(lines, one.columns))
    one.world, one.others = others.world(one.ranks), others.beside(one.ranks)
    one.mixed = _mixed(one)
    return one


def _facts(one: Reading, line: str, failures: list[Failure], others: Others) -> None:
    if "#" in line:
        _comment(one, line, others)
    if "Rank" in line and (listed := rank(line)):
        one.ranks.append(listed)
    if "failure" in line and (found := _FAILURE.search(line)):
        hosts = (found[1],) if found[1] else ()
        failures.append(Failure(found[3].split("(run with")[0].strip(), found[2], hosts))
        others.hosts.update(dict.fromkeys(hosts))
    if one.nccl_version is None and "NCCL version" in line and (found := _NCCL_VERSION.search(line)):
        one.nccl_version = found[1]
    others.note(line, listing=bool(one.ranks))


def _comment(one: Reading, line: str, others: Others) -> None:
    if one.version is None and (found := _VERSION.search(line)):
        one.version = found[1]
    if one.collective is None and (found := _STARTING.search(line)):
        one.collective = found[1]
    if found := _THREADS.search(line):
        others.per_process = max(1, int(found[1]) * int(found[2]))
        if checked := _VALIDATION.search(line):
            one.validation = checked[1] != "0"
    if found := _BOUNDS.search(line):
        one.out_of_bounds = int(found[1])
        one.out_of_bounds_failed = one.out_of_bounds_failed or found[2] == "FAILED"
    if found := _AVERAGE.search(line):
        one.average = float(found[1]) if found[1][0].isdigit() else None
        one.averages += 1
        one.settled = True
    if found := _REDUCED.search(line):
        one.reduced = int(found[1])
    if found := _PRINTED_ERROR.search(line):
        one.printed_error = found[1].strip()
    if one.columns is None:
        one.columns = rows.header(line)


def _columns(lines: Sequence[str]) -> Columns | None:
    """The columns of a table that came without its header: those most of its rows have."""
    seen: Counter[Columns] = Counter()
    for line in lines:
        got = rows.row(line, None)
        if isinstance(got, Row):
            root, per = got.root is not None, 4
            seen[Columns(got.redop is not None, root, 2 if got.ip else 1, per)] += 1
    return seen.most_common(1)[0][0] if seen else None


def _rows(lines: Sequence[str], columns: Columns | None) -> Iterator[Row]:
    """Whole rows. One that another writer broke in two is whole again where its rest stands by itself on a later line."""
    waiting: Partial | None = None
    for line in lines:
        got = rows.row(line, columns)
        if got is None and waiting is not None:
            got = rows.more(waiting, line, columns)
            if got is None:
                continue
        if isinstance(got, Row):
            waiting = None
            yield got
        elif got is not None:
            waiting = got


def _mixed(one: Reading) -> bool:
    """Rows of one run come in ascending sizes, over again for each cycle, type or operation; its ranks and its end once."""
    if len({rank.number for rank in one.ranks}) < len(one.ranks) or one.averages > 1:
        return True
    variant: tuple[str, str | None, int | None] | None = None
    first = last = 0
    distinct = {row.size for row in one.rows if row.size}
    if len(distinct) < 2:
        return False
    for row in one.rows:
        if not row.size:
            continue
        key = row.type, row.redop, row.root
        if key != variant:
            variant, first, last = key, row.size, 0
        if row.size <= last and row.size != first:
            return True
        last = row.size
    # A cycle of one size among several is no cycle: another run printed the same first row.
    sizes = [row.size for row in one.rows if row.size]
    kinds = [(row.type, row.redop, row.root) for row in one.rows if row.size]
    return any(sizes[at] == sizes[at + 1] and kinds[at] == kinds[at + 1] for at in range(len(sizes) - 1))
