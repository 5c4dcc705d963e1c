"""nccl-tests' text, inspected: facts of the whole capture, findings of each run in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from straggler.engine.bandwidth.readers import endings, nccl_tests
from straggler.engine.bandwidth.readers.nccl_text import Reading, stretches, whole
from straggler.engine.bandwidth.readers.taking_part import Rank
from straggler.engine.inspect.model import Kind, Part, Said
from straggler.engine.inspect.words import size
from straggler.engine.model import Level, Verdict

FINDS = (
    "nccl-tests.incomplete",
    "nccl-tests.no-rows",
    "nccl-tests.wrong-results",
    "nccl-tests.nccl-failure",
    "nccl-tests.single-rank",
    "nccl-tests.ranks-share-gpu",
    "nccl-tests.max-bytes-reduced",
    "nccl-tests.not-validated",
    "nccl-tests.interleaved-runs",
)

NO_ADDRESS = frozenset({"", "0x00"})
"""What old versions print where they know no PCI address."""


def read(text: str, source: str) -> tuple[Part, ...]:
    """The capture as a whole and, where it holds several runs, each of them."""
    runs = stretches(text)
    parts = [_part(one, source) for one in runs]
    if len(parts) < 2:
        return tuple(parts)
    facts = nccl_tests.as_json(nccl_tests.facts(whole(text))) | {
        "complete": all(one.complete for one in runs)
    }
    said = tuple(one for part in parts for one in part.said)
    gist = f"{len(parts)} runs of nccl-tests, one after the other"
    return (Part(KIND.name, 1, parts[-1].last, facts, said, gist), *parts)


def _part(one: Reading, source: str) -> Part:
    facts = nccl_tests.facts(one)
    first = one.first_line + 1
    last = first + one.text.rstrip("\n").count("\n")
    return Part(KIND.name, first, last, nccl_tests.as_json(facts), tuple(_said(one)), _gist(one, source))


def _gist(one: Reading, source: str) -> str:
    run = nccl_tests.run_of(one, source)
    words = [f"{run.collective or 'a collective'} of nccl-tests"]
    if run.ranks:
        words.append(f"{run.ranks} ranks" if run.ranks > 1 else "1 rank")
    if run.hosts:
        words.append(
            f"on {', '.join(run.hosts[:4])}" + (f" and {len(run.hosts) - 4} more" if run.hosts[4:] else "")
        )
    if run.points:
        largest = max(run.points)
        words.append(
            f"{run.points[largest]:g} GB/s bus bandwidth at {size(largest)}, the largest of {len(run.points)} sizes"
        )
    return ", ".join(words)


def _said(one: Reading) -> Iterator[Said]:
    if one.mixed:
        yield _say(
            one,
            "nccl-tests.interleaved-runs",
            Level.WARN,
            "Rows of several runs are mixed",
            r"out-of-place|\d+\s+\d+\s+[a-z]\w+\s",
        )
    if nccl_tests.wrong(one):
        title = "Results were wrong: data arrived that was not what was sent"
        yield _say(
            one,
            "nccl-tests.wrong-results",
            Level.FAIL,
            title,
            r"Out of bounds.*(?:FAILED|[1-9])",
            _wrong_row(one),
        )
    if one.failure:
        hosts = one.failure.hosts
        detail = f"{one.failure.text} ({one.failure.where})"
        yield _say(
            one,
            "nccl-tests.nccl-failure",
            Level.FAIL,
            "NCCL failed during the test",
            "NCCL failure",
            detail,
            hosts,
        )
    if not one.complete:
        yield _incomplete(one)
    if not one.rows:
        yield _say(
            one,
            "nccl-tests.no-rows",
            Level.WARN,
            "Not one message size was measured",
            r"Using devices|nThread",
        )
    if nccl_tests.single_rank(one):
        title = "Only one rank took part, so there is no bus bandwidth"
        yield _say(
            one, "nccl-tests.single-rank", Level.INFO, title, r"Rank\s+0|\d+\s+\d+\s+[a-z]\w+\s.*\b0\.00\b"
        )
    if shared := _shared(one):
        detail = "; ".join(f"ranks {a.number} and {b.number} on {a.host}: {a.device}" for a, b in shared[:8])
        hosts = tuple(dict.fromkeys(a.host for a, _ in shared))
        pattern = rf"Rank\s+(?:{shared[0][0].number}|{shared[0][1].number})\s"
        yield _say(
            one,
            "nccl-tests.ranks-share-gpu",
            Level.WARN,
            "Two ranks of one host use the same GPU",
            pattern,
            detail,
            hosts,
        )
    if one.reduced is not None:
        title = "The largest message was made smaller for want of GPU memory"
        yield _say(
            one,
            "nccl-tests.max-bytes-reduced",
            Level.INFO,
            title,
            "Reducing maxBytes",
            f"to {one.reduced} bytes",
        )
    if _not_validated(one):
        title = "The results were not checked"
        yield _say(one, "nccl-tests.not-validated", Level.INFO, title, r"validation: 0|N/A")


def _say(
    one: Reading,
    name: str,
    level: Level,
    title: str,
    evidence: str,
    detail: str = "",
    subjects: tuple[str, ...] = (),
) -> Said:
    pattern = re.compile(evidence)
    lines = enumerate(one.text.split("\n"), one.first_line + 1)
    found = tuple((number, line.strip()) for number, line in lines if pattern.search(line))[:2]
    return Said(Verdict(name, level, title, detail), found, subjects or one.hosts)


def _incomplete(one: Reading) -> Said:
    """With the line that says why it ended, where there is one, else the last line that was printed."""
    how, line = endings.sign(one.text)
    lines = [
        (at, text.strip()) for at, text in enumerate(one.text.split("\n"), one.first_line + 1) if text.strip()
    ]
    shown = [(at, text) for at, text in lines if how and text.startswith(line)][:1] or lines[-1:]
    verdict = Verdict(
        "nccl-tests.incomplete",
        Level.WARN,
        "The output stops before its closing lines",
        f"the run {how}" if how else "",
    )
    return Said(verdict, tuple(shown), one.hosts)


def _wrong_row(one: Reading) -> str:
    for row in one.rows:
        for place, cell in (("out of place", row.oop), ("in place", row.ip)):
            if cell and cell[3]:
                return f"first at {size(row.size)}, {place}: {cell[3]:g}"
    return f"{one.out_of_bounds} values out of bounds" if one.out_of_bounds else ""


def _shared(one: Reading) -> list[tuple[Rank, Rank]]:
    by_device: dict[tuple[str, str], list[Rank]] = {}
    for rank in one.ranks:
        if rank.device not in NO_ADDRESS:
            by_device.setdefault((rank.host, rank.device), []).append(rank)
    return [
        (a, b)
        for group in by_device.values()
        for a, b in list(combinations(group[:3], 2))
        if (a.number, a.pid) != (b.number, b.pid)
    ]


def _not_validated(one: Reading) -> bool:
    """The tool was told not to check, or no row has a result of a check in either placement."""
    if one.validation is not None:
        return not one.validation
    cells = [cell for row in one.rows for cell in (row.oop, row.ip) if cell]
    return bool(cells) and all(cell[3] is None for cell in cells)


KIND = Kind("nccl-tests", nccl_tests.recognise, read, FINDS)
