"""What a pair can cross: for every level of placement the pairs between two places, and those between one place and the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from straggler.engine.bandwidth.explain import Group
from straggler.engine.bandwidth.noise import Ints
from straggler.engine.bandwidth.placement import boundaries as levels
from straggler.engine.model import Placement

LEAST = 3
"""Pairs a boundary must have to be looked at."""

MOST_PLACES = 128
"""Places of one level whose pairs are told apart two by two; above it only each place against the rest."""


def boundaries(places: Sequence[Placement], ends: Ints) -> tuple[Group, ...]:
    """The boundaries some pair crosses and some other does not, widest level first; one that parts the nodes as a wider one does
    is not named twice."""
    per_node = [dict(levels(one)) for one in places]
    names = list(dict.fromkeys(level for one in per_node for level in one))
    seen: set[bytes] = set()
    found: list[Group] = []
    for level in names:
        labels = sorted({one[level] for one in per_node if level in one})
        if len(labels) < 2:
            continue
        # A place of one node is that node; only of a zone it is known that its network ends there.
        living = Counter(one[level] for one in per_node if level in one)
        counted = [label for label in labels if living[label] > 1 or level == "az"]
        number = {label: at for at, label in enumerate(counted)}
        labels = counted
        if len(labels) < 2:
            continue
        code = np.array([number.get(one.get(level, ""), -1) for one in per_node], dtype=np.int64)
        for group in _of_level(level, labels, code, ends):
            mark = group.pairs.tobytes()
            if mark not in seen and len(group.pairs) < len(ends):
                seen.add(mark)
                found.append(group)
    return tuple(found)


def _of_level(level: str, labels: Sequence[str], code: Ints, ends: Ints) -> list[Group]:
    one, other = code[ends[:, 0]], code[ends[:, 1]]
    crossing = np.flatnonzero((one != other) & (one >= 0) & (other >= 0))
    low, high = np.minimum(one, other)[crossing], np.maximum(one, other)[crossing]
    found = []
    if not len(crossing):
        return []
    living = [np.flatnonzero(code == at) for at in range(len(labels))]
    if len(labels) <= MOST_PLACES:
        key = low * len(labels) + high
        order = np.argsort(key, kind="stable")
        kinds, first = np.unique(key[order], return_index=True)
        for kind, pairs in zip(kinds, np.split(crossing[order], first[1:]), strict=True):
            if len(pairs) >= LEAST:
                a, b = divmod(int(kind), len(labels))
                names = (f"{level}:{labels[a]}", f"{level}:{labels[b]}")
                found.append(Group(np.sort(pairs), labels=names, sides=(living[a], living[b])))
    if len(labels) > 2:
        for at, label in enumerate(labels):
            pairs = crossing[(low == at) | (high == at)]
            if len(pairs) >= LEAST:
                found.append(Group(pairs, labels=(f"{level}:{label}",), sides=(living[at],)))
        found.append(Group(crossing, labels=(f"{level}:*",)))
    return found
