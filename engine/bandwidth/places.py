"""The way to a place, or all that stands in it: what the pairs inside a place say of a boundary around it.

Pairs across a boundary are slow both when the boundary is and when every node on one side of it is (a rack that runs hot, an
older generation). Only pairs with both ends on that side tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from straggler.engine.bandwidth.explain import Cause, Group, Groups
from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Blame
from straggler.engine.bandwidth.noise import Floats, Ints

UNPROVEN = 0.9
"""As sure as a boundary can be while no pair inside one of its sides was fine."""


def members(cause: Cause, groups: Groups, ends: Ints, y: Floats) -> Iterator[Cause]:
    """What is slow as a whole place, node by node: those with two or more slow pairs, that are slow with nodes elsewhere, too."""
    for node in cause.group.place:
        pairs = groups.by_node[node]
        low = y[pairs] < cause.cap / 2
        slow = int(np.count_nonzero(low))
        outward = ~np.isin(ends[pairs].sum(axis=1) - node, cause.group.place)
        # A healthy node in there is slow only with its neighbours.
        if slow >= 2 and outward.any() and np.mean(low[outward]) > 0.5:
            cap = float(np.median(y[pairs]))
            yield Cause(Group(pairs, node=node), min(cap, cause.cap / 2), cause.odds, slow, len(pairs))


def together(cause: Cause, many: int) -> str:
    """The note that goes with the verdicts on nodes of one place."""
    return (
        f"{many} of {len(cause.group.place)} nodes of {cause.group.labels[0]} are slow, also among themselves: "
        f"look first at what they share (cooling, power, generation), the way to them is not it"
    )


def doubted(blame: Blame, group: Group, ends: Ints, y: Floats, cap: float, matrix: Matrix) -> Blame:
    """A boundary's verdict, less sure where no pair inside one of its sides was fine; the next run is then such a pair."""
    for label, side in zip(group.labels, group.sides, strict=False):
        if not len(side):
            continue
        inside = np.isin(ends, side).all(axis=1)
        if np.any(y[inside] > cap / 2) or len(side) < 2:
            continue
        ran = "no pair" if not inside.any() else f"none of the {int(inside.sum())} pairs"
        what = "was run" if not inside.any() else "is as fast as the rest"
        why = (
            f"{blame.why.partition(';')[0]}; {ran} inside {label} {what}, so that it may be the nodes there "
            f"instead of the way to them"
        )
        wanted = matrix.nodes[int(side[0])], matrix.nodes[int(side[1])]
        return replace(blame, why=why, confidence=min(blame.confidence, UNPROVEN), next_pair=wanted)
    return blame
