"""Runs laid out by pair: one message size, one value and state for every pair that was run, in arrays that hold a million.

A pair that was run several times has the best of its complete runs: a run can be disturbed, never helped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from straggler.engine.bandwidth.model import Metric, Run, RunState

STATES: tuple[RunState, ...] = (RunState.OK, RunState.FAILED, RunState.TRUNCATED, RunState.IMPLAUSIBLE)
"""What the numbers in `Matrix.state` mean."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Codes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair as the screen shows it. `value` is None where no run was complete, in the matrix's unit otherwise."""

    a: str
    b: str
    value: float | None
    state: RunState
    runs: tuple[Run, ...]


@dataclass(frozen=True, eq=False)
class Matrix:
    """All pairs that were run. `a` and `b` index `nodes` with a < b; one entry per pair, sorted by (a, b).

    `value` is NaN where no run was complete. `alone` and `alone_state` hold, per node, its run by itself at `alone_size` bytes
    (NaN and state FAILED..: as for pairs; `alone_runs` 0: not run). `detail` gives the runs behind a pair, `by_node` those of a
    node alone. `groups` are runs over more than two hosts. `notes` say what was left out and why.
    """

    nodes: tuple[str, ...]
    size: int | None
    metric: Metric
    a: Ints
    b: Ints
    value: Floats
    state: Codes
    runs: Ints
    alone: Floats
    alone_state: Codes
    alone_runs: Ints
    alone_size: int | None = None
    collective: str | None = None
    detail: Mapping[tuple[int, int], tuple[Run, ...]] = field(default_factory=lambda: MappingProxyType({}))
    by_node: Mapping[int, tuple[Run, ...]] = field(default_factory=lambda: MappingProxyType({}))
    groups: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.a)

    def at(self, one: int, other: int) -> int | None:
        """Where the pair of two node numbers stands in the arrays; None: it was not run."""
        low, high = min(one, other), max(one, other)
        keys = self._keys
        key = low * len(self.nodes) + high
        found = int(np.searchsorted(keys, key))
        return found if found < len(keys) and keys[found] == key else None

    @property
    def _keys(self) -> NDArray[np.int64]:
        cached: NDArray[np.int64] | None = self.__dict__.get("_sorted_keys")
        if cached is None:
            cached = self.a.astype(np.int64) * len(self.nodes) + self.b
            self.__dict__["_sorted_keys"] = cached
        return cached

    def cell(self, one: int, other: int) -> Cell | None:
        """The pair of two node numbers, or None where it was not run."""
        at = self.at(one, other)
        return None if at is None else self.cell_at(at)

    def cell_at(self, at: int) -> Cell:
        low, high = int(self.a[at]), int(self.b[at])
        value = float(self.value[at])
        return Cell(
            self.nodes[low],
            self.nodes[high],
            None if value != value else value,
            STATES[int(self.state[at])],
            self.detail.get((low, high), ()),
        )

    def cells(self) -> Iterator[Cell]:
        return (self.cell_at(at) for at in range(len(self.a)))
