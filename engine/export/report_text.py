"""The report as plain text for a pipe, a mail or a terminal without a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from straggler.engine.coverage import gaps
from straggler.engine.diagnosis import Diagnosis
from straggler.engine.judge import Report
from straggler.engine.model import Finding, Level, Uncovered
from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe
from straggler.engine.window import utc

WIDTH = 100
DETAILS = 12
"""Lines of particulars under one heading; JSON has them all."""


def render(diagnosis: Diagnosis, report: Report, *, ascii_only: bool = False) -> str:
    """Faults first, each whole; then what was not covered, what is to know, and what passed, folded."""
    lines = [*_head(diagnosis, report), ""]
    faults = [one for one in report.findings if one.level.is_fault]
    for one in faults:
        lines += [*_fault(one), ""]
    if not faults:
        lines += ["No fault was found in what could be read.", ""]
    lines += _rest(report)
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text.translate(_ASCII) if ascii_only else text


_ASCII = str.maketrans(
    {"·": "|", "…": "~", "°": " ", "–": "-", "—": "-", "→": ">", "§": "S", "≥": ">", "×": "x", "’": "'"}
)


def _head(diagnosis: Diagnosis, report: Report) -> Iterator[str]:
    window = diagnosis.window
    yield f"straggler · {safe(diagnosis.target.title)} · read-only"
    yield f"symptom {diagnosis.plan.symptom} · window {utc(window.since)} to {utc(window.until)}"
    yield (
        f"{report.nodes_read} of {report.nodes_total} nodes read · {report.coverage:.0f} % of the readings wanted · "
        f"{_many(sum(one.level.is_fault for one in report.findings), 'finding')}"
    )
    if diagnosis.known.theirs:
        yield from _wrapped("with your own: ", ", ".join(diagnosis.known.theirs))


def _fault(one: Finding) -> Iterator[str]:
    title = f"{one.level.value} {one.priority.value if one.priority else ''}  {safe(one.title)}"
    title += f" ({_many(len(one.subjects), 'node')})"
    yield f"{title}  [{one.id}, {one.confidence * 100:.0f} % sure]"
    for names, detail in one.details[:DETAILS]:
        yield from _wrapped("  ", f"{safe(names)}: {safe(detail)}")
    if len(one.details) > DETAILS:
        yield f"  and {len(one.details) - DETAILS} more; --format json has them all"
    if not one.details:
        yield from _wrapped("  on ", safe(fold(one.subjects)))
    for line in one.evidence:
        yield f"  | {safe(line.source)} | {safe(line.text)}"
    yield from _wrapped("  Why it matters: ", one.why)
    yield from _wrapped("  Not this if: ", one.false_alarm)
    yield from _wrapped("  Next: ", one.next_step)
    route = f" (AWS: {one.route})" if one.route else ""
    own = " (your own section)" if one.theirs else ""
    yield f"  Remedy: {one.reference}{own}{route}"
    for command in one.commands:
        yield from _command(
            command.command, command.preconditions, command.blast_radius, command.undo, command.note
        )
    yield from _not_offered(one.left_out)


def _not_offered(left_out: Iterable[str]) -> Iterator[str]:
    for one in left_out:
        yield from _wrapped("  Not offered: ", safe(one))


def _command(command: str, preconditions: str, blast_radius: str, undo: str, note: str) -> Iterator[str]:
    yield "  Suggested command (run this yourself):"
    yield f"    {command}"
    for name, text in (
        ("Preconditions", preconditions),
        ("Blast radius", blast_radius),
        ("Undo", undo),
        ("Note", note),
    ):
        if text:
            yield from _wrapped(f"    {name}: ", text)


def _rest(report: Report) -> Iterator[str]:
    if report.waiting:
        yield from _wrapped("Not answered when this ended: ", safe(fold(report.waiting)))
        yield ""
    if report.uncovered:
        yield "Not covered (nothing is known of these; it is not the same as fine):"
        yield from uncovered_lines(report.uncovered)
        yield ""
    other = [
        one for one in report.findings if one.level is Level.UNKNOWN and not one.title.endswith("not read")
    ]
    for level, heading in (
        (Level.UNKNOWN, "Could not be decided:"),
        (Level.INFO, "To know:"),
        (Level.PASS, "Passed:"),
    ):
        group = [one for one in (other if level is Level.UNKNOWN else report.findings) if one.level is level]
        if not group:
            continue
        yield heading
        for one in group:
            yield from _wrapped("  ", f"{safe(one.title)} [{one.id}] on {safe(fold(one.subjects))}")
            if level is not Level.PASS:
                for names, detail in one.details[:DETAILS]:
                    yield from _wrapped("    ", f"{safe(names)}: {safe(detail)}")
        yield ""


def uncovered_lines(uncovered: Iterable[Uncovered]) -> Iterator[str]:
    """What is missing, on which nodes, and in whose words."""
    for gap in gaps(uncovered):
        count = _many(len(gap.collectors), "reading")
        checks = ", ".join(gap.collectors)
        yield from _wrapped("  ", f"{count} on {safe(fold(gap.subjects))}: {gap.status.value} ({checks})")
        for reason, nodes in gap.reasons[:DETAILS]:
            if reason != gap.status.value:
                who = f"{safe(fold(nodes))}: " if len(gap.reasons) > 1 else ""
                yield from _wrapped("    ", f"{who}{safe(reason)}")
        if len(gap.reasons) > DETAILS:
            yield f"    and {len(gap.reasons) - DETAILS} more reasons"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _wrapped(lead: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, WIDTH, initial_indent=lead, subsequent_indent=" " * min(len(lead), 6), break_on_hyphens=False
    ) or [lead]
