"""Runs that gave no value: is it one node whose runs all fail, a boundary nothing crosses, or a pair to be run again?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from straggler.engine.bandwidth.explain import Groups
from straggler.engine.bandwidth.noise import Ints


@dataclass(frozen=True, slots=True)
class Failures:
    """`nodes`: (node, its failed runs) where all of two or more failed although others' go on. `boundaries`: positions in
    `Groups.boundaries` of those no run got across. `left`: failed pairs none of these explains."""

    nodes: tuple[tuple[int, int], ...]
    boundaries: tuple[int, ...]
    left: Ints


def attribute_failures(failed: NDArray[np.bool_], ends: Ints, groups: Groups) -> Failures:
    """`failed` per pair: it was run and no run of it was complete. Where no pair at all was complete nobody is accused."""
    if failed.all() or not failed.any():
        return Failures((), (), np.flatnonzero(failed))
    open_ = failed.copy()
    crossed = []
    for at, group in enumerate(groups.boundaries):
        # At least two nodes on either side, or it is those nodes' own matter.
        sides = [len(set(ends[group.pairs, side].tolist())) for side in (0, 1)]
        if min(sides) >= 2 and failed[group.pairs].all() and open_[group.pairs].any():
            crossed.append(at)
            open_[group.pairs] = False
    tells = ~failed | open_
    works = np.zeros(len(groups.by_node), dtype=bool)
    works[ends[~failed].reshape(-1)] = True
    nodes = []
    for node, pairs in enumerate(groups.by_node):
        own = pairs[tells[pairs]]
        partners = ends[own].sum(axis=1) - node
        # Partners that work with others: what fails is this node, not the whole run.
        if len(own) >= 2 and failed[own].all() and np.count_nonzero(works[partners]) >= 2:
            nodes.append((node, len(own)))
    for node, _ in nodes:
        open_[groups.by_node[node]] = False
    return Failures(tuple(nodes), tuple(crossed), np.flatnonzero(open_))
