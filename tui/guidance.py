"""Words for people who do not know the acronyms: what is being read and why, one finding at a time, what a doubt means."""

from __future__ import annotations

from collections.abc import Sequence

from straggler.engine.judge import Report
from straggler.engine.knowledge import Symptom
from straggler.engine.model import Finding, Level
from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe
from straggler.engine.triage import Plan
from straggler.engine.window import utc
from straggler.tui import glyphs
from straggler.tui.items import is_undecided, nodes
from straggler.tui.live import Live
from straggler.tui.panes.remedy import sureness
from straggler.tui.panes.text import Paragraph

UNKNOWN_MEANS = "Unknown means: this could not be read, so nothing is known of it. It is not an all-clear and not an accusation."


def symptom_page(live: Live, symptom: Symptom, answered: dict[str, int]) -> list[Paragraph]:
    """Pane 1: what was said to hurt, what is read because of it, and how far each reading is."""
    one = live.diagnosis
    lines: list[Paragraph] = [
        [(symptom.title, "strong"), (f"  {one.plan.symptom}", "quiet")],
        [(symptom.hint, "quiet")],
        [],
        [("Window   ", "quiet"), (f"{utc(one.window.since)} to {utc(one.window.until)}", "")],
        [("Target   ", "quiet"), (safe(one.target.title, limit=200), "")],
        [("Rules    ", "quiet"), (f"{len(one.plan.rules)} questions are asked of every node's answers", "")],
    ]
    lines += [[("Starts   ", "quiet"), (safe(program, limit=300), "warn")] for program in one.target.starts]
    if symptom.steps:
        lines += [[], [("What happens", "brand")]]
        lines += [[(f"{at}  ", "quiet"), (step, "")] for at, step in enumerate(symptom.steps, 1)]
    lines += [[], [("What is read on each node, in one session", "brand")]]
    return lines + _readings(one.plan, answered, len(one.nodes))


def _readings(plan: Plan, answered: dict[str, int], total: int) -> list[Paragraph]:
    wide = max((len(one.id) for one in plan.collectors), default=0)
    lines: list[Paragraph] = []
    for one in plan.collectors:
        many = answered.get(one.id, 0)
        mark = glyphs.OK if many >= total else glyphs.READING
        lines.append(
            [
                (f"{mark.glyph} ", mark.tone),
                (f"{one.id:<{wide}}  ", "strong"),
                (f"{many:>{len(str(total))}}/{total}  ", "quiet"),
                (one.what, ""),
            ]
        )
    return lines


def gathering_page(live: Live, symptom: Symptom, answered: dict[str, int]) -> list[Paragraph]:
    """Guided, while nodes are being read."""
    progress = live.progress
    lines: list[Paragraph] = [
        [(symptom.title, "strong")],
        [],
        [(f"Reading {progress.total:,} nodes at once. ", ""), ("Nothing on them is changed.", "ok")],
        [
            (
                "You can read along, or wait: the findings come one at a time, the most likely cause first.",
                "quiet",
            )
        ],
        [],
    ]
    lines += [[(f"{glyphs.INFO.glyph} ", "quiet"), (step, "")] for step in symptom.steps]
    return [
        *lines,
        [],
        [("What is read, and why", "brand")],
        *_readings(live.diagnosis.plan, answered, progress.total),
    ]


def causes(report: Report | None) -> list[Finding]:
    """What guided mode walks through: faults, likeliest and worst first, then what could not be decided."""
    found = report.findings if report else ()
    faults = [one for one in found if one.level.is_fault]
    order = sorted(faults, key=lambda one: (one.priority or "P9", one.level.rank, -one.confidence))
    return order + [one for one in found if is_undecided(one)]


def finding_page(found: Sequence[Finding], at: int, report: Report) -> list[Paragraph]:
    """Guided: one finding, whole, in plain words."""
    one = found[at]
    mark, sure = glyphs.LEVELS[one.level], sureness(one.confidence)
    what = {Level.FAIL: "A fault", Level.WARN: "Worth a look", Level.UNKNOWN: "Could not be decided"}[
        one.level
    ]
    rank = {"P0": "it can stop training", "P1": "it slows training down", "P2": "good to know"}
    lines: list[Paragraph] = [
        [(f"Finding {at + 1} of {len(found)}", "quiet"), ("   n next · b back · Enter what to do", "quiet")],
        [],
        [(f"{mark.glyph} ", mark.tone), (safe(one.title), "strong")],
        [(what, mark.tone), (f": {rank[one.priority.value]}" if one.priority else "", "")],
        [],
        [("Where  ", "brand"), (f"{safe(fold(one.subjects), limit=300)} ({nodes(len(one.subjects))})", "")],
    ]
    for names, detail in one.details[:4]:
        lines.append([("       ", ""), (f"{safe(names, limit=200)}: {safe(detail, limit=300)}", "quiet")])
    lines += [[], [("Why it matters  ", "brand"), (one.why, "")]]
    if one.level is Level.UNKNOWN:
        lines += [[], [("What unknown means  ", "brand"), (UNKNOWN_MEANS, "")]]
    else:
        lines += [
            [],
            [("How sure  ", "brand"), (f"{one.confidence * 100:.0f}%, {sure.word}: {sure.advice}.", "")],
            [("What would make this wrong  ", "brand"), (one.false_alarm, "")],
        ]
    lines += [[], [("Next  ", "brand"), (one.next_step, "")], []]
    return [*lines, *coverage_words(report)]


def no_finding_page(report: Report | None) -> list[Paragraph]:
    """Guided, at the end, when nothing is wrong with what could be read."""
    if report is None or not report.nodes_read:
        return [
            [("Nothing could be read, so nothing is known.", "unknown")],
            [],
            [(UNKNOWN_MEANS, "")],
            [],
            [("Enter or 4 shows the reasons; r reads a node again.", "quiet")],
        ]
    return [
        [(f"{glyphs.OK.glyph} ", "ok"), ("No fault was found in what could be read.", "strong")],
        [],
        *coverage_words(report),
        [],
        [
            (
                "If it still hurts, choose another symptom (: opens the palette), or “I don't know”, which looks at everything.",
                "quiet",
            )
        ],
    ]


def coverage_words(report: Report) -> list[Paragraph]:
    """What this rests on: never silent about what was not read."""
    lines: list[Paragraph] = [
        [
            ("This rests on  ", "brand"),
            (
                f"{report.nodes_read:,} of {report.nodes_total:,} nodes, {report.coverage:.0f}% of what was asked.",
                "",
            ),
        ]
    ]
    if report.uncovered:
        missing = len({name for one in report.uncovered for name in one.subjects})
        lines.append(
            [(f"{UNKNOWN_MEANS} That holds for readings on {nodes(missing)}: key 4 lists them.", "unknown")]
        )
    return lines
