"""Which section explains each way of not knowing."""

from __future__ import annotations

from collections.abc import Mapping

from straggler.engine.model import Status

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
