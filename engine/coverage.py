"""What was not covered, folded for people; and which section explains each way of not knowing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from straggler.engine.model import Status, Uncovered

SECTIONS: Mapping[Status, str] = {
    Status.NEEDS_ROOT: "needs-root",
    Status.DENIED: "denied",
    Status.TIMED_OUT: "timed-out",
    Status.ABANDONED: "abandoned",
    Status.TRUNCATED: "truncated",
    Status.TOOL_MISSING: "tool-missing",
    Status.NOT_APPLICABLE: "not-applicable",
    Status.NOT_VISIBLE: "not-visible-from-here",
    Status.FAILED: "failed",
    Status.GARBLED: "not-understood",
    Status.UNREACHABLE: "unreachable",
    Status.CANCELLED: "cancelled",
}


def section_for(status: Status) -> str:
    """`remedies/coverage.md#…`; OK needs none and raises KeyError."""
    return f"remedies/coverage.md#{SECTIONS[status]}"


@dataclass(frozen=True, slots=True)
class Gap:
    """The same readings missing in the same way on these nodes. `reasons`: in whose words, with the nodes each holds for."""

    status: Status
    subjects: tuple[str, ...]
    collectors: tuple[str, ...]
    reasons: tuple[tuple[str, tuple[str, ...]], ...]


def gaps(uncovered: Iterable[Uncovered]) -> tuple[Gap, ...]:
    """Largest first. Sixty hosts that each refuse in their own words are one gap with sixty reasons, not sixty gaps."""
    missing: dict[tuple[str, Status], set[str]] = defaultdict(set)
    words: dict[tuple[str, Status], dict[str, None]] = defaultdict(dict)
    for one in uncovered:
        for node in one.subjects:
            missing[node, one.status].add(one.collector)
            words[node, one.status].setdefault(one.reason)
    groups: dict[tuple[Status, tuple[str, ...]], list[str]] = defaultdict(list)
    for (node, status), names in missing.items():
        groups[status, tuple(sorted(names))].append(node)
    found = []
    for (status, collectors), nodes in groups.items():
        said: dict[str, list[str]] = defaultdict(list)
        for node in nodes:
            for reason in words[node, status]:
                said[reason].append(node)
        reasons = tuple((reason, tuple(who)) for reason, who in said.items())
        found.append(Gap(status, tuple(nodes), collectors, reasons))
    return tuple(sorted(found, key=lambda gap: (-len(gap.subjects) * len(gap.collectors), gap.status.value)))
