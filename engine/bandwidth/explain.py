"""Which few causes explain all the values: nodes and boundaries that cap every pair they are part of.

A pair reaches the least of what its two nodes and its way can do. So a cause is a cap on all pairs of a node, or on all pairs
that cross a boundary, and the best set of causes is built up one at a time, always the one the values speak for most, until
no further one is worth its improbability; then each is taken out again to see whether the others do without it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from straggler.engine.bandwidth import few
from straggler.engine.bandwidth.limits import Limits
from straggler.engine.bandwidth.noise import Floats, Ints, Noise

ENOUGH = 3
"""Pairs that speak of a node on their own; fewer need odds better by `TWO_PAIRS` nats."""

TWO_PAIRS = 3.5

AGAIN = 4
"""How often the causes are looked for anew without nodes that had only met slow ones."""

TRIED = 64
"""Candidates of one kind that are looked at closely in one step: those with the lowest means."""


Key = tuple[int, tuple[str, ...], bool]
"""Tells groups from each other."""

LOW_INSIDE = 0.75
"""So many of the pairs inside a place must be low for it to be slow as a whole."""


@dataclass(frozen=True, eq=False)
class Group:
    """Pairs that one cause would cap. `node`: the node's number, or -1 for a boundary, whose `labels` say what it parts.

    `sides`: the nodes on the side of each label. `place`: the nodes of a place that is slow as a whole, its inner pairs as well.
    """

    pairs: Ints
    node: int = -1
    labels: tuple[str, ...] = ()
    sides: tuple[Ints, ...] = ()
    place: tuple[int, ...] = ()

    @property
    def key(self) -> Key:
        return self.node, self.labels, bool(self.place)


@dataclass(frozen=True, eq=False)
class Cause:
    """A group held to be capped at `cap` (log, relative to the unaffected level). `odds`: log of how much likelier than not.

    `slow` of `of` pairs that can tell show it; `shared`: slow pairs nothing else explains.
    """

    group: Group
    cap: float
    odds: float
    slow: int
    of: int

    @property
    def probability(self) -> float:
        return float(1 / (1 + np.exp(-np.clip(self.odds, -50, 50))))


@dataclass(frozen=True, eq=False)
class Groups:
    """All that could be a cause. `by_node[i]` are the pairs of node i; `boundaries` cover pairs that cross something."""

    by_node: tuple[Ints, ...]
    boundaries: tuple[Group, ...]

    @cached_property
    def crossing(self) -> Ints:
        """The pairs of all boundaries one after the other."""
        return np.concatenate([group.pairs for group in self.boundaries])


def by_node(ends: Ints, count: int) -> tuple[Ints, ...]:
    """The pairs of every node."""
    node = ends.T.reshape(-1)
    pair = np.tile(np.arange(len(ends)), 2)
    order = np.argsort(node, kind="stable")
    return tuple(np.split(pair[order], np.cumsum(np.bincount(node, minlength=count))[:-1]))


def explain(
    y: Floats, ends: Ints, groups: Groups, noise: Noise, limits: Limits
) -> tuple[list[Cause], list[Cause], Floats]:
    """The causes that are likelier than not to the degree `limits.accuse`, those that are at least suspects, and what every pair
    would reach with the former (log, relative to the level). `y` is relative to the level.

    A fleet half of which would have to be accused is not explained by its nodes: the search stops there.
    """
    bar = float(np.log(limits.accuse / (1 - limits.accuse)))
    passed: set[Key] = set()
    for _ in range(AGAIN):
        found = _one_by_one(y, ends, groups, noise, limits, bar, passed)
        found, cap = _without_the_needless(found, y, groups, noise, limits, bar)
        mistaken = {one.group.key for one in found if not _told_apart(one, y, ends)}
        if not mistaken:
            break
        passed |= mistaken
    taken = {one.group.key for one in found}
    low = float(np.log(limits.suspect / (1 - limits.suspect)))
    suspects = [
        one
        for one in _candidates(y, ends, groups, cap, noise, limits)
        if one.odds > low and one.group.key not in taken and not one.group.place
    ]
    return found, suspects, cap


def _one_by_one(
    y: Floats, ends: Ints, groups: Groups, noise: Noise, limits: Limits, bar: float, passed: Container[Key]
) -> list[Cause]:
    """Always the cause the values speak for most, until no further one is sure enough; those in `passed` are passed over."""
    cap = np.zeros(len(y))
    found: list[Cause] = []
    for _ in range(max(2, len(groups.by_node) // 2 + len(groups.boundaries))):
        sure = [
            one
            for one in _candidates(y, ends, groups, cap, noise, limits)
            if one.odds >= bar + _doubled(one, groups) and one.group.key not in passed
        ]
        best = max(sure, key=lambda one: one.odds, default=None)
        if best is None:
            break
        found.append(best)
        np.minimum.at(cap, best.group.pairs, best.cap)
    return found


def _told_apart(cause: Cause, y: Floats, ends: Ints) -> bool:
    """Whether a node was slow with at least one that is not slow with everybody: else it may only have met slow ones."""
    if cause.group.node < 0:
        return True
    fine = y > cause.cap / 2
    works = np.zeros(int(ends.max()) + 1, dtype=bool)
    works[ends[fine].reshape(-1)] = True
    slow = cause.group.pairs[~fine[cause.group.pairs]]
    return bool(works[ends[slow].sum(axis=1) - cause.group.node].any())


def _doubled(cause: Cause, groups: Groups) -> float:
    """Two disturbed runs can meet in one node: what rests on two pairs alone needs better odds, where more could be had."""
    few = cause.group.node >= 0 and cause.of < ENOUGH and len(groups.by_node) > ENOUGH + 1
    return TWO_PAIRS if few else 0.0


def _candidates(
    y: Floats, ends: Ints, groups: Groups, cap: Floats, noise: Noise, limits: Limits
) -> list[Cause]:
    """Every group whose free pairs are low on the whole, looked at closely."""
    step = float(np.log1p(-limits.effect))
    free = cap > step / 2
    weight = np.concatenate([free, free]).astype(float)
    node = ends.T.reshape(-1)
    count = len(groups.by_node)
    many = np.bincount(node, weight, minlength=count)
    total = np.bincount(node, weight * np.concatenate([y, y]), minlength=count)
    mean = np.divide(total, many, out=np.zeros(count), where=many > 0)
    lowest = [int(one) for one in np.argsort(mean)[:TRIED] if mean[one] < step / 2]
    # Of two that explain the same the boundary goes first: a node that stands alone in a zone is not the fault.
    tried = _low_boundaries(y, free, groups, step / 2)
    tried += [one for group in tried for one in _low_places(group, y, ends, free, groups, step / 2)]
    tried += [Group(groups.by_node[one], node=one) for one in lowest]
    causes = (weigh(group, y, cap, noise, limits) for group in tried)
    return [one for one in causes if one is not None]


def _low_boundaries(y: Floats, free: NDArray[np.bool_], groups: Groups, bar: float) -> list[Group]:
    """Boundaries whose free pairs are low on the whole."""
    if not groups.boundaries:
        return []
    every = groups.crossing
    first = np.cumsum([0, *(len(group.pairs) for group in groups.boundaries[:-1])])
    many = np.add.reduceat(free[every].astype(float), first)
    total = np.add.reduceat(np.where(free, y, 0.0)[every], first)
    return [group for group, n, t in zip(groups.boundaries, many, total, strict=True) if n and t / n < bar]


def _low_places(
    group: Group, y: Floats, ends: Ints, free: NDArray[np.bool_], groups: Groups, bar: float
) -> Iterator[Group]:
    """The sides of a low boundary whose inner pairs are as low: then it may be all that stands there, not the way to it."""
    for label, side in zip(group.labels, group.sides, strict=False):
        pairs = np.unique(np.concatenate([groups.by_node[node] for node in side]))
        inside = pairs[np.isin(ends[pairs], side).all(axis=1)]
        told = y[inside[free[inside]]]
        if len(told) >= ENOUGH and np.quantile(told, LOW_INSIDE) < bar:
            yield Group(pairs, labels=(label,), place=tuple(side.tolist()))


def weigh(
    group: Group,
    y: Floats,
    cap: Floats,
    noise: Noise,
    limits: Limits,
    *,
    rest: NDArray[np.bool_] | None = None,
) -> Cause | None:
    """How much the values speak for one more cap on these pairs; None where there is nothing to see.

    `rest`: pairs nothing is wrong with, once all causes are in place: then their number and spread count, too.
    """
    values, held = y[group.pairs], cap[group.pairs]
    step = float(np.log1p(-limits.effect))
    free = held > step / 2
    many = int(free.sum())
    if many == 0:
        return None
    now = noise.log_density(values - held)
    best: tuple[float, float] | None = None
    for share in (0.5, 0.75):
        level = float(np.quantile(values[free], share))
        if level > step:
            continue
        gain = float(np.sum(noise.log_density(values - np.minimum(held, level)) - now))
        if best is None or gain > best[0]:
            best = gain, level
    if best is None:
        return None
    gain, level = best
    if rest is not None:
        own, others = values[free] < level / 2, y[rest] < level / 2
        usual = 0.5 * math.erfc(-level / 2 / noise.spread / math.sqrt(2))
        by_share = few.most_by_share(int(own.sum()), many, int(others.sum()), len(others), usual)
        gain = min(gain, by_share, few.most_gain(values[free], y[rest], noise.spread))
    slow = int(np.count_nonzero(values[free] < level / 2))
    if slow < 2:
        return None
    prior = limits.node if group.node >= 0 else limits.boundary
    odds = gain + noise.occam(many) + float(np.log(prior / (1 - prior)))
    return Cause(group, level, odds, slow, many)


def _without_the_needless(
    found: Sequence[Cause], y: Floats, groups: Groups, noise: Noise, limits: Limits, bar: float
) -> tuple[list[Cause], Floats]:
    """Each cause again, with all the others in place: what they explain without it is no evidence for it."""
    kept = list(found)
    if not kept:
        return [], np.zeros(len(y))
    rest = (capped(len(y), found) == 0) & _of_good_nodes(y, groups, float(np.log1p(-limits.effect)) / 2)
    for one in sorted(found, key=lambda cause: cause.odds):
        others = capped(len(y), [other for other in kept if other is not one])
        again = weigh(one.group, y, others, noise, limits, rest=rest)
        at = kept.index(one)
        if again is None or again.odds < bar + _doubled(again, groups):
            kept.pop(at)
        else:
            kept[at] = replace(again)
    return kept, capped(len(y), kept)


def _of_good_nodes(y: Floats, groups: Groups, bar: float) -> NDArray[np.bool_]:
    """Pairs of two nodes that both have a fine one: what is low among these is no node's fault."""
    good = np.ones(len(y), dtype=bool)
    fine = y > bar
    for pairs in groups.by_node:
        if len(pairs) and not fine[pairs].any():
            good[pairs] = False
    return good


def capped(count: int, causes: Sequence[Cause]) -> Floats:
    """What every pair would reach with these causes."""
    cap = np.zeros(count)
    for one in causes:
        np.minimum.at(cap, one.group.pairs, one.cap)
    return cap


def cleared(
    y: Floats, ends: Ints, cap: Floats, noise: Noise, limits: Limits, count: int
) -> NDArray[np.bool_]:
    """Nodes whose free pairs are likelier "as the others" than "slow by the least effect", by the odds asked for."""
    step = float(np.log1p(-limits.effect))
    free = cap > step / 2
    tells = np.where(free, noise.log_density(y) - noise.log_density(y - step), 0.0)
    told = np.bincount(ends.T.reshape(-1), np.concatenate([tells, tells]), minlength=count)
    fine: NDArray[np.bool_] = told > np.log(limits.clear)
    return fine
