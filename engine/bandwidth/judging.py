"""From runs to a whole view: laid out, judged, and set beside what the instance type should reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from straggler.engine.bandwidth import expectation, telling
from straggler.engine.bandwidth.model import Metric, Run
from straggler.engine.bandwidth.view import NOWHERE, Expected, MatrixView
from straggler.engine.knowledge import Instance, Knowledge
from straggler.engine.model import Placement

if TYPE_CHECKING:
    from straggler.engine.bandwidth.matrix import Matrix

PAIR = 2
"""Nodes of a pair."""

UNSAID = "all_reduce"
"""What busbw is set beside where its file does not say which collective was run: nothing else is as common, or allows as much."""


def view(
    runs: Iterable[Run],
    known: Knowledge,
    *,
    instance_type: str | None = None,
    placements: Mapping[str, Placement] = NOWHERE,
    nodes: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    revision: int = 0,
) -> MatrixView:
    """`nodes`: all that belong, also those without a run. `names`: other names of nodes. `notes`: what was left out before."""
    from straggler.engine.bandwidth.attribution import attribute
    from straggler.engine.bandwidth.layout import build
    from straggler.engine.bandwidth.limits import limits

    instance = known.instance(instance_type)
    bounds = limits(known)

    slack = 1 + expectation.Limits.of(known).slack / 100

    def most(run: Run) -> float | None:
        places = {placements[host].ultraserver for host in run.hosts if host in placements}
        bound = expectation.ceiling(
            instance, run.ranks, len(run.hosts), run.collective or UNSAID, apart=len(places - {None}) > 1
        )
        return None if bound is None else bound * slack

    matrix = build(runs, nodes, share=bounds.common_size, names=names, ceiling=most)
    expected = _expected(matrix, instance, instance_type, known)
    between = (
        (expected.low, expected.high) if expected.low is not None and expected.high is not None else None
    )
    found = attribute(matrix, placements, between, bounds)
    small = _too_small(matrix, instance, known)
    more = (*small, *_unsaid(matrix, expected))
    said = tuple(dict.fromkeys((*notes, *found.notes, *more)))
    said_of = replace(found, notes=said)
    return MatrixView(matrix, said_of, expected, placements, revision, bounds.below_mean, bool(small))


def _expected(
    matrix: Matrix, instance: Instance | None, instance_type: str | None, known: Knowledge
) -> Expected:
    """What pairs of this type reach; for anything but busbw only its name is known."""
    family = (instance_type or "").removeprefix("ml.").partition(".")[0]
    what = f"{family} pairs" if family else ""
    if instance is None or matrix.metric is not Metric.BUSBW:
        return Expected(what=what)
    collective = matrix.collective or UNSAID
    ranks = {run.ranks for found in matrix.detail.values() for run in found if run.ranks}
    most = expectation.ceiling(instance, max(ranks, default=None), PAIR, collective)
    usual = None
    if matrix.size:
        usual = expectation.expected(
            instance,
            collective,
            PAIR,
            matrix.size,
            expectation.Limits.of(known),
            ranks=max(ranks, default=None),
        )
    if usual is None:
        return Expected(ceiling=most, what=what)
    return Expected(usual.low, usual.high, most, what, f"{usual.source} ({usual.date})")


def _too_small(matrix: Matrix, instance: Instance | None, known: Knowledge) -> Sequence[str]:
    limits = expectation.Limits.of(known)
    if matrix.metric is not Metric.BUSBW or not matrix.size:
        return ()
    if not expectation.too_small(matrix.size, instance, PAIR, limits):
        return ()
    least = telling.size(int(expectation.smallest_size(instance, PAIR, limits)))
    return (
        f"messages of {telling.size(matrix.size)} are too small to judge bandwidth by: below {least} latency rules; "
        "measure larger ones before you act",
    )


def _unsaid(matrix: Matrix, expected: Expected) -> Sequence[str]:
    if matrix.collective or (expected.ceiling is None and expected.low is None):
        return ()
    return (f"the files do not say which collective was run: the expectation is that of {UNSAID}",)
