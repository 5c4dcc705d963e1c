"""Inspected files as JSON (schema 1 of the command-line contract) and as plain text."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from straggler.engine.export import report_json
from straggler.engine.inspect.model import UNKNOWN, Inspected
from straggler.engine.model import Finding
from straggler.engine.safetext import safe

WIDTH = 100


def as_json(files: Sequence[Inspected]) -> str:
    return (
        json.dumps({"schema": 1, "files": [_file(one) for one in files]}, indent=1, ensure_ascii=True) + "\n"
    )


def _file(one: Inspected) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "path": safe(one.path),
        "kind": one.kind,
        "facts": finite(one.facts),
        "findings": [report_json.finding(finding) for finding in one.findings],
        "parts": [
            {
                "kind": part.kind,
                "lines": [part.first, part.last],
                "facts": finite(part.facts),
                "findings": [report_json.finding(finding) for finding in findings],
            }
            for part, findings in one.parts
        ],
    }
    return {**shown, "why": safe(one.why)} if one.why else shown


def finite(value: Any) -> Any:
    """The same without infinities, which JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return value


def as_text(files: Sequence[Inspected]) -> str:
    return "".join(f"{line}\n" for one in files for line in (*_lines(one), ""))


def _lines(one: Inspected) -> Iterator[str]:
    if one.kind == UNKNOWN:
        yield f"{safe(one.path)}: {UNKNOWN if one.read else 'not read'}"
        yield from _wrapped("  ", f"It {safe(one.why)}.")
        return
    yield f"{safe(one.path)}: {one.kind}"
    yield from _wrapped("  ", safe(one.gist))
    if len(one.parts) > 1:
        for part, _ in one.parts:
            yield from _wrapped(f"  lines {part.first}-{part.last}: ", f"{part.kind}: {safe(part.gist)}")
    if not one.findings:
        yield "  No finding."
    for finding in one.findings:
        yield from _finding(finding)


def _finding(one: Finding) -> Iterator[str]:
    level = f"{one.level.value} {one.priority.value}" if one.priority else one.level.value
    yield f"  {level}  {safe(one.title)}  [{one.id}]"
    for _, detail in one.details:
        yield from _wrapped("    ", safe(detail))
    for line in one.evidence:
        yield f"    | {safe(line.source)} | {safe(line.text)}"
    yield from _wrapped("    Why it matters: ", one.why)
    yield from _wrapped("    Not this if: ", one.false_alarm)
    yield from _wrapped("    Next: ", one.next_step)
    yield f"    Remedy: {one.reference}{' (your own section)' if one.theirs else ''}"
    for command in one.commands:
        yield "    Suggested command (run this yourself):"
        yield f"      {command.command}"
        yield from _wrapped("      Preconditions: ", command.preconditions)
        yield from _wrapped("      Blast radius: ", command.blast_radius)
        yield from _wrapped("      Undo: ", command.undo)
    for text in one.left_out:
        yield from _wrapped("    Not offered: ", safe(text))


def _wrapped(lead: str, text: str) -> Iterator[str]:
    indent = " " * (len(lead) - len(lead.lstrip()) + 2)
    yield from textwrap.wrap(
        text, WIDTH, initial_indent=lead, subsequent_indent=indent, break_on_hyphens=False
    ) or [lead.rstrip()]
