"""Simulated fleets for attribution: what each node, link and boundary can do, and runs of pairs with noise on top.

A pair reaches the least of its two nodes and the way between them, times lognormal noise; one run in a hundred is disturbed
and loses 10 to 40 %. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.model import Placement

SIZE = 8 * 2**30
USUAL = 480.0


@dataclass
class Fleet:
    """`nodes[i]`, `links[i, j]`: share of the usual bandwidth; `across`: share left between places of `places`."""

    count: int
    noise: float = 0.02
    seed: int = 0
    dips: float = 0.01
    nodes: Mapping[int, float] = field(default_factory=dict)
    links: Mapping[tuple[int, int], float] = field(default_factory=dict)
    places: Sequence[str] = ()
    across: float = 1.0

    def __post_init__(self) -> None:
        self.draw = np.random.default_rng(self.seed)
        self.can = np.ones(self.count)
        for node, share in self.nodes.items():
            self.can[node] = share

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"n{at:04}" for at in range(self.count))

    @property
    def placement(self) -> dict[str, Placement]:
        return {name: Placement(az=place) for name, place in zip(self.names, self.places, strict=False)}

    def rounds(self, many: int | None = None) -> list[np.ndarray]:
        """The circle method, nodes and rounds in drawn order: arrays of pairs, shape (pairs, 2)."""
        order = self.draw.permutation(self.count + self.count % 2)
        size = len(order)
        turn = np.arange(size - 1)
        chosen = self.draw.permutation(size - 1)[:many]
        found = []
        for number in chosen:
            ring = np.concatenate([[size - 1], (turn + number) % (size - 1)])
            pairs = np.stack([order[ring[: size // 2]], order[ring[: size // 2 - 1 : -1]]], axis=1)
            found.append(pairs[(pairs < self.count).all(axis=1)])
        return found

    def run(self, pairs: np.ndarray, *, calm: bool = False) -> np.ndarray:
        """What these pairs reach in one run each, GB/s. `calm`: nothing beside them, so nothing disturbs them."""
        reach = np.minimum(self.can[pairs[:, 0]], self.can[pairs[:, 1]])
        for (one, other), share in self.links.items():
            hit = ((pairs == (one, other)) | (pairs == (other, one))).all(axis=1)
            reach[hit] = np.minimum(reach[hit], share)
        if self.places:
            place = np.array(self.places)
            reach = np.where(place[pairs[:, 0]] != place[pairs[:, 1]], np.minimum(reach, self.across), reach)
        value = reach * np.exp(self.draw.normal(0, self.noise, len(pairs)))
        hit = self.draw.random(len(pairs)) < (0.0 if calm else self.dips)
        return USUAL * np.where(hit, value * self.draw.uniform(0.6, 0.9, len(pairs)), value)


def matrix(names: Sequence[str], pairs: np.ndarray, values: np.ndarray, alone: Sequence[bool] = ()) -> Matrix:
    """The matrix of runs (pairs may repeat), without going through logs."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    key = low.astype(np.int64) * len(names) + high
    order = np.argsort(key, kind="stable")
    kinds, first, many = np.unique(key[order], return_index=True, return_counts=True)
    best = np.maximum.reduceat(values[order], first) if len(kinds) else np.array([])
    detail = {}
    for at in np.flatnonzero(many > 1):
        one, other = divmod(int(kinds[at]), len(names))
        which = order[first[at] : first[at] + many[at]]
        detail[one, other] = tuple(
            Run(
                f"{'alone-001' if len(alone) and alone[run] else 'round-01'}/{names[one]}__{names[other]}.txt",
                "nccl-tests",
                (names[one], names[other]),
                RunState.OK,
                points={SIZE: float(values[run])},
            )
            for run in which
        )
    count = len(names)
    return Matrix(
        nodes=tuple(names),
        size=SIZE,
        metric=Metric.BUSBW,
        a=(kinds // count).astype(np.int32),
        b=(kinds % count).astype(np.int32),
        value=best.astype(np.float64),
        state=np.zeros(len(kinds), dtype=np.uint8),
        runs=many.astype(np.int32),
        alone=np.full(count, np.nan),
        alone_state=np.zeros(count, dtype=np.uint8),
        alone_runs=np.zeros(count, dtype=np.int32),
        detail=detail,
    )
