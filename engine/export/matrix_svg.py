"""The matrix as one SVG file: no script, no font, nothing from elsewhere; the same bytes for the same matrix.

Cells of one sign are one path, so a thousand nodes stay a few megabytes. Signs that are no digit have a pattern besides a colour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.sax.saxutils import escape

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.model import Standing
from straggler.engine.bandwidth.picture import BLANK, SELF, Picture, arranged
from straggler.engine.bandwidth.ramp import ON_DARK
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.safetext import safe

INK, QUIET, PAPER, RULE = "#10151b", "#5d666f", "#ffffff", "#22292f"
FILLS = {**{str(digit): colour for digit, colour in enumerate(ON_DARK)}, SELF: "#dfe3e7"}
PATTERNS = {
    "x": ("failed", "M0,0L6,6M6,0L0,6", "#b3261e"),
    "!": ("above", "M3,0V6", "#5b4bb5"),
    "~": ("cut", "M0,3H6", "#5d666f"),
    "?": ("other", "M0,6L6,0", "#98a0a8"),
}
MEANING = {
    "x": "run failed",
    "!": "above what the wire carries",
    "~": "cut off",
    "?": "no value at this size",
    SELF: "the node itself",
}
MARGIN, LINE, GAP = 16, 18, 3
CHARACTER = 7.4
"""Pixels of a character of the text, in the fonts that are named, rounded up."""

SIZES = ((64, 14), (160, 9), (512, 4))
"""Up to this many nodes, a cell has so many pixels a side; beyond, 2."""

LEGIBLE, LETTERED = 9, 14
"""Pixels of a cell from which rows and columns have names, and cells their sign."""

LINES = 12
"""Verdicts and doubts that are written out."""


def render(view: MatrixView) -> str:
    return "\n".join(_document(arranged(view))) + "\n"


def _document(picture: Picture) -> Iterator[str]:
    view, count = picture.view, len(picture)
    side = next((size for most, size in SIZES if count <= most), 2)
    starts = [one.start for one in picture.sections[1:]]
    at = [side * place + GAP * sum(start <= place for start in starts) for place in range(count)]
    extent = at[-1] + side if at else 0
    named = list(range(count)) if side >= LEGIBLE else _accused(picture)
    label = round(CHARACTER * max((len(picture.label(place)) for place in named), default=-1)) + 8
    said = list(_said(view))
    left, top = MARGIN + label, MARGIN + LINE * (len(said) + 1) + 12 + label
    legend = sum(CHARACTER * len(meaning) + 36 for meaning in MEANING.values()) + CHARACTER * 14
    width = 2 * MARGIN + max(label + extent, int(CHARACTER * max(map(len, said))), int(legend))
    height = top + extent + 3 * LINE + MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-labelledby="title desc" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">'
    )
    yield f'<title id="title">{_text(said[0])}</title>'
    yield f'<desc id="desc">{_text(_described(picture))}</desc>'
    yield from _patterns()
    yield f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    for number, line in enumerate(said):
        weight = ' font-weight="bold"' if number == 0 else ""
        y = MARGIN + LINE * (number + 1) - 5
        yield f'<text x="{MARGIN}" y="{y}" fill="{INK}"{weight}>{_text(line)}</text>'
    yield f'<g transform="translate({left},{top})">'
    yield from _cells(picture, at, side)
    yield from _bars(picture, at, extent, label)
    yield from _labels(picture, named, at, side)
    yield "</g>"
    yield from _legend(picture, top + extent + LINE)
    yield "</svg>"


def _said(view: MatrixView) -> Iterator[str]:
    found = view.attribution
    yield " · ".join(telling.title(view))
    lines = [f"verdict: {telling.verdict(one)}" for one in found.verdicts]
    if not lines:
        lines = [f"no verdict: {telling.nobody(found, view.matrix)}"]
    lines += [f"doubt: {telling.doubt(one)}" for one in found.doubts]
    yield from (line if len(line) <= 160 else f"{line[:159]}…" for line in lines[:LINES])
    if len(lines) > LINES:
        yield f"and {len(lines) - LINES:,} more"
    if gaps := ", ".join(telling.uncovered(view.matrix)):
        yield f"not covered: {gaps}"


def _described(picture: Picture) -> str:
    nodes = telling.many(len(picture), "node")
    return (
        f"A square of {nodes} by {nodes}. Each cell is one pair; its digit and colour say how far it is from "
        f"{picture.norm_name}, 9 at it, each step down a tenth slower. Empty cells were not run."
    )


def _patterns() -> Iterator[str]:
    yield "<defs>"
    for name, path, colour in PATTERNS.values():
        yield (
            f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
            f'<rect width="6" height="6" fill="{PAPER}"/><path d="{path}" stroke="{colour}" stroke-width="1.5"/></pattern>'
        )
    yield "</defs>"


def _fill(sign: str) -> str:
    return f"url(#{PATTERNS[sign][0]})" if sign in PATTERNS else FILLS[sign]


def _cells(picture: Picture, at: list[int], side: int) -> Iterator[str]:
    """One path per sign: every stretch of equal cells in a row is one rectangle of it."""
    starts = {one.start for one in picture.sections}
    drawn: dict[str, list[str]] = defaultdict(list)
    letters: list[str] = []
    seam = 1 if side >= LEGIBLE else 0
    sections = [sum(start <= place for start in starts) for place in range(len(picture))]
    for row in range(len(picture)):
        signs = picture.row(row)
        place = 0
        for (sign, _), group in groupby(zip(signs, sections, strict=True)):
            length = sum(1 for _ in group)
            if sign != BLANK:
                if seam:
                    drawn[sign] += [
                        _box(at[one], at[row], side - 1, side - 1) for one in range(place, place + length)
                    ]
                else:
                    drawn[sign].append(_box(at[place], at[row], side * length, side))
            place += length
        if side >= LETTERED:
            letters += [
                f'<text x="{at[one] + side / 2:g}" y="{at[row] + side - 4}">{_text(sign)}</text>'
                for one, sign in enumerate(signs)
                if sign != BLANK and sign not in PATTERNS
            ]
    for sign in sorted(drawn):
        yield f'<path fill="{_fill(sign)}" d="{"".join(drawn[sign])}"/>'
    if letters:
        yield f'<g fill="{INK}" font-size="10" text-anchor="middle">'
        yield from letters
        yield "</g>"


def _box(x: int, y: int, width: int, height: int) -> str:
    return f"M{x},{y}h{width}v{height}h-{width}z"


def _bars(picture: Picture, at: list[int], extent: int, label: int) -> Iterator[str]:
    """The lines between sections, both ways, and the sections' names over them."""
    for one in picture.sections[1:]:
        edge = at[one.start] - GAP / 2
        width = 2.5 if one.wider else 1
        yield f'<path d="M{edge:g},{-label}V{extent}M{-label},{edge:g}H{extent}" stroke="{RULE}" stroke-width="{width}"/>'
    for one in picture.sections:
        room = at[one.stop - 1] - at[one.start]
        name = one.named(int(room / CHARACTER))
        yield f'<text x="{at[one.start]}" y="{-label - 4}" fill="{QUIET}">{_text(name)}</text>'


