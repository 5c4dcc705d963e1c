"""Single pairs that stay low although both their nodes do better with others: links, once more than one run says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from straggler.engine.bandwidth.limits import Limits
from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Run, RunState
from straggler.engine.bandwidth.noise import DEPTH, FLOOR, ROOT_TAU, Floats, Noise

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
    return [
        _weigh(matrix, pairs[at], float(cap[at]), level, noise, limits)
        if matrix.runs[pairs[at]] > 1
        else LowPair(pairs[at], float(np.expm1(below[at])), 1, 0.0)
        for at in chosen
    ]


def _weigh(matrix: Matrix, at: int, cap: float, level: float, noise: Noise, limits: Limits) -> LowPair:
    cell = matrix.cell_at(at)
    sign = -1.0 if matrix.metric.lower_is_better else 1.0
    complete = [
        run
        for run in cell.runs
        if run.state is RunState.OK and matrix.size is not None and matrix.size in run.points
    ]
    values = np.array([sign * np.log(run.points[matrix.size or 0]) - level - cap for run in complete])
    if not len(values):
        values = np.array([sign * np.log(cell.value or 1.0) - level - cap])
    dips = np.array([limits.dip / 5 if ran_alone(run) else noise.dip for run in complete] or [noise.dip])
    held = float(np.mean(values))
    apart = (values - held) / noise.spread
    steady = -0.5 * apart**2 - np.log(noise.spread * ROOT_TAU)
    calm = -0.5 * (values / noise.spread) ** 2 - np.log(noise.spread * ROOT_TAU)
    chance = np.logaddexp(calm, np.log(dips / DEPTH))
    odds = float(np.sum(np.maximum(steady, FLOOR) - np.maximum(chance, FLOOR)))
    odds += noise.occam(len(values)) + float(np.log(limits.link / (1 - limits.link)))
    probability = float(1 / (1 + np.exp(-np.clip(odds, -50, 50))))
    return LowPair(at, float(np.expm1(np.max(values))), len(values), probability)


def ran_alone(run: Run) -> bool:
    return any(part.startswith(ALONE) for part in PurePosixPath(run.source).parts[:-1])
