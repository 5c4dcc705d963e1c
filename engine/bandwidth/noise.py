"""How much runs differ for no reason: the level of the unaffected pairs, their spread, and how likely a value is beside them.

All values are natural logarithms: a run 10 % slower is about -0.105, whatever the unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEPTH = 0.7
"""A disturbed run is equally likely anywhere down to this (half the bandwidth)."""

TAIL = 0.25
"""How fast still deeper ones become rarer."""

USUAL_RANGE = 0.3
"""Most slow-downs lie within this (a quarter of the bandwidth): what a free one is measured against."""

FLOOR = -12.0
"""No single value speaks louder than this (in nats): one misread number must not decide."""

HALF_NORMAL = 1.4826
"""Makes a median of absolute deviations the standard deviation of a normal distribution."""

ROUNDS = 8

CLIP, CLIPPED = 2.5, 0.957
"""Values further off than so many spreads are no part of the noise; the standard deviation of the rest is that share of it."""

FEW = 12
"""Below so many values the middle one is a safer level than their mean."""

SAMPLE = 4000
"""Values that are enough to find levels in."""

NO_LUCK = 12
"""So many pairs are not better than the rest by chance, however few each of their nodes has."""

LEAST_FOR_TWO = 24
WORTH_TWO = 6.0
"""How much likelier (nats) two levels must be than one, for their two further numbers."""

ROOT_TAU = math.sqrt(2 * math.pi)


@dataclass(frozen=True, slots=True)
class Noise:
    """`level`: logarithm of what an unaffected pair reaches. `spread`: standard deviation around it. `dip`: share of runs that
    are disturbed."""

    level: float
    spread: float
    dip: float

    def log_density(self, above: Floats) -> Floats:
        """How likely a run is that lies `above` (below: negative) what its pair can reach."""
        z = above / self.spread
        calm = np.log1p(-self.dip) - 0.5 * z * z - math.log(self.spread * ROOT_TAU)
        # Deeper ones are rarer, without an edge: a value just beyond one would speak for whatever lies a little lower.
        deeper = np.minimum(above + DEPTH, 0) / TAIL
        disturbed = np.where(above <= 0, math.log(self.dip / DEPTH) + deeper, FLOOR)
        density: Floats = np.maximum(np.logaddexp(calm, disturbed), FLOOR)
        return density

    def occam(self, many: int) -> float:
        """What a free slow-down costs: the share of all slow-downs that would fit `many` runs as well."""
        return math.log(min(self.spread * ROOT_TAU / math.sqrt(many) / USUAL_RANGE, 1.0))


def envelope(y: Floats, ends: Ints, count: int) -> Floats:
    """Per node the upper quartile of its pairs: what it can do. A slow partner drags a node's mean, never its best. NaN: no pair.

    `y` per pair, `ends` the two node numbers of each, shape (pairs, 2).
    """
    rising = np.argsort(y)
    node = ends[rising].reshape(-1)
    # Small numbers are put in order in one pass over them, which keeps the rising values as they are.
    by_node = np.argsort(node.astype(np.int16) if count < 2**15 else node, kind="stable")
    many = np.bincount(node, minlength=count)
    first = np.concatenate([[0], np.cumsum(many)[:-1]])
    at = first + np.ceil(0.75 * np.maximum(many - 1, 0)).astype(np.int64)
    found = np.full(count, np.nan)
    has = many > 0
    found[has] = y[rising[by_node[at[has]] // 2]]
    return found


def measure(y: Floats, best: Floats, dip: float, least: float) -> Noise:
    """Level and spread of the pairs nothing is wrong with, by clipping what lies too low. `best`: each node's envelope."""
    level = float(np.nanmedian(best))
    above = y[y >= level] - level
    spread = max(least, HALF_NORMAL * float(np.median(above)) if len(above) else least)
    for _ in range(ROUNDS):
        near = y[np.abs(y - level) <= CLIP * spread]
        if len(near) < 3:
            break
        level = float(np.median(near)) if len(near) < FEW else float(np.mean(near))
        spread = max(least, float(np.std(near)) / CLIPPED)
    one = Noise(level, spread, dip)
    return _unmixed(y, one, least) or one


