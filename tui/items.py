"""The findings list as data: faults worst first, what is undecided, what was not covered, then the good news, folded."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from straggler.engine.coverage import gaps
from straggler.engine.model import Finding, Level, Uncovered
from straggler.engine.nodesets import fold
from straggler.engine.safetext import SafeText, safe
from straggler.tui import glyphs
from straggler.tui.panes.lines import Piece

Lines = tuple[tuple[Piece, ...], ...]

DETAILS = 3
"""Lines of detail below a title; the rest is in the remedy pane."""

INDENT = " " * 11


@dataclass(frozen=True, slots=True)
class Item:
    """One entry. `key` stays the same while the entry means the same; `opens` names the group that Enter unfolds."""

    key: tuple[str, ...]
    lines: Lines
    tail: tuple[Piece, ...] = ()
    finding: Finding | None = None
    opens: str = ""
    lands: bool = True
    haystack: str = ""


@dataclass(frozen=True, slots=True)
class Recheck:
    """A finding that was read again. `after` None: it is gone. `at`: UTC time of day."""

    before: Finding
    after: Finding | None
    at: str


@dataclass(frozen=True, slots=True)
class Board:
    """All the findings pane shows. `acknowledged`: ids of findings somebody has taken note of, and until when."""

    findings: tuple[Finding, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()
    read: int = 0
    total: int = 0
    running: bool = True
    acknowledged: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    rechecks: tuple[Recheck, ...] = ()
    trouble: str = ""


def key_of(one: Finding) -> tuple[str, ...]:
    return (one.id, one.level.value, one.title)


def items(board: Board, opened: Collection[str], width: int) -> Iterator[Item]:
    """Everything in the order of how much it matters now; titles are wrapped to `width` columns."""
    loud = [one for one in board.findings if key_of(one) not in board.acknowledged]
    faults = [one for one in loud if one.level.is_fault]
    yield from (_recheck(one) for one in board.rechecks)
    if not faults or board.trouble:
        yield _nothing(board)
    yield from (finding_item(one, width) for one in faults)
    yield from (finding_item(one, width) for one in loud if is_undecided(one))
    if board.uncovered:
        yield heading("not covered: unknown is not fine")
        yield from gap_items(board.uncovered, opened)
    quiet = [one for one in board.findings if key_of(one) in board.acknowledged]
    good = [
        ("to know", "info", [one for one in loud if one.level is Level.INFO]),
        ("passed", "pass", [one for one in loud if one.level is Level.PASS]),
        ("acknowledged", "acknowledged", quiet),
    ]
    if any(group for _, _, group in good):
        yield heading("")
    for word, name, group in good:
        if group:
            yield from _group(word, name, group, name in opened, board.acknowledged, width)


def is_undecided(one: Finding) -> bool:
    """UNKNOWN for another reason than an unread collector: those stand under `not covered`."""
    return one.level is Level.UNKNOWN and one.unread is None


def heading(text: str) -> Item:
    lines: Lines = (((f"{glyphs.BAR_REST * 2} {text} ", "quiet"),),) if text else (((" ", ""),),)
    return Item(("heading", text), lines, lands=False)


def _nothing(board: Board) -> Item:
    if board.trouble:
        text = (f"{glyphs.UNKNOWN.glyph} {safe(board.trouble, limit=300)}", "unknown")
    elif board.running and board.read < board.total:
        text = (f"no fault so far; {board.read} of {board.total} nodes read", "quiet")
    elif board.running:
        text = ("no fault so far; every node is read, pairwise results are still coming in", "quiet")
    elif any(one.level.is_fault for one in board.findings):
        text = ("every fault that was found is acknowledged; see below", "strong")
    elif board.read:
        text = (f"{glyphs.OK.glyph} no fault was found in what could be read", "ok")
    else:
        text = (f"{glyphs.UNKNOWN.glyph} nothing was read, so nothing is known", "unknown")
    return Item(("nothing",), ((text,),), lands=False)


def finding_item(one: Finding, width: int, until: str | None = None) -> Item:
    """Title, then who and what, folded. A finding somebody acknowledged is dimmed and says until when."""
    mark = glyphs.LEVELS[one.level]
    tone, loud = ("dim", "dim") if until else (mark.tone, "strong")
    sure = f"{one.confidence * 100:.0f}%" if one.confidence < 0.995 else "sure"
    room = max(16, width - len(INDENT) - len(sure) - 4)
    title = textwrap.wrap(safe(one.title, limit=200), room, break_on_hyphens=False) or [""]
    head: tuple[Piece, ...] = (
        (f"{one.priority.value if one.priority else '':<2} ", tone),
        (f"{mark.glyph} {mark.word:<5} ", tone),
        (title[0], loud),
    )
    below = [
        f"{safe(names, limit=300)}: {safe(detail, limit=300)}" for names, detail in one.details[:DETAILS]
    ]
    if len(one.details) > DETAILS:
        below.append(f"{glyphs.WAITING.glyph} and {len(one.details) - DETAILS} more")
    if not below:
        below = [safe(fold(one.subjects), limit=300)]
    if until:
        below = [f"acknowledged until {until}"]
    if len(one.subjects) > 1:
        below[0] = f"{nodes(len(one.subjects))}: {below[0]}" if len(one.details) < 2 else below[0]
    more = (((INDENT, ""), (text, loud)) for text in title[1:])
    lines = (head, *more, *(((INDENT, ""), (text, "quiet")) for text in below))
    words = (one.id, one.title, *one.also, *(text for pair in one.details for text in pair), *one.subjects)
    return Item(key_of(one), lines, ((sure, "quiet"),), one, haystack=" ".join(words).lower())


def nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count:,} nodes"


def gap_items(uncovered: Iterable[Uncovered], opened: Collection[str]) -> Iterator[Item]:
    """`? 12 checks on 3 nodes: needs root`; opened: which checks, which nodes, in whose words."""
    for gap in gaps(uncovered):
        status, subjects = gap.status.value, gap.subjects
        name = f"gap {status} {subjects[0]} {len(subjects)}"
        first = safe(gap.reasons[0][0], limit=200)
        shown = name in opened
        lines: list[tuple[Piece, ...]] = [
            (
                (f"{glyphs.OPEN if shown else glyphs.FOLDED}  {glyphs.UNKNOWN.glyph} ", "unknown"),
                (f"{_checks(gap.collectors)} on {nodes(len(subjects))}: {status}", ""),
                (f"  {first}" if first != status else "", "quiet"),
            )
        ]
        if shown:
            lines.append((("     ", ""), (safe(fold(subjects), limit=300), "quiet")))
            lines.append((("     ", ""), (", ".join(gap.collectors), "quiet")))
            for reason, who in gap.reasons[:DETAILS]:
                lines.append(
                    (
                        ("     ", ""),
                        (f"{safe(fold(who), limit=100)}: ", "quiet"),
                        (safe(reason, limit=200), ""),
                    )
                )
            if len(gap.reasons) > DETAILS:
                lines.append((("     ", ""), (f"and {len(gap.reasons) - DETAILS} more reasons", "quiet")))
        words = [safe(reason, limit=200) for reason, _ in gap.reasons]
        haystack = " ".join([status, *subjects, *words, *gap.collectors]).lower()
        yield Item((name,), tuple(lines), opens=name, haystack=haystack)


def _checks(group: Collection[str]) -> str:
    return "1 check" if len(group) == 1 else f"{len(group)} checks"


def _group(
    word: str, name: str, group: list[Finding], shown: bool, until: Mapping[tuple[str, ...], str], width: int
) -> Iterator[Item]:
    sign = glyphs.OPEN if shown else glyphs.FOLDED
    tone = "ok" if name == "pass" else "quiet"
    mark = glyphs.OK if name == "pass" else glyphs.INFO
    yield Item(
        (f"group {name}",), (((f"{sign}  {mark.glyph} ", tone), (f"{len(group)} {word}", tone)),), opens=name
    )
    if not shown:
        return
    for one in group:
        if name == "acknowledged":
            yield finding_item(one, width, until[key_of(one)])
        else:
            yield _small(one)


def _small(one: Finding) -> Item:
    mark = glyphs.LEVELS[one.level]
    where: SafeText = safe(fold(one.subjects), limit=300)
    line: tuple[Piece, ...] = (
        (f"   {mark.glyph} {mark.word:<5} ", mark.tone),
        (safe(one.title, limit=200), ""),
        (f"  {where}", "quiet"),
    )
    return Item(key_of(one), (line,), (), one, haystack=f"{one.id} {one.title} {where}".lower())


def _recheck(one: Recheck) -> Item:
    before, after = one.before, one.after
    was = f"{before.level.value} on {nodes(len(before.subjects))}"
    if after is None:
        now, tone = "no longer seen", "ok"
    else:
        now, tone = f"{after.level.value} on {nodes(len(after.subjects))}", glyphs.LEVELS[after.level].tone
    head: tuple[Piece, ...] = (
        ("re-checked ", "busy"),
        (f"{one.at}  ", "quiet"),
        (safe(before.title, limit=200), "strong"),
    )
    lines: Lines = (
        head,
        ((INDENT, ""), (f"  before: {was}", "quiet")),
        ((INDENT, ""), (f"{glyphs.ARROW} after:  ", "busy"), (now, tone)),
    )
    return Item(("recheck", *key_of(before)), lines, finding=after or before)
