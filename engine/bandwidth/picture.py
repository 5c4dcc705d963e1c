"""A matrix as it is drawn: nodes in an order, sections with names, one sign per pair, and rows made when they are asked for.

A digit is a distance from the median in tenths, rounded: 9 is at the median or above, 8 a tenth slower, 0 nine tenths or more.
So the digits carry everything, and a colour only repeats them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from straggler.engine.bandwidth import placement
from straggler.engine.bandwidth.matrix import STATES, Codes, Floats, Ints
from straggler.engine.bandwidth.model import Kind, RunState, Standing
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.model import Node, Placement
from straggler.engine.safetext import safe

SIGNS = {RunState.FAILED: "x", RunState.TRUNCATED: "~", RunState.IMPLAUSIBLE: "!"}
"""The sign of a pair without a value to trust."""

UNJUDGED = "?"
"""The sign of a complete run that has no value at the size that is compared."""

BLANK, SELF = " ", "·"
FEW, LEAST = 4, 6
"""Sections that are always drawn, and the nodes that more of them have on average: more lines would hide what they part."""

LABEL = 16

SHIFTED = 0.05
"""Half a digit: from there on the median and what the unaffected reach are not the same picture."""
"""Columns a row's label takes at most."""


@dataclass(frozen=True, slots=True)
class Section:
    """Nodes that stand together: places `start` to `stop` of the order. `wider`: one of a wider level begins with it.

    `names`: of that wider one, then its own.
    """

    names: tuple[str, ...]
    start: int
    stop: int
    wider: bool = False

    def named(self, room: int) -> str:
        """As much of its name as fits, the wider place before the narrower; what tells places apart stands at the end."""
        for name in (" ".join(self.names), self.names[0]):
            if len(name) <= room:
                return name
        return f"…{self.names[0][1 - room :]}" if room > 1 else ""


