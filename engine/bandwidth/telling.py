"""A matrix in short sentences: the same ones on the screen and in the text report. Names in them are safe to print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from straggler.engine.bandwidth.model import Kind, RunState
from straggler.engine.safetext import safe

if TYPE_CHECKING:
    from straggler.engine.bandwidth.matrix import Cell, Matrix
    from straggler.engine.bandwidth.model import Attribution, Blame, Doubt
    from straggler.engine.bandwidth.view import Expected, MatrixView

STATE_WORDS = {
    RunState.OK: "ok",
    RunState.FAILED: "failed",
    RunState.TRUNCATED: "cut off",
    RunState.IMPLAUSIBLE: "above what the wire can carry",
}
NAME = 60
"""Characters of a node's name that are shown."""


def name(node: str) -> str:
    return safe(node, limit=NAME)


def number(value: float) -> str:
    """Three digits: `471`, `47.1`, `4.71`; what no wire carries is not spelled out."""
    if value >= 1e9:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def unit(matrix: Matrix) -> str:
    return matrix.metric.value.rpartition(" ")[2]


def percent(share: float) -> str:
    """`−31 %`, `+2 %`; a change too small to show is `±0 %`."""
    whole = round(100 * share)
    return f"−{-whole:,} %" if whole < 0 else f"+{whole:,} %" if whole > 0 else "±0 %"


def size(octets: int | None) -> str:
    """`8 GiB`; sizes that are no whole number of a unit keep one decimal."""
    if not octets:
        return "no common size" if octets is None else "a size not given"
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if octets >= step:
            return f"{octets / step:.0f} {unit}" if octets % step == 0 else f"{octets / step:.1f} {unit}"
    return f"{octets} B"


def many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def pair(one: str, other: str) -> str:
    return f"{name(one)} by itself" if one == other else f"{name(one)} × {name(other)}"


def pairs_possible(matrix: Matrix) -> int:
    return len(matrix.nodes) * (len(matrix.nodes) - 1) // 2


def title(view: MatrixView) -> Iterator[str]:
    """The parts of the headline, in the order they matter."""
    matrix, found = view.matrix, view.attribution
    compared = "" if matrix.size is None else f" at {size(matrix.size)}"
    yield f"Pairwise {matrix.metric.value}{compared}"
    yield f"{len(matrix):,} of {many(pairs_possible(matrix), 'pair')}"
    if found.median is not None:
        yield f"median {number(found.median)}"
    if len(matrix):
        yield from expectation(view.expected)
    if view.earlier is not None:
        day = datetime.fromtimestamp(view.earlier.at, timezone.utc).strftime("%Y-%m-%d")
        yield f"earlier {number(view.earlier.usual)} ({day})"


def since(view: MatrixView) -> float | None:
    """How the unaffected pairs changed since the earlier sweep, negative is slower; None where there is none."""
    if view.earlier is None:
        return None
    lower = view.matrix.metric.lower_is_better
    return against(view.attribution.usual, view.earlier.usual, lower_is_better=lower)


def expectation(expected: Expected) -> Iterator[str]:
    low, high, what = expected.low, expected.high, safe(expected.what, limit=40)
    kind = f" for {what}" if what else ""
    if low is not None and high is not None and low != high:
        yield f"expected {number(low)}–{number(high)}{kind}"
    elif low is not None or high is not None:
        yield f"expected {number(low if low is not None else high or 0.0)}{kind}"
    else:
        yield f"no expectation known{kind and f'{kind} at this size'}"
    if expected.ceiling is not None:
        yield f"ceiling {number(expected.ceiling)}"


def headline(blame: Blame) -> str:
    """Who is accused of what."""
    who = [name(one) for one in blame.subjects]
    if blame.kind is Kind.CLUSTER:
        if blame.slow < blame.of:
            return f"most of the fleet is slow: {blame.slow:,} of {many(blame.of, 'node')}"
        return "the fleet as a whole is slow"
    if blame.kind is Kind.NODE:
        if blame.effect is None:
            return f"every run of {who[0]}{' by itself' if blame.alone else ''} failed"
        return f"{who[0]} is slow by itself" if blame.alone else f"{who[0]} is slow"
    lost = "fails" if blame.effect is None else "is slow"
    if blame.kind is Kind.LINK:
        return f"the link {' × '.join(who)} {lost}"
    return f"traffic {crossing(blame.subjects)} {lost}"


LEVELS = {"az": "AZ", "ultraserver": "UltraServer"}
"""Levels of placement that are written otherwise than they are keyed."""


def level(key: str) -> str:
    """`az` → `AZ`, `layer-3` → `network layer 3`, `block` → `block`."""
    number = key.removeprefix("layer-")
    return (
        f"network layer {safe(number, limit=NAME)}"
        if number != key
        else LEVELS.get(key) or safe(key, limit=NAME)
    )