def _accused(picture: Picture) -> list[int]:
    """Who has a name where there is no room for all."""
    standings = picture.view.attribution.standings
    found = [place for place in range(len(picture)) if standings.get(picture.node(place)) is Standing.CULPRIT]
    return found[:LINES]


def _labels(picture: Picture, named: Iterable[int], at: list[int], side: int) -> Iterator[str]:
    size = 11 if side < LEGIBLE else min(11, side - 1)
    yield f'<g fill="{INK}" font-size="{size}">'
    for place in named:
        name, middle = _text(picture.label(place)), at[place] + (side + size) // 2 - 1
        yield f'<text x="-4" y="{middle}" text-anchor="end"><title>{_text(telling.name(picture.node(place)))}</title>{name}</text>'
        yield f'<text transform="translate({middle},-4) rotate(-90)">{name}</text>'
    yield "</g>"


def _legend(picture: Picture, y: int) -> Iterator[str]:
    x = MARGIN
    yield f'<text x="{x}" y="{y + 11}" fill="{QUIET}">9 = {_text(picture.norm_name)}</text>'
    x += round(CHARACTER * (len(picture.norm_name) + 5))
    for digit in "9876543210":
        yield f'<rect x="{x}" y="{y}" width="16" height="14" fill="{_fill(digit)}"/>'
        yield f'<text x="{x + 8}" y="{y + 11}" fill="{INK}" font-size="10" text-anchor="middle">{digit}</text>'
        x += 17
    yield f'<text x="{x + 4}" y="{y + 11}" fill="{QUIET}">0 = next to none</text>'
    x = MARGIN
    for sign, meaning in MEANING.items():
        yield f'<rect x="{x}" y="{y + LINE + 4}" width="14" height="14" fill="{_fill(sign)}"/>'
        yield f'<text x="{x + 20}" y="{y + LINE + 15}" fill="{QUIET}">{_text(meaning)}</text>'
        x += round(CHARACTER * len(meaning)) + 36
    yield f'<text x="{x}" y="{y + LINE + 15}" fill="{QUIET}">blank: not run</text>'


def _text(said: str) -> str:
    return escape(safe(said, limit=400))
