"""From bytes to an inspected file: recognises, reads, and joins what is known of each finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from straggler.engine.bandwidth.readers.lines import clean
from straggler.engine.inspect.kinds import KINDS
from straggler.engine.inspect.model import UNKNOWN, Inspected, Part, Said
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Evidence, Finding, Node
from straggler.engine.safetext import safe
from straggler.engine.sections import Sections

EVIDENCE_KEPT = 12


def inspect(data: bytes, path: str, known: Knowledge, sections: Sections) -> Inspected:
    """What one file holds. A file of no known kind is a result: its kind is `unknown`."""
    text = clean(data)
    found = [kind.read(text, path) for kind in KINDS if kind.recognise(text)]
    found = [parts for parts in found if parts]
    if not found:
        return Inspected(
            path, UNKNOWN, {}, why="is empty" if not data else "is of no kind that is known here"
        )
    main = found[0][0]
    # The whole of a capture comes first, its runs after it; one that stands alone is its own only part.
    pieces = [part for parts in found for part in (parts[1:] or parts)]
    return Inspected(
        path,
        main.kind,
        main.facts,
        main.gist,
        findings=_findings(pieces, path, known, sections),
        parts=tuple((part, _findings([part], path, known, sections)) for part in pieces),
    )


def unread(path: str, why: str) -> Inspected:
    """A file that could not be read at all, so that it is not missing from the answer."""
    return Inspected(path, UNKNOWN, {}, why=why, read=False)


def _findings(parts: Iterable[Part], path: str, known: Knowledge, sections: Sections) -> tuple[Finding, ...]:
    """One finding per id, level and title, however many parts show it."""
    groups: dict[tuple[str, str, str], list[Said]] = {}
    for part in parts:
        for said in part.said:
            verdict = said.verdict
            groups.setdefault((verdict.id, verdict.level.value, verdict.title), []).append(said)
    made = [_finding(group, path, known, sections) for group in groups.values()]
    return tuple(sorted(made, key=lambda one: (one.level.rank, one.priority or "P9")))


def _finding(group: list[Said], path: str, known: Knowledge, sections: Sections) -> Finding:
    first = group[0].verdict
    kind = known.finding_kind(first.id)
    subjects = tuple(dict.fromkeys(safe(name) for said in group for name in said.subjects)) or (safe(path),)
    details = dict.fromkeys(said.verdict.detail for said in group if said.verdict.detail)
    evidence = [Evidence(f"{path}:{number}", line) for said in group for number, line in said.lines]
    made = Finding(
        id=first.id,
        level=first.level,
        priority=kind.priority if first.level.is_fault else None,
        title=first.title,
        subjects=subjects,
        details=tuple((safe(path), detail) for detail in details),
        evidence=tuple(evidence[:EVIDENCE_KEPT]),
        confidence=min(said.verdict.confidence for said in group),
        why=kind.why,
        false_alarm=kind.false_alarm,
        next_step=kind.next_step,
        reference=f"remedies/{kind.section}",
        route=kind.route,
        rule="inspect",
        also=tuple(dict.fromkeys(name for said in group for name in said.verdict.also)),
    )
    if not made.level.is_fault:
        return replace(made, theirs=sections.get(made.reference).theirs)
    shown = sections.render(made, [Node(name) for said in group[:1] for name in said.subjects], known)
    left_out = tuple(f"{other.what}: {other.why}" for other in shown.left_out)
    return replace(made, commands=shown.commands, left_out=left_out, theirs=shown.theirs)
