"""Probe output as data: what one node replied, or what all of them did, equal replies once and the odd one first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from straggler.engine.model import Observation, Status
from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe, safe_lines
from straggler.tui import glyphs
from straggler.tui.panes.lines import Piece

LINES_OF_ONE = 2_000
LINES_OF_MANY = 200
"""Lines of one reply that are shown: of the chosen node, and where many nodes are shown at once."""

GROUPS = 12
"""Different replies to one question that are shown side by side; beyond that the pane says how many more there are."""

Seen = Mapping[str, Mapping[str, Observation]]
"""Observation by node and collector."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the pane. `block` names the reply it belongs to (`collector` or `collector nodes`)."""

    block: str
    number: int
    pieces: tuple[Piece, ...]
    tail: tuple[Piece, ...] = ()
    head: bool = False
    text: str = ""


def of_node(seen: Mapping[str, Observation], order: Sequence[str], marked: frozenset[str]) -> Iterator[Line]:
    """Every reply of one node in the order the collectors are asked. `marked`: lines that are evidence of a finding."""
    for name in order:
        if name in seen:
            yield from _reply(name, seen[name], "", marked, LINES_OF_ONE)
        else:
            yield Line(
                name,
                0,
                ((f"{name}  ", "strong"), (f"{glyphs.WAITING.glyph} not answered yet", "quiet")),
                head=True,
            )


def of_all(seen: Seen, order: Sequence[str], marked: frozenset[str]) -> Iterator[Line]:
    """Collector by collector: nodes with the same reply stand together, the smallest group first."""
    for name in order:
        alike: dict[tuple[str, str, str, int | None], list[Observation]] = defaultdict(list)
        for replies in seen.values():
            if one := replies.get(name):
                alike[one.text, one.status.value, one.why, one.exit_code].append(one)
        groups = sorted(alike.values(), key=len)
        for group in groups[:GROUPS]:
            yield from _reply(name, group[0], fold(one.node for one in group), marked, LINES_OF_MANY)
        if len(groups) > GROUPS:
            rest = sum(len(group) for group in groups[GROUPS:])
            more = f"{glyphs.WAITING.glyph} {len(groups) - GROUPS} further replies of {rest} nodes, all different"
            yield Line(name, -1, ((f"{name}  ", "strong"), (more, "quiet")), head=True)


def _reply(name: str, one: Observation, nodes: str, marked: frozenset[str], most: int) -> Iterator[Line]:
    block = f"{name} {nodes}".strip()
    good = one.status is Status.OK
    mark = glyphs.OK if good else glyphs.INFO if one.status is Status.NOT_APPLICABLE else glyphs.UNKNOWN
    who: tuple[Piece, ...] = ((f"{safe(nodes, limit=200)}  ", "busy"),) if nodes else ()
    said = "" if good else f"{one.status.value}: {safe(one.why, limit=300)}" if one.why else one.status.value
    state: Piece = (f"{mark.glyph} {'ok' if good else said}", mark.tone)
    yield Line(block, 0, ((f"{name}  ", "strong"), *who, state), _figures(one), head=True)
    number = 0
    for number, text in enumerate(safe_lines(one.text, most=most), 1):
        tone = "warn" if text.strip() in marked and text.strip() else ""
        yield Line(block, number, (("  ", ""), (text, tone)), text=text)
    for number, text in enumerate(safe_lines(one.errors, most=most), number + 1):  # noqa: B020 - counts on
        yield Line(block, number, (("  stderr ", "unknown"), (text, "quiet")), text=text)
    if one.cut:
        note = f"  {glyphs.UNKNOWN.glyph} cut: {one.cut:,} bytes more were sent and not kept"
        yield Line(block, number + 1, ((note, "unknown"),))


def _figures(one: Observation) -> tuple[Piece, ...]:
    exit_code = "" if one.exit_code is None else f"exit {one.exit_code}"
    seconds = max(0.0, one.ended - one.started)
    words = [exit_code, f"{seconds:.1f} s" if one.ended else "", one.vantage.value.removeprefix("host as ")]
    return ((" · ".join(filter(None, words)), "quiet"),)