class Picture:
    """`order` holds node numbers of the matrix, place by place; `labels` their short names, by node number."""

    def __init__(self, view: MatrixView, order: Sequence[int], sections: Sequence[Section] = ()) -> None:
        self.view, self.matrix = view, view.matrix
        self.order = np.asarray(order, dtype=np.intp)
        self.sections = tuple(sections)
        self.place = np.empty(len(order), dtype=np.intp)
        self.place[self.order] = np.arange(len(order))
        self.labels, self.lead = short_names(self.matrix.nodes)
        self.numbers = {name: number for number, name in enumerate(self.matrix.nodes)}

    def __len__(self) -> int:
        return len(self.order)

    @property
    def norm_name(self) -> str:
        """What 9 stands for, in words."""
        slow = any(one.kind is Kind.CLUSTER for one in self.view.attribution.verdicts)
        return "what it should be" if slow else "what the unaffected reach" if self._shifted else "the median"

    @property
    def _shifted(self) -> bool:
        found = self.view.attribution
        return bool(found.usual and found.median and abs(found.usual / found.median - 1) >= SHIFTED)

    @property
    def norm(self) -> float | None:
        """The value that 9 stands for: what a pair reaches that nothing is wrong with. Beside the median of a fleet that is slow
        as a whole, or in its greater part, everything would look well."""
        found = self.view.attribution
        return found.median if found.usual is None else found.usual

    @cached_property
    def signs(self) -> Codes:
        """One character code per pair, in the order of the matrix's arrays."""
        return signs(self.matrix.value, self.matrix.state, self.norm, self.matrix.metric.lower_is_better)

    @cached_property
    def own(self) -> Codes:
        """One per node: `·` unless its run alone was slow, failed or is in doubt."""
        matrix = self.matrix
        ran = matrix.alone_runs > 0
        good = matrix.alone[ran & (matrix.alone_state == 0) & ~np.isnan(matrix.alone)]
        median = float(np.median(good)) if len(good) else None
        out = signs(matrix.alone, matrix.alone_state, median, matrix.metric.lower_is_better)
        out[~ran | (out == ord("9"))] = ord(SELF)
        return out

    @cached_property
    def _by_b(self) -> NDArray[np.intp]:
        # Sixteen bits are sorted by counting, several times as fast.
        narrow = self.matrix.b.astype(np.uint16) if len(self.matrix.nodes) < 1 << 16 else self.matrix.b
        return np.argsort(narrow, kind="stable")

    @cached_property
    def _starts(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where each node's pairs begin, once as `a` and once, through `_by_b`, as `b`."""
        edges = np.arange(len(self.matrix.nodes) + 1)
        return np.searchsorted(self.matrix.a, edges), np.searchsorted(self.matrix.b[self._by_b], edges)

    def pairs_of(self, node: int) -> tuple[Ints, NDArray[np.intp]]:
        """The partners of a node and where their pairs stand in the arrays."""
        as_a, as_b = self._starts
        first = np.arange(as_a[node], as_a[node + 1])
        second = self._by_b[as_b[node] : as_b[node + 1]]
        at = np.concatenate([first, second])
        return np.concatenate([self.matrix.b[first], self.matrix.a[second]]), at

    def row(self, place: int) -> str:
        """The signs of one row, a character per place."""
        node = int(self.order[place])
        partners, at = self.pairs_of(node)
        out = np.full(len(self.order), ord(BLANK), dtype=np.uint8)
        out[self.place[partners]] = self.signs[at]
        out[place] = self.own[node]
        return out.tobytes().decode("latin-1")

    def values(self, place: int) -> Floats:
        """The values of one row, NaN where there is none; on the diagonal the node alone."""
        node = int(self.order[place])
        partners, at = self.pairs_of(node)
        out = np.full(len(self.order), np.nan)
        out[self.place[partners]] = self.matrix.value[at]
        out[place] = self.matrix.alone[node]
        return out

    def label(self, place: int) -> str:
        return self.labels[int(self.order[place])]

    def node(self, place: int) -> str:
        return self.matrix.nodes[int(self.order[place])]

    def worst_partner(self, node: int) -> int | None:
        """The partner a node does worst with: a failed run before a slow one."""
        partners, at = self.pairs_of(node)
        if not len(at):
            return None
        value = self.matrix.value[at]
        rank = value if not self.matrix.metric.lower_is_better else -value
        rank = np.where(np.isnan(rank), -np.inf, rank)
        return int(partners[int(np.argmin(rank))])


def signs(value: Floats, state: Codes, median: float | None, lower_is_better: bool) -> Codes:
    """Digits for what can be compared, signs for what cannot."""
    out = np.full(len(value), ord(UNJUDGED), dtype=np.uint8)
    if median:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = median / value if lower_is_better else value / median
        tenths = np.clip(np.floor(np.nan_to_num(10 * ratio, posinf=10) + 0.5) - 1, 0, 9)
        out = np.where(np.isnan(value), out, tenths.astype(np.uint8) + ord("0")).astype(np.uint8)
    for code, what in enumerate(STATES):
        if what in SIGNS:
            out[state == code] = ord(SIGNS[what])
    return out


def short_names(nodes: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """What tells nodes apart, and the beginning they share: `001`, `002` and `worker-`. Safe to print."""
    lead = _shared(nodes)
    lead = lead.rstrip("0123456789")
    if (
        lead
        and not lead.endswith(("-", "_", "."))
        and not all(one[len(lead) :][:1].isdigit() for one in nodes)
    ):
        lead = ""
    tail = _shared([one[len(lead) :][::-1] for one in nodes])[::-1]
    tail = tail[tail.index(".") :] if "." in tail else ""
    short = [one[len(lead) : len(one) - len(tail)] for one in nodes]
    if len(set(short)) != len(set(nodes)) or not all(short):
        short, lead = list(nodes), ""
    return tuple(map(_label, short)), safe(lead, limit=40)


def _label(name: str) -> str:
    """The end of a long one: there names differ."""
    shown = safe(name, limit=200)
    return shown if len(shown) <= LABEL else f"…{shown[1 - LABEL :]}"


def _shared(names: Sequence[str]) -> str:
    """The beginning all names have; of one name alone nothing is shared."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), None)
    return first[:same]


def arranged(view: MatrixView) -> Picture:
    """In the order of placement, with the boundaries between what stands apart."""
    nodes = [Node(name, placement=view.placements.get(name, Placement())) for name in view.matrix.nodes]
    numbers = {name: number for number, name in enumerate(view.matrix.nodes)}
    order = [numbers[node.id] for node in placement.order(nodes)]
    return Picture(view, order, sections(view, order))


def sections(view: MatrixView, order: Sequence[int]) -> list[Section]:
    """Nodes that stand together, on the finest level of few places or of `LEAST` nodes each; none where nothing is known.

    Where the coarsest such level changes, too, a section begins a wider one; its name says so.
    """
    nowhere = Placement()
    where = [
        dict(placement.boundaries(view.placements.get(view.matrix.nodes[number], nowhere)))
        for number in order
    ]
    levels = sorted({level for one in where for level in one}, key=_from_the_top)
    levels = [level for level in levels if len({one.get(level) for one in where}) > 1]
    cuts: dict[str, list[int]] = {}
    for level in levels:
        paths = [tuple(one.get(above) for above in (*cuts, level)) for one in where]
        starts = [0, *(at for at in range(1, len(paths)) if paths[at] != paths[at - 1])]
        if len(starts) <= FEW or len(where) >= LEAST * len(starts):
            cuts[level] = starts
    if not cuts:
        return []
    top, level = next(iter(cuts)), list(cuts)[-1]
    found = []
    for start, stop in pairwise([*cuts[level], len(where)]):
        wider = start in cuts[top]
        shown = [one for one in dict.fromkeys((top, level)) if one == level or wider]
        names = tuple(safe(where[start].get(one) or f"no {one}", limit=60) for one in shown)
        found.append(Section(names, start, stop, wider and top != level))
    return found


def _from_the_top(level: str) -> tuple[int, str]:
    """`az`, `layer-1`, `layer-2`, …, `block`, `ultraserver`."""
    return ("az", "layer", "block", "ultraserver").index(level.partition("-")[0]), level


def by_score(view: MatrixView) -> list[int]:
    """Worst first, those that failed with everybody before all; nodes nothing is known of come last."""
    scores, standings = view.attribution.scores, view.attribution.standings

    def key(number: int) -> tuple[bool, float, int]:
        name = view.matrix.nodes[number]
        score = scores.get(name)
        return score is None and standings.get(name) is not Standing.CULPRIT, score or 0.0, number

    return sorted(range(len(view.matrix.nodes)), key=key)
