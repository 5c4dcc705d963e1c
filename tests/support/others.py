"""The rules other tools and guides use to name slow nodes from pair bandwidths, as they state them.

Each takes the same runs: `pairs` (runs, 2), `values` (GB/s), `count` nodes; and gives the set of accused node numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.fleets import USUAL, Fleet

Rule = Callable[[np.ndarray, np.ndarray, int], set[int]]


def means(pairs: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """The mean of every node's pairs; NaN where it has none."""
    node = pairs.T.reshape(-1)
    many = np.bincount(node, minlength=count)
    total = np.bincount(node, np.concatenate([values, values]), minlength=count)
    return np.divide(total, many, out=np.full(count, np.nan), where=many > 0)


def below_mean(share: float) -> Rule:
    """A node whose pairs lie more than `share` below the run's mean."""

    def rule(pairs: np.ndarray, values: np.ndarray, count: int) -> set[int]:
        return set(np.flatnonzero(means(pairs, values, count) < (1 - share) * values.mean()).tolist())

    return rule


def below_median(share: float) -> Rule:
    """A node whose pairs lie more than `share` below the median of all pairs."""

    def rule(pairs: np.ndarray, values: np.ndarray, count: int) -> set[int]:
        return set(np.flatnonzero(means(pairs, values, count) < (1 - share) * np.median(values)).tolist())

    return rule


def bottom_quartile(pairs: np.ndarray, values: np.ndarray, count: int) -> set[int]:
    """The lowest quarter of the nodes, whatever they reach."""
    mean = means(pairs, values, count)
    return set(np.argsort(mean)[: count // 4].tolist())


def z_score(cut: float) -> Rule:
    """A node whose mean is `cut` standard deviations below the mean of all nodes."""

    def rule(pairs: np.ndarray, values: np.ndarray, count: int) -> set[int]:
        mean = means(pairs, values, count)
        return set(np.flatnonzero(mean < np.nanmean(mean) - cut * np.nanstd(mean)).tolist())

    return rule


def mad(cut: float) -> Rule:
    """The same with the median and the median absolute deviation."""

    def rule(pairs: np.ndarray, values: np.ndarray, count: int) -> set[int]:
        mean = means(pairs, values, count)
        middle = np.nanmedian(mean)
        spread = 1.4826 * np.nanmedian(np.abs(mean - middle))
        return set(np.flatnonzero(mean < middle - cut * spread).tolist())

    return rule


ON_RUNS: dict[str, Rule] = {
    "5 % below mean": below_mean(0.05),
    "10 % below median": below_median(0.10),
    "20 % below median": below_median(0.20),
    "bottom quartile": bottom_quartile,
    "z < -2": z_score(2),
    "MAD < -2": mad(2),
    "MAD < -3": mad(3),
}
"""Rules that judge a finished set of runs."""


def suspects_with_passed(fleet: Fleet, rounds: int, share: float = 0.10) -> tuple[set[int], int]:
    """One round of pairs; both nodes of a pair more than `share` below the median are suspects; every further round runs each
    suspect with another node that passed, and one that passes is a suspect no more. Accused, and rounds used."""
    first = fleet.rounds(1)[0]
    values = fleet.run(first)
    usual = float(np.median(values))
    suspects = set(first[values < (1 - share) * usual].reshape(-1).tolist())
    passed = [int(one) for one in np.unique(first) if int(one) not in suspects]
    used = 1
    while suspects and passed and used < rounds:
        used += 1
        mates = fleet.draw.permutation(passed)
        order = sorted(suspects)
        pairs = np.array([(one, int(mates[at % len(mates)])) for at, one in enumerate(order)])
        again = fleet.run(pairs)
        suspects = {one for one, value in zip(order, again, strict=True) if value < (1 - share) * usual}
        if used >= 2 and rounds == 2:
            break
    return suspects, used


def bisection(fleet: Fleet, rounds: int, share: float = 0.10) -> tuple[set[int], int]:
    """Group runs over halves, quarters and so on of what was slow, all groups of a level at once. A group run reaches what its
    slowest member does. It is given the true usual bandwidth, which a real one would have to know."""
    groups = [list(range(fleet.count))]
    used = 0
    while used < rounds and groups:
        used += 1
        slow = []
        for group in groups:
            reach = float(fleet.can[group].min()) * USUAL * float(np.exp(fleet.draw.normal(0, fleet.noise)))
            if fleet.draw.random() < fleet.dips:
                reach *= float(fleet.draw.uniform(0.6, 0.9))
            if reach < (1 - share) * USUAL:
                slow.append(group)
        if all(len(group) == 1 for group in slow):
            return {group[0] for group in slow}, used
        groups = [
            half
            for group in slow
            for half in ((group[: len(group) // 2], group[len(group) // 2 :]) if len(group) > 1 else (group,))
        ]
    return {one for group in groups for one in group} if groups else set(), used
