"""The lines around the panes as data: title bar, breadcrumb, tabs and pane heads, each fitted to the width there is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from straggler.engine.bandwidth import telling
from straggler.engine.judge import Report
from straggler.engine.model import Window
from straggler.engine.safetext import safe
from straggler.tui import glyphs
from straggler.tui.glyphs import BAR, BAR_HALF, BAR_REST, STEP
from straggler.tui.live import Live, Progress
from straggler.tui.panes.lines import Piece, fit
from straggler.tui.rows import Row, counts

if TYPE_CHECKING:
    from straggler.engine.bandwidth.view import MatrixView

PANES = ("symptom", "nodes", "output", "matrix", "findings", "remedy")
"""In the order of their number keys, from 1."""

STAGES = {"symptom": 0, "nodes": 1, "output": 1, "matrix": 2, "findings": 2, "remedy": 3, "guided": 2}
"""Where in the breadcrumb each pane stands."""


def title_bar(live: Live, width: int) -> tuple[list[Piece], list[Piece]]:
    """Left: who is looked at, and that nothing is changed. Right: the window, the session, and whether it is saved."""
    saved = _saved(live)
    right: list[Piece] = [*saved, (" ", "")]
    promises: list[Piece] = [("  READ-ONLY", "ok"), *([("  RECORDING", "warn")] if live.recording else [])]
    room = width - len(" straggler   ") - sum(len(text) for text, _ in promises + right)
    title = fit([(safe(live.diagnosis.target.title, limit=120), "strong")], max(8, room))
    left: list[Piece] = [(" straggler ", "brand"), (" ", ""), *title, *promises]
    session = live.shown_session or live.session
    used = sum(len(text) for text, _ in left + right) + 2
    if session and used + len(session) + 2 <= width:
        right = [(f"{session}  ", "quiet"), *right]
        used += len(session) + 2
    window = span(live.diagnosis.window)
    if used + len(window) + 3 <= width:
        right = [(f"{window}   ", "quiet"), *right]
    return left, right


def _saved(live: Live) -> list[Piece]:
    if live.recording:
        return [("from the journal", "quiet")]
    health = live.health
    if health is None:
        return [("not started", "quiet")]
    if health.saved:
        return [("saved ", "quiet"), (glyphs.OK.glyph, "ok")]
    return [("NOT SAVED ", "fail"), (safe(health.why.split(": ")[-1], limit=24), "fail")]


def span(window: Window) -> str:
    """`window 01:12–03:12Z (2h)`, with the day where it is not one day."""
    since, until = (datetime.fromtimestamp(at, timezone.utc) for at in (window.since, window.until))
    day = "%H:%M" if since.date() == until.date() else "%m-%d %H:%M"
    minutes = int(window.until - window.since) // 60
    long = (
        f"{minutes // 1440}d"
        if minutes % 1440 == 0
        else f"{minutes // 60}h"
        if minutes % 60 == 0
        else f"{minutes}m"
    )
    return f"window {since:{day}}–{until:{day}}Z ({long})"


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"


def progress_bar(done: int, total: int, width: int) -> list[Piece]:
    """`━━━━╸───`: half a cell is the finest step."""
    halves = 2 * width * done // total if total else 0
    full, half = divmod(halves, 2)
    return [(BAR * full + BAR_HALF * half, "busy"), (BAR_REST * (width - full - half), "dim")]


def waiting_for(progress: Progress) -> str:
    """Who holds things up the longest, and how many more there are."""
    if not progress.running or not progress.slowest:
        return ""
    node, seconds = progress.slowest[0]
    more = len(progress.slowest) - 1
    return f"waiting for {safe(node, limit=24)} {seconds:.0f} s{f' +{more}' if more else ''}"


def breadcrumb(live: Live, symptom: str, faults: int, section: str, where: str, wide: bool) -> list[Piece]:
    """`Symptom › Gather 117/128 ━━━ 00:21 › Findings 3 › Reference`, the stage one is at marked."""
    progress, here = live.progress, STAGES[where]
    step: Piece = (f" {STEP} ", "quiet")

    def stage(at: int, text: str) -> Piece:
        return (text, "here" if at == here else "")

    count = f"{progress.done:,}/{progress.total:,} "
    state: list[Piece]
    if progress.running:
        state = [
            *progress_bar(progress.done, progress.total, 20 if wide else 10),
            (f" {clock(progress.seconds)}", "quiet"),
        ]
    elif live.stopped:
        state = [("stopped", "warn"), (f" {clock(progress.seconds)}", "quiet")]
    elif live.recording:
        state = [("as recorded", "quiet")]
    else:
        state = [(glyphs.OK.glyph, "ok"), (f" {clock(progress.seconds)}", "quiet")]
    return [
        (" ", ""),
        stage(0, " Symptom "),
        *([(f" {symptom}", "strong")] if wide else []),
        step,
        stage(1, " Gather "),
        (f" {count}", ""),
        *state,
        step,
        stage(2, " Findings "),
        (f" {faults}", "strong" if faults else "quiet"),
        step,
        stage(3, " Reference "),
        *([(f" {section}", "quiet")] if wide and section else []),
    ]


def tabs(active: str) -> list[Piece]:
    """The number keys, for a screen that shows one pane at a time."""
    pieces: list[Piece] = [(" ", "")]
    for number, name in enumerate(PANES, 1):
        tone = "here" if name == active else ""
        pieces += [(f" {number}", tone or "busy"), (f" {name.capitalize()} ", tone or "quiet")]
    return pieces


def node_counts(rows: Sequence[Row]) -> list[Piece]:
    """`✗2 ▲5 ?4 ✓106 …11`"""
    pieces: list[Piece] = []
    for mark, many in counts(rows):
        pieces += [(f"{mark.glyph}{many:,}", mark.tone), (" ", "")]
    return pieces


def matrix_counts(view: MatrixView | None) -> list[Piece]:
    """How many verdicts, or else doubts, the runs led to."""
    if view is None:
        return [("no results ", "quiet")]
    verdicts, doubts = len(view.attribution.verdicts), len(view.attribution.doubts)
    if verdicts:
        return [(f"{telling.many(verdicts, 'verdict')} ", "fail")]
    return [(f"{telling.many(doubts, 'doubt')} ", "warn") if doubts else ("no verdict ", "quiet")]


def coverage(report: Report | None) -> list[Piece]:
    if report is None or not report.nodes_read:
        return []
    return [(f"{report.coverage:.0f}% covered ", "quiet" if report.coverage >= 99.95 else "unknown")]