def _unmixed(y: Floats, one: Noise, least: float) -> Noise | None:
    """Two levels instead of one, a slow one beside that of the unaffected pairs, where that fits clearly better.

    Many pairs a little slower than the rest look like one wide spread in which none of them stands out. Expectation
    maximisation over two normal distributions of one spread, and an even one for what is disturbed.
    """
    values = np.sort(y)
    if len(values) > SAMPLE:
        values = values[np.linspace(0, len(values) - 1, SAMPLE).astype(np.int64)]
    values = values[(values > one.level - DEPTH) & (values < one.level + 6 * one.spread)]
    if len(values) < LEAST_FOR_TWO:
        return None
    best: tuple[float, float, float] | None = None
    most = (
        _likelihood(values, np.array([0.98, 0.0]), np.array([one.level, one.level]), one.spread) + WORTH_TWO
    )
    for apart in (1.0, 2.0, 4.0):
        level = np.array([one.level + 0.5 * one.spread, one.level - apart * one.spread])
        weight = np.array([0.7, 0.28])
        spread = 0.7 * one.spread
        for _ in range(40):
            parts = _parts(values, weight, level, spread)
            share = parts / parts.sum(axis=0)
            many = share.sum(axis=1)
            weight = np.maximum(many[:2] / len(values), 1e-3)
            level = (share[:2] @ values) / np.maximum(many[:2], 1e-9)
            off = (values[None, :] - level[:, None]) ** 2
            spread = max(least, float(np.sqrt((share[:2] * off).sum() / max(many[:2].sum(), 1e-9))))
        fit = _likelihood(values, weight, level, spread)
        if fit > most and level[0] - level[1] > 1.5 * spread and weight[0] > 0.25:
            most, best = fit, (float(level[0]), spread, float(weight[0]))
    return None if best is None else Noise(best[0], best[1], one.dip)


def _parts(values: Floats, weight: Floats, level: Floats, spread: float) -> Floats:
    """The density of each value under the two levels and as a disturbed run, shape (3, values)."""
    calm = np.exp(-0.5 * ((values[None, :] - level[:, None]) / spread) ** 2) / (spread * ROOT_TAU)
    rest = max(1.0 - float(weight.sum()), 1e-3)
    return np.vstack([weight[:, None] * calm, np.full((1, len(values)), rest / DEPTH)])


def _likelihood(values: Floats, weight: Floats, level: Floats, spread: float) -> float:
    return float(np.log(_parts(values, weight, level, spread).sum(axis=0)).sum())


def lower_side(y: Floats, least: float) -> tuple[float, float]:
    """The middle of all values and their spread by those below it: what the slow part of a fleet reaches, whatever is above."""
    middle = float(np.median(y))
    below = middle - y[y <= middle]
    return middle, max(least, HALF_NORMAL * float(np.median(below)))


def upper_clique(
    y: Floats, ends: Ints, count: int, level: float, step: float
) -> tuple[float, NDArray[np.bool_]] | None:
    """A smaller part of the fleet that is clearly better than `level`, among itself: then `level` is the slow part's.

    Gives the better part's level and which nodes belong to it. Noise makes single pairs better, never a set of nodes nearly
    all of whose pairs with each other are; None where there is no such set.
    """
    found: tuple[float, NDArray[np.bool_]] | None = None
    most = 0
    above = y - level
    if not len(above):
        return None
    for cut in np.arange(1.5 * step, float(np.max(above)), step / 2):
        good = above > cut
        inside = np.zeros(count, dtype=bool)
        inside[ends[good].reshape(-1)] = True
        among = inside[ends[:, 0]] & inside[ends[:, 1]]
        many = int(inside.sum())
        # Two good pairs for each of them: three lucky pairs of six nodes are no better part of a fleet, but a dozen are no luck.
        if many >= 3 and good.sum() >= min(many, NO_LUCK) and good.sum() >= 0.8 * among.sum() and many > most:
            most, found = many, (float(np.median(y[good])), inside)
    return found
