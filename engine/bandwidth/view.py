"""One matrix with all that is said of it, whole and frozen: what screens draw and exports write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from straggler.engine.model import Placement

if TYPE_CHECKING:
    from straggler.engine.bandwidth.baseline import Baseline
    from straggler.engine.bandwidth.matrix import Matrix
    from straggler.engine.bandwidth.model import Attribution

NOWHERE: Mapping[str, Placement] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Expected:
    """What pairs of this kind should reach, in the matrix's unit; None: nothing is published for them.

    `what` names the kind ("p5 pairs"), `ceiling` is what the wire carries at most.
    """

    low: float | None = None
    high: float | None = None
    ceiling: float | None = None
    what: str = ""
    source: str = ""


@dataclass(frozen=True, eq=False)
class MatrixView:
    """`revision` grows with every change, so that who drew one knows whether to draw again.

    `below_mean`: the share below the mean by which `Attribution.below_mean` was taken. `too_small`: the messages compared say
    nothing of bandwidth. `earlier`: an earlier sweep of the same nodes, to be set beside it.
    """

    matrix: Matrix
    attribution: Attribution
    expected: Expected = field(default_factory=Expected)
    placements: Mapping[str, Placement] = field(default_factory=lambda: NOWHERE)
    revision: int = 0
    below_mean: float = 0.0
    too_small: bool = False
    earlier: Baseline | None = None
