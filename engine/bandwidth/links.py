"""Single pairs that stay low although both their nodes do better with others: links, once more than one run says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np

from straggler.engine.bandwidth import few
from straggler.engine.bandwidth.limits import Limits
from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Run, RunState
from straggler.engine.bandwidth.noise import DEPTH, FEW, FLOOR, HALF_NORMAL, ROOT_TAU, Floats, Noise

ALONE = "alone-"
"""Folders of runs that had nothing beside them begin with this: a shared link cannot have slowed them."""

CLOSELY = 2000
"""Low pairs that are looked at one by one, the lowest first."""


@dataclass(frozen=True, slots=True)
class LowPair:
    """One pair and the log values of its runs relative to the level; `probability` that its link is slow."""

    at: int
    effect: float
    runs: int
    probability: float


def low_pairs(
    matrix: Matrix, pairs: Sequence[int], y: Floats, cap: Floats, level: float, noise: Noise, limits: Limits
) -> list[LowPair]:
    """The pairs that lie below what their nodes can reach together, lowest first. `y` and `cap` per entry of `pairs`."""
    bar = max(-float(np.log1p(-limits.effect)), 4 * noise.spread)
    below = y - cap
    lowest = np.argsort(below)[:CLOSELY]
    chosen = [int(at) for at in lowest if below[at] < -bar]
    # One run never accuses a link, so that its probability is nobody's question.
    if not any(matrix.runs[pairs[at]] > 1 for at in chosen):
        return [LowPair(pairs[at], float(np.expm1(below[at])), 1, 0.0) for at in chosen]
    ends = np.stack([matrix.a, matrix.b], axis=1)[list(pairs)]
    best = np.full(len(matrix.nodes), -np.inf)
    np.maximum.at(best, ends, y[:, None])
    others = _other_runs(matrix, pairs, below, cap, level, -bar)
    found = []
    for at in chosen:
        low = LowPair(pairs[at], float(np.expm1(below[at])), 1, 0.0)
        if matrix.runs[pairs[at]] > 1:
            low = _weigh(matrix, pairs[at], float(cap[at]), level, noise, others, limits)
            if not (best[ends[at]] > y[at] + bar).all():
                # What is slow with everybody may be the node: its way to one other is not to blame.
                low = replace(low, probability=0.0)
        found.append(low)
    return found


def _other_runs(
    matrix: Matrix, pairs: Sequence[int], below: Floats, cap: Floats, level: float, bar: float
) -> Floats:
    """Every complete run of the pairs nothing is wrong with, relative to the level. Of a pair that was run again its best stands in
    the matrix: what a single run gives, and how often one is disturbed, only all of them tell."""
    calm = (cap == 0) & (below >= bar)
    again = matrix.runs[list(pairs)] > 1
    repeated = [_values(matrix, pairs[int(at)]) - level for at in np.flatnonzero(calm & again)[:CLOSELY]]
    return np.concatenate([below[calm & ~again], *repeated])


def _values(matrix: Matrix, at: int) -> Floats:
    """The logarithms of a pair's complete runs at the size compared; a better one is a larger number."""
    sign = -1.0 if matrix.metric.lower_is_better else 1.0
    return np.array([sign * np.log(run.points[matrix.size or 0]) for run in _complete(matrix, at)])


def _complete(matrix: Matrix, at: int) -> list[Run]:
    return [
        run
        for run in matrix.cell_at(at).runs
        if run.state is RunState.OK and run.points.get(matrix.size if matrix.size is not None else -1, 0) > 0
    ]


def _weigh(
    matrix: Matrix, at: int, cap: float, level: float, noise: Noise, others: Floats, limits: Limits
) -> LowPair:
    """How probable it is that the link is slow, by its runs set against single runs of other pairs (`others`)."""
    runs = _complete(matrix, at)
    values = _values(matrix, at) - level - cap
    if len(values) < 2:
        return LowPair(at, float(np.expm1(np.max(values))) if len(values) else 0.0, len(values), 0.0)
    usual, spread, dip = _single_run(others, noise)
    low = values - usual
    dips = np.array([limits.dip / 5 if ran_alone(run) else dip for run in runs])
    held = float(np.mean(low))
    steady = -0.5 * ((low - held) / spread) ** 2 - np.log(spread * ROOT_TAU)
    calm = -0.5 * (low / spread) ** 2 - np.log(spread * ROOT_TAU)
    chance = np.logaddexp(calm, np.log(dips / DEPTH))
    gain = float(np.sum(np.maximum(steady, FLOOR) - np.maximum(chance, FLOOR)))
    gain = min(gain, few.most_gain(values, others, spread))
    odds = gain + replace(noise, spread=spread).occam(len(values))
    odds += float(np.log(limits.link / (1 - limits.link)))
    probability = float(1 / (1 + np.exp(-np.clip(odds, -50, 50))))
    return LowPair(at, float(np.expm1(np.max(values))), len(values), probability)


def _single_run(others: Floats, noise: Noise) -> tuple[float, float, float]:
    """What one run gives: its usual value, the spread around it, and the share of runs that are disturbed."""
    if len(others) < FEW:
        return 0.0, noise.spread, noise.dip
    usual = float(np.median(others))
    spread = max(noise.spread, HALF_NORMAL * float(np.median(np.abs(others - usual))))
    disturbed = float(np.mean(others < usual - max(5 * spread, 0.05)))
    return usual, spread, max(noise.dip, disturbed)


def ran_alone(run: Run) -> bool:
    return any(part.startswith(ALONE) for part in PurePosixPath(run.source).parts[:-1])