def crossing(labels: Sequence[str]) -> str:
    """What a boundary parts: `between AZ use1-az1 and use1-az2`, `between block b1 and any other`, `from one AZ to another`."""
    key, _, place = (labels[0] if labels else "").partition(":")
    if place == "*":
        return f"from one {level(key)} to another"
    rest = [
        "any other"
        if one.endswith(":*")
        else name(one.partition(":")[2] if one.startswith(f"{key}:") else one)
        for one in labels[1:]
    ]
    return f"between {level(key)} {' and '.join([name(place), *rest])}"


def sureness(blame: Blame) -> str:
    """`−31 %, 97 % sure, 61 of 63 pairs`"""
    effect = [] if blame.effect is None else [percent(blame.effect)]
    # What counts for the fleet as a whole is not pairs alone; its reason says what was counted.
    counted = [f"{blame.slow:,} of {many(blame.of, 'run' if blame.alone else 'pair')}"]
    return ", ".join(
        [*effect, f"{sure(blame.confidence)} sure", *(counted if blame.kind is not Kind.CLUSTER else [])]
    )


def sure(confidence: float) -> str:
    """Never rounded up to a certainty nobody has."""
    whole = round(100 * confidence)
    return "> 99 %" if whole >= 100 else f"{whole} %"


def verdict(blame: Blame) -> str:
    return f"{headline(blame)} ({sureness(blame)})"


def next_pair(wanted: tuple[str, str] | None) -> str:
    """What to run next, nothing else beside it."""
    if wanted is None:
        return ""
    return f"{pair(*wanted)} with nothing beside it" if wanted[0] != wanted[1] else pair(*wanted)


def doubt(one: Doubt) -> str:
    effect = percent(one.effect) if one.effect is not None else ""
    lead = f" ({effect})" if effect and effect not in one.why else ""
    return f"{pair(*one.pair)}{lead}: {safe(one.why, limit=300)}"


def nobody(found: Attribution, matrix: Matrix) -> str:
    """What stands where no verdict does: what was looked at decides how much that is worth."""
    if not len(matrix) and not any(matrix.alone_runs):
        return "no run was read: nothing can be said of any node"
    if not len(matrix):
        return "no pair was run yet: nothing can be said of what lies between nodes"
    if found.median is None:
        return "no pair gave a value at one size: nothing can be said of any node"
    if found.doubts:
        return f"nobody is accused; {many(len(found.doubts), 'run')} to repeat"
    if not found.settled:
        return "nobody is accused; not every node is cleared yet"
    if len(matrix) < pairs_possible(matrix):
        return "nobody is accused; only a single slow link could still hide among the pairs not run"
    return "nobody is accused, and every pair was run"


def uncovered(matrix: Matrix) -> Iterator[str]:
    """What the runs leave open, in counts; nothing of it is fine, it is not known."""
    missing = pairs_possible(matrix) - len(matrix)
    if missing:
        yield f"{many(missing, 'pair')} not run"
    for code, state in enumerate((RunState.OK, RunState.FAILED, RunState.TRUNCATED, RunState.IMPLAUSIBLE)):
        count = int((matrix.state == code).sum())
        if count and state is not RunState.OK:
            yield f"{many(count, 'pair')} {STATE_WORDS[state]}"
    without = int(((matrix.state == 0) & (matrix.value != matrix.value)).sum())
    if without:
        yield f"{many(without, 'pair')} without a value at {size(matrix.size)}"
    alone = len(matrix.nodes) - int((matrix.alone_runs > 0).sum())
    if alone and len(matrix.nodes):
        yield f"{many(alone, 'node')} not run alone" if alone < len(matrix.nodes) else "no node was run alone"


def directions(cell: Cell, matrix: Matrix) -> list[tuple[str, str, float]]:
    """The best value by the host that came first, where runs of a pair differ in that."""
    best: dict[tuple[str, str], float] = {}
    lower = matrix.metric.lower_is_better
    for run in cell.runs:
        value = None if matrix.size is None else run.points.get(matrix.size)
        if value is None or len(run.hosts) != 2 or run.state is not RunState.OK:
            continue
        way = (run.hosts[0], run.hosts[1])
        known = best.get(way)
        best[way] = value if known is None else min(known, value) if lower else max(known, value)
    directed = any(run.directed for run in cell.runs)
    return [(*way, value) for way, value in sorted(best.items())] if directed or len(best) > 1 else []


def against(value: float | None, norm: float | None, *, lower_is_better: bool = False) -> float | None:
    """How far a value is from the norm, negative is slower; None where one of both is missing."""
    if value is None or not norm or (lower_is_better and not value):
        return None
    return (norm / value if lower_is_better else value / norm) - 1
