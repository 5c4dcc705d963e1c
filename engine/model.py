"""The nouns: node, observation, verdict, finding. Plain, frozen, without behaviour that reads or writes anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Generic, TypeVar

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)


class Level(str, Enum):
    """How a check ended. UNKNOWN is a result of its own: could not read is never fine."""

    PASS = "PASS"  # noqa: S105 - a level, not a password
    INFO = "INFO"
    UNKNOWN = "UNKNOWN"
    WARN = "WARN"
    FAIL = "FAIL"

    @property
    def is_fault(self) -> bool:
        return self in (Level.WARN, Level.FAIL)

    @property
    def rank(self) -> int:
        """Order of urgency, worst first (0)."""
        return _LEVEL_ORDER.index(self)


_LEVEL_ORDER = (Level.FAIL, Level.WARN, Level.UNKNOWN, Level.INFO, Level.PASS)


class Priority(str, Enum):
    """P0 blocks training, P1 degrades it, P2 is to know. Only WARN, FAIL and UNKNOWN carry one."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"


class Status(str, Enum):
    """Why an observation is or is not readable; every value but OK is a reason nothing may be concluded."""

    OK = "ok"
    DENIED = "denied"
    NEEDS_ROOT = "needs root"
    TIMED_OUT = "timed out"
    ABANDONED = "abandoned"
    TRUNCATED = "truncated"
    TOOL_MISSING = "tool missing"
    NOT_APPLICABLE = "not applicable"
    NOT_VISIBLE = "not visible from here"
    FAILED = "failed"
    GARBLED = "not understood"
    UNREACHABLE = "unreachable"
    CANCELLED = "cancelled"


class Vantage(str, Enum):
    """From where a reading was taken: what a container or a job step sees is not what the host has."""

    HOST_ROOT = "host as root"
    HOST_USER = "host as user"
    CONTAINER = "container"
    JOB_STEP = "job step"
    API = "API"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a node stands. None: not known, which is not the same as 'nowhere'."""

    az: str | None = None
    layers: tuple[str, ...] = ()
    block: str | None = None
    ultraserver: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the target. `id` is unique within a target; `names` are further names it answers to."""

    id: str
    names: tuple[str, ...] = ()
    group: str = ""
    instance_type: str | None = None
    placement: Placement = field(default_factory=Placement)


@dataclass(frozen=True, slots=True)
class Unread:
    """What stands where facts would be: the reason nothing may be concluded."""

    status: Status
    why: str


@dataclass(frozen=True, slots=True)
class Observation:
    """One collector's reply from one node.

    `text` and `errors` are stdout and stderr after redaction, bounded; `cut` is the number of bytes that were
    dropped beyond the bound. Times are Unix seconds by the operator's clock. `why` explains every status but OK.
    `command` says in words what was run. Facts are not stored: they follow from `text` by the collector's parse,
    so that a replay judges exactly what the live run judged.
    """

    collector: str
    node: str
    vantage: Vantage
    status: Status
    why: str = ""
    text: str = ""
    errors: str = ""
    cut: int = 0
    exit_code: int | None = None
    started: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim line or a few, and where they came from (`node: collector`)."""

    source: str
    text: str


NO_VALUES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule says of one node. Verdicts alike in id, level and title become one finding.

    `title` is a whole sentence without node names; `detail` is what is particular to this node (it is folded with a
    node set). `confidence` is 0..1. `values` fill the placeholders of the section's suggested commands.
    """

    id: str
    level: Level
    title: str
    detail: str = ""
    evidence: tuple[str, ...] = ()
    confidence: float = 0.95
    priority: Priority | None = None
    values: Mapping[str, str] = field(default_factory=lambda: NO_VALUES)
    also: tuple[str, ...] = ()
    unread: Status | None = None


@dataclass(frozen=True, slots=True)
class SuggestedCommand:
    """Shown, never run. `command` is one shell line made by shlex.join from typed values."""

    command: str
    preconditions: str
    blast_radius: str
    undo: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause, with every node it shows on. `reference` is `remedies/FILE.md#anchor` and always exists."""

    id: str
    level: Level
    priority: Priority | None
    title: str
    subjects: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    evidence: tuple[Evidence, ...]
    confidence: float
    why: str
    false_alarm: str
    next_step: str
    reference: str
    route: str
    rule: str
    also: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=lambda: NO_VALUES)
    """What fills the section's placeholders, where all subjects agree on it."""
    node_values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The same by node: a GPU's address on one node is another GPU, or none, on the next."""
    commands: tuple[SuggestedCommand, ...] = ()
    left_out: tuple[str, ...] = ()
    """Suggested commands that could not be offered, each with its reason."""
    unread: Status | None = None
    """Set where the finding says only that a reading is missing: why it is."""
    theirs: bool = False
    """The section is the user's own, from the config directory."""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """What could not be read, grouped: one collector, one reason, all the nodes it holds for."""

    collector: str
    status: Status
    reason: str
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The time of interest, Unix seconds; events outside are context, not accusation."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Read(Generic[F_co]):
    """Facts together with the observation they came from."""

    facts: F_co
    observation: Observation
