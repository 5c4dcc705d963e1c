"""Which nodes run together, and when: rounds of disjoint pairs that say the most when only a few of them are run.

The pairs are those of the circle method: n nodes sit around a circle and a round pairs every node with its mirror image about
one axis, so that n - 1 axes (n where n is odd: one node rests) give every pair exactly once. Two choices make the first rounds
useful where the network has levels:

- Seats. In the order of placement, nodes sit down alternately left and right of axis 0. Neighbours in placement face each other
  there, so that axis 0 pairs inside the smallest groups; of two zones each fills one half of the circle, the axis at a quarter
  pairs all of one with all of the other, and those between mix both. Which node of a group sits first is shuffled by the seed.
- Order of the axes. The first rounds are taken greedily: the axis that gives most nodes a kind of pair they have not had yet
  (inside the highest boundary, or across it; then any level of it). Among equals, the one with both kinds in the same round:
  what is across is then compared with what was inside at the same minute. The rest follows in an order shuffled by the seed.

Any prefix is balanced: a node has as many runs as any other, or one less where n is odd.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from straggler.engine.bandwidth.model import Attribution, Round, Standing
from straggler.engine.bandwidth.placement import boundaries, natural_ranks
from straggler.engine.model import Placement

Pair = tuple[str, str]

CHOSEN = 6
"""Rounds that are chosen for the boundaries they show; after them every node has had every kind it can have soon."""

LOOKED_AT = 512
"""Axes the choice looks at, of those of a large fleet; by then one more is never much better than the best."""


def round_zero(nodes: Sequence[str]) -> Round:
    """Each node alone, before any pair: a slow GPU must not be taken for a slow network."""
    return Round(0, tuple((node,) for node in nodes))


def rounds(
    nodes: Sequence[str], placement: Mapping[str, Placement], seed: int, limit: int | None = None
) -> tuple[Round, ...]:
    """The rounds of pairs, numbered from 1: all of them cover every pair exactly once, `limit` gives the first so many."""
    if len(set(nodes)) != len(nodes):
        raise ValueError("a node is named twice")
    if len(nodes) < 2:
        return ()
    seats = _seats(nodes, placement, seed)
    axes = _axes(seats, placement, seed, limit)
    return tuple(Round(number, tuple(_pairs(seats, axis))) for number, axis in enumerate(axes, 1))


def pack(pairs: Iterable[Pair], first: int = 1) -> tuple[Round, ...]:
    """The given pairs in few disjoint rounds: each goes to the first round in which both of its nodes are free."""
    wanted = list(dict.fromkeys(pair if pair[0] <= pair[1] else (pair[1], pair[0]) for pair in pairs))
    busy = Counter(node for pair in wanted for node in pair)
    taken: dict[str, set[int]] = {node: set() for node in busy}
    found: dict[int, list[Pair]] = {}
    for a, b in sorted(wanted, key=lambda pair: -max(busy[pair[0]], busy[pair[1]])):
        at = next(n for n in range(len(wanted)) if n not in taken[a] and n not in taken[b])
        taken[a].add(at)
        taken[b].add(at)
        found.setdefault(at, []).append((a, b))
    return tuple(Round(first + at, tuple(found[at])) for at in sorted(found))


def next_round(
    nodes: Sequence[str],
    done: Iterable[Pair],
    attribution: Attribution,
    *,
    number: int,
    repeated: Mapping[tuple[str, ...], int] | None = None,
    repeats: int = 3,
) -> Round | None:
    """What to run next, seeing what has come of the runs so far; None: nothing more would change the verdict.

    Suspects, and nodes with too few runs to say anything, meet cleared nodes they have not met, each cleared node once. When
    there is nothing to pair, one doubtful pair is repeated with nothing beside it. `done` has a pair as often as it was run;
    `repeated` says how often a pair (or a node alone) was run with nothing beside it. Neither is run more than `repeats` times.
    """
    if attribution.settled:
        return None
    members = _re_paired(nodes, Counter(map(_sorted, done)), attribution.standings, repeats)
    if members:
        return Round(number, members)
    so_far = repeated or {}
    for pair in _doubtful(attribution):
        member = pair if pair[0] != pair[1] else pair[:1]
        if so_far.get(member, 0) < repeats and set(member) <= set(nodes):
            return Round(number, (member,), alone=True)
    return None


def _doubtful(attribution: Attribution) -> Iterator[Pair]:
    yield from (_sorted(doubt.pair) for doubt in attribution.doubts)
    yield from (_sorted(blame.next_pair) for blame in attribution.verdicts if blame.next_pair is not None)


def _sorted(pair: Pair) -> Pair:
    return pair if pair[0] <= pair[1] else (pair[1], pair[0])


def _re_paired(
    nodes: Sequence[str], done: Counter[Pair], standings: Mapping[str, Standing], repeats: int
) -> tuple[Pair, ...]:
    """Each node in question with the cleared node it has met least; left out where only met ones are free in this round."""
    standing = {node: standings.get(node, Standing.UNDECIDED) for node in nodes}
    asked = [node for node in nodes if standing[node] is Standing.SUSPECT]
    asked += [node for node in nodes if standing[node] is Standing.UNDECIDED]
    cleared = [node for node in nodes if standing[node] is Standing.CLEARED]
    members: list[Pair] = []
    used: set[str] = set()
    for turn, node in enumerate(asked):
        if len(used) == len(cleared):
            break
        # Each starts elsewhere, so that many suspects do not all ask for the same partner first.
        partners = cleared[turn % len(cleared) :] + cleared[: turn % len(cleared)]
        met = {partner: done[_sorted((node, partner))] for partner in partners}
        least = min(met.values())
        free = next((one for one in partners if met[one] == least and one not in used), None)
        if least < repeats and free is not None:
            members.append(_sorted((node, free)))
            used.add(free)
    return tuple(members)


def _seats(nodes: Sequence[str], placement: Mapping[str, Placement], seed: int) -> list[str | None]:
    """Who sits where: seat 0 is the hub every axis ends at, the others are the circle. None: nobody, its partner rests."""
    draw = random.Random(f"seats {seed}")  # noqa: S311 - an order, not a secret
    ranks = natural_ranks(nodes)
    shuffled = sorted(nodes, key=ranks.__getitem__)
    draw.shuffle(shuffled)
    levels = {node: dict(boundaries(placement.get(node, Placement()))) for node in shuffled}
    names = _level_names(levels.values())
    groups = {node: tuple(levels[node].get(name, "") for name in names) for node in shuffled}
    row: list[str | None] = [*sorted(shuffled, key=groups.__getitem__)]
    if len(row) % 2:
        row.append(None)
    # Facing each other across axis 0: the hub and circle seat 0, then seats k and -k.
    around = len(row) - 1
    seats: list[str | None] = [None] * len(row)
    seats[0], seats[1] = row[0], row[1]
    for at in range(2, len(row)):
        k = at // 2
        seats[1 + (k if at % 2 == 0 else around - k)] = row[at]
    return seats


def _level_names(every: Iterable[Mapping[str, str]]) -> list[str]:
    """The names of the levels that occur, from the top."""
    found = {name for levels in every for name in levels}
    layers = sorted((name for name in found if name.startswith("layer-")), key=lambda name: int(name[6:]))
    return [name for name in ("az", *layers, "block", "ultraserver") if name in found]


def _facing(many: int, axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The seats that face each other about one axis, as two arrays of seat numbers."""
    around = many - 1
    step = np.arange(1, many // 2, dtype=np.int64)
    left = np.concatenate([[0], 1 + (axis + step) % around])
    right = np.concatenate([[1 + axis % around], 1 + (axis - step) % around])
    return left, right


def _pairs(seats: Sequence[str | None], axis: int) -> Iterator[Pair]:
    for left, right in zip(*(side.tolist() for side in _facing(len(seats), axis)), strict=True):
        a, b = seats[left], seats[right]
        if a is not None and b is not None:
            yield _sorted((a, b))


def _axes(
    seats: Sequence[str | None], placement: Mapping[str, Placement], seed: int, limit: int | None
) -> list[int]:
    """The axes in the order they are run."""
    draw = random.Random(f"rounds {seed}")  # noqa: S311 - an order, not a secret
    axes = list(range(len(seats) - 1))
    draw.shuffle(axes)
    wanted = len(axes) if limit is None else min(limit, len(axes))
    crossed = _levels(seats, placement)
    if crossed is None:
        return axes[:wanted]
    # Axis 0, the one that pairs inside the smallest groups, is always looked at.
    looked_at = list(dict.fromkeys([0, *axes[:LOOKED_AT]]))
    first = _chosen(crossed, looked_at, min(CHOSEN, wanted))
    taken = set(first)
    return [*first, *(axis for axis in axes if axis not in taken)][:wanted]


def _levels(seats: Sequence[str | None], placement: Mapping[str, Placement]) -> NDArray[np.int64] | None:
    """Per level from the top and per seat, the number of its group (-1: not known); None where no level splits the nodes."""
    places = [
        dict(boundaries(placement.get(seat, Placement()))) if seat is not None else {} for seat in seats
    ]
    rows = []
    for name in _level_names(places):
        groups = {value: at for at, value in enumerate(sorted({one[name] for one in places if name in one}))}
        if len(groups) > 1:
            rows.append([groups[one[name]] if name in one else -1 for one in places])
    return np.array(rows, dtype=np.int64) if rows else None


def _chosen(groups: NDArray[np.int64], axes: Sequence[int], many: int) -> list[int]:
    """The axes that give most seats a kind of pair they lack, one after the other."""
    levels, seats = groups.shape
    # Level at which the pair of a seat first crosses a boundary, for every axis: 0 is the top, `levels` means none.
    crossing = np.full((len(axes), seats), levels, dtype=np.int64)
    for row, axis in enumerate(axes):
        left, right = _facing(seats, axis)
        one, other = groups[:, left], groups[:, right]
        differ = (one != other) & (one >= 0) & (other >= 0)
        at = np.where(differ.any(axis=0), differ.argmax(axis=0), levels)
        crossing[row, left] = crossing[row, right] = at
    seen = np.zeros((levels + 1, seats), dtype=bool)
    across_top = crossing == 0
    uneven = np.abs(across_top.mean(axis=1) - 0.5)
    chosen: list[int] = []
    every = np.arange(seats)
    for _ in range(many):
        had_across, had_inside = seen[0], seen[1:].any(axis=0)
        new_side = np.where(across_top, ~had_across, ~had_inside).sum(axis=1)
        new_level = (~seen[crossing, every]).sum(axis=1)
        best = np.lexsort((uneven, -new_level, -new_side))
        row = next(int(at) for at in best if axes[int(at)] not in chosen)
        chosen.append(axes[row])
        seen[crossing[row], every] = True
    return chosen
