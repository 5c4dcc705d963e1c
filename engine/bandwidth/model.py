"""The nouns of pairwise bandwidth: one run of a tool, a round of disjoint runs, a verdict. Plain and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

NO_POINTS: Mapping[int, float] = MappingProxyType({})


class RunState(str, Enum):
    """What came of a run. Everything but OK is a state of that pair: never a zero, never left out.

    FAILED: the tool said so, hung past its deadline, or computed wrong results. TRUNCATED: its output stops before its closing
    lines. IMPLAUSIBLE: a value above what the wire can carry.
    """

    OK = "ok"
    FAILED = "failed"
    TRUNCATED = "truncated"
    IMPLAUSIBLE = "implausible"


class Metric(str, Enum):
    """What a run measured, with its unit; of a latency the lower value is the better one."""

    BUSBW = "busbw GB/s"
    RATE = "GB/s"
    LATENCY = "µs"

    @property
    def lower_is_better(self) -> bool:
        return self is Metric.LATENCY


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a bandwidth tool, as its output says.

    `hosts` in order of first appearance: one is a node alone (round 0), two are a pair, more are a group. `points` maps message
    size (bytes) to the value in the unit of `metric`; a size without a value is not in it. `directed`: measured from the first
    host to the second only. `source` is the file's name or what stood for one.
    """

    source: str
    tool: str
    hosts: tuple[str, ...]
    state: RunState
    why: str = ""
    metric: Metric = Metric.BUSBW
    points: Mapping[int, float] = field(default_factory=lambda: NO_POINTS)
    collective: str | None = None
    ranks: int | None = None
    directed: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """Runs that share no node, so that they can go on at once. Round 0 holds each node alone, later rounds pairs.

    `alone`: a repeat of doubtful pairs with nothing beside it, so that a shared link cannot be the reason.
    """

    number: int
    members: tuple[tuple[str, ...], ...]
    alone: bool = False


class Kind(str, Enum):
    """What a verdict accuses."""

    NODE = "node"
    LINK = "link"
    BOUNDARY = "boundary"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Blame:
    """One verdict. `effect` is relative to the unaffected rest (cluster: to the expectation of the type), negative is slower;
    None where every pair of the node failed, so that there is nothing to compare.

    `subjects`: node [n]; link [a, b]; boundary ["az:use1-az1", "az:use1-az2"]; cluster []. `slow` of `of` runs show it.
    `alone`: the node is slow by itself, before any other node comes in. `next_pair`: the run that would settle it, nothing
    else beside it; for a node alone, the node twice.
    """

    kind: Kind
    subjects: tuple[str, ...]
    effect: float | None
    confidence: float
    why: str
    slow: int
    of: int
    next_pair: tuple[str, str] | None = None
    alone: bool = False
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """A pair (or a node alone: the name twice) that is low but proves nothing yet: to be repeated alone."""

    pair: tuple[str, str]
    effect: float | None
    why: str


class Standing(str, Enum):
    """Where a node stands after the runs so far. UNDECIDED: too few runs to say anything."""

    CLEARED = "cleared"
    SUSPECT = "suspect"
    CULPRIT = "culprit"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who is to blame, over one matrix. `scores`: per node of the matrix, its capability relative to the fleet (1.0 = as the
    others; None = no run). `below_mean`: pairs more than 5 % below the run's mean, the rule others use, for information.
    `usual`: what a pair reaches that nothing is wrong with, in the matrix's unit: the level of those not accused or, of a fleet that
    is slow as a whole, what it should be. `settled`: another round would change nothing that is said here.
    """

    verdicts: tuple[Blame, ...]
    doubts: tuple[Doubt, ...]
    median: float | None
    mean: float | None
    scores: Mapping[str, float | None]
    standings: Mapping[str, Standing]
    below_mean: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    settled: bool = False
    usual: float | None = None
