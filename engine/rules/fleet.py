"""How a finding is made that is about many nodes at once and rests on something else than their own readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from straggler.engine.coverage import section_for
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Evidence, Finding, Level, Priority, Status


def fleet_finding(
    name: str,
    level: Level,
    title: str,
    subjects: tuple[str, ...],
    known: Knowledge,
    *,
    rule: str,
    source: str,
    details: tuple[tuple[str, str], ...] = (),
    evidence: Sequence[str] = (),
    confidence: float = 0.95,
    values: Mapping[str, str] | None = None,
    unread: Status | None = None,
    priority: Priority | None = None,
) -> Finding:
    """With the prose of its entry, and its priority where none is given.
    `source`: where the lines of evidence come from. `unread`: it only says that a reading is missing."""
    kind = known.finding_kind(name)
    spoken = level in (Level.WARN, Level.FAIL, Level.UNKNOWN)
    return Finding(
        id=name,
        level=level,
        priority=(priority or kind.priority or Priority.P2) if spoken else None,
        title=title,
        subjects=subjects,
        details=details,
        evidence=tuple(Evidence(source, line) for line in evidence),
        confidence=confidence,
        why=kind.why,
        false_alarm=kind.false_alarm,
        next_step=kind.next_step,
        reference=section_for(unread) if unread else f"remedies/{kind.section}",
        route="" if unread else kind.route,
        unread=unread,
        rule=rule,
        values=values or {},
    )
