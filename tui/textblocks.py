"""Findings as plain text, for the clipboard and for a mail."""

from __future__ import annotations

from straggler.engine.model import Finding
from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe


def finding_text(one: Finding) -> str:
    """Everything somebody else needs to follow it, safe to paste."""
    lines = [
        f"{one.level.value} {one.priority.value if one.priority else ''} {safe(one.title)}".replace(
            "  ", " "
        ),
        f"on {safe(fold(one.subjects))} ({one.confidence * 100:.0f}% sure, {one.id})",
        *(f"{safe(names)}: {safe(detail)}" for names, detail in one.details),
        *(f"evidence {safe(line.source)}: {safe(line.text)}" for line in one.evidence),
        f"why: {one.why}",
        f"not this if: {one.false_alarm}",
        f"next: {one.next_step}",
        f"section: {one.reference}",
    ]
    return "\n".join(lines)
