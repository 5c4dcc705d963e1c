"""The matrix on a screen of a given size: where each cell stands, and the lines above, of and below the cells as pieces.

It holds no widget: what it is asked for is a line, and only lines that are seen are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.model import RunState, Standing
from straggler.tui import glyphs
from straggler.tui.panes.lines import Piece

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Blame
    from straggler.engine.bandwidth.picture import Picture

SIGN_TONES = {"x": "fail", "!": "warn", "~": "unknown", "?": "unknown", "·": "quiet"}
STANDING_MARKS = {
    Standing.CULPRIT: glyphs.FAIL,
    Standing.SUSPECT: glyphs.WARN,
    Standing.UNDECIDED: glyphs.UNKNOWN,
}
STATE_MARKS = {
    RunState.OK: glyphs.OK,
    RunState.FAILED: glyphs.FAIL,
    RunState.TRUNCATED: glyphs.UNKNOWN,
    RunState.IMPLAUSIBLE: glyphs.WARN,
}
RULE = -1
"""Stands for a bar among cells. Among rows, a line above place p is ~p: below nought, too."""

BARS, RULES, CROSSINGS = "│║", "─═", ("┼╫", "╪╬")
"""Of a section, and of one that begins a wider one; a crossing by its row's, then its column's."""


class Sheet:
    """`width` is what there is for label and cells together. `wide`: numbers instead of signs."""

    def __init__(self, picture: Picture, width: int, *, wide: bool = False) -> None:
        self.picture, self.width, self.wide = picture, width, wide
        count = len(picture)
        self.label_width = max((cell_len(picture.label(at)) for at in range(count)), default=0) + 3
        starts = [one.start for one in picture.sections[1:]]
        if wide:
            self.step = max(map(len, map(self._number, self._extremes())), default=3) + 1
        else:
            roomy = 2 * count + 2 * len(starts) <= width - self.label_width
            self.step = 2 if roomy else 1
        self.gap = 2 if self.step > 1 else 1
        self.starts = {one.start: one.wider for one in picture.sections[1:]}
        self.lefts: list[int] = []
        x = 0
        for at in range(count):
            x += self.gap if at in self.starts else 0
            self.lefts.append(x)
            x += self.step
        self.cells_width = x
        self.rows: list[int] = []
        for at in range(count):
            if at in self.starts:
                self.rows.append(~at)
            self.rows.append(at)
        self.line_of_place = {place: line for line, place in enumerate(self.rows) if place >= 0}

    def _extremes(self) -> list[float]:
        import numpy as np

        every = np.concatenate([self.picture.matrix.value, self.picture.matrix.alone])
        known = every[~np.isnan(every)]
        return [float(known.min()), float(known.max())] if len(known) else []

    def _number(self, value: float) -> str:
        return telling.number(value).replace(",", "")

    def place_at(self, x: int) -> int:
        """The column that stands at a cell of the line, the nearest one to the left on a bar."""
        return max(0, bisect_right(self.lefts, x) - 1)

    def bar(self, place: int) -> str:
        return BARS[self.starts[place]].ljust(self.gap)

    def label_of(self, place: int) -> Sequence[Piece]:
        """A mark where the node is accused, suspected or undecided, then its short name."""
        standing = self.picture.view.attribution.standings.get(self.picture.node(place))
        mark = STANDING_MARKS.get(standing) if standing is not None else None
        label = self.picture.label(place)
        tone = mark.tone if mark is not None and standing is not Standing.UNDECIDED else ""
        return [
            (f"{mark.glyph if mark else ' '} ", mark.tone if mark else ""),
            (f"{' ' * (self.label_width - 3 - cell_len(label))}{label} ", tone),
        ]

    def cells_of(self, place: int, left: int, right: int) -> tuple[list[tuple[int, str, str]], int]:
        """What stands on a row between two cells of the line: (column or RULE, text, tone), and where the first of it begins."""
        if not self.lefts:
            return [], 0
        first = self.place_at(left)
        signs = self.picture.row(place)
        values = self.picture.values(place) if self.wide else None
        start = self.lefts[first] - (self.gap if first in self.starts else 0)
        out: list[tuple[int, str, str]] = []
        pad = " " * (self.step - 1)
        for at in range(first, len(self.lefts)):
            if self.lefts[at] >= right:
                break
            if at in self.starts:
                out.append((RULE, self.bar(at), "dim"))
            sign = signs[at]
            text = sign + pad
            if values is not None:
                text = f"{self._number(float(values[at])) if sign.isdigit() else sign:>{self.step - 1}} "
                if sign == "·" and values[at] == values[at]:
                    text = f"{self._number(float(values[at])):>{self.step - 1}} "
            out.append((at, text, f"ramp{sign}" if sign.isdigit() else SIGN_TONES.get(sign, "")))
        return out, start

    def rule(self, row: int) -> str:
        """The line between two sections of rows, crossing the bars between columns."""
        wider = self.starts[~row]
        out = [RULES[wider]] * self.cells_width
        for at, also in self.starts.items():
            out[self.lefts[at] - self.gap] = CROSSINGS[wider][also]
        return "".join(out)

    def section_names(self, left: int, right: int) -> str:
        """`az1 ───── │ az2 ──`, over the columns between two cells of the line; a section that began before has its name, too."""
        out = ""
        for one in self.picture.sections:
            start, end = self.lefts[one.start], self.lefts[one.stop - 1] + self.step
            if end <= left or start >= right:
                continue
            if one.start and start > left:
                out += self.bar(one.start)[max(0, left - start + self.gap) :]
            room = min(end, right) - max(start, left)
            line = max(0, room - (1 if self.step > 1 else 0))
            name = one.named(line - 1)
            out += f"{name} ".ljust(line, "─")[:line].ljust(room)
        return out

    # Above and below.

    def title(self, width: int, lines: int) -> list[list[Piece]]:
        """The headline in as many lines as may be; what does not fit on the last is left out, least important first."""
        out: list[list[str]] = [[]]
        for part in telling.title(self.picture.view):
            room = width - 1 - len(" · ".join([*out[-1], ""]))
            if out[-1] and len(part) > room:
                if len(out) < lines:
                    out.append([])
                elif len(part := part.partition(" for ")[0]) > room:
                    break
            out[-1].append(part)
        return [
            [
                (f" {first}", "strong" if not at else "quiet"),
                (f"{' · ' if rest else ''}{' · '.join(rest)}", "quiet"),
            ]
            for at, (first, *rest) in enumerate(one for one in out if one)
        ]

    def verdicts(self, width: int, lines: int, current: int | None) -> list[list[Piece]]:
        """Every verdict, then every doubt, in at most so many lines; the last one says how many more there are."""
        found = self.picture.view.attribution
        told = [self._verdict(one, width, at == current) for at, one in enumerate(found.verdicts)]
        if not told:
            said = telling.nobody(found, self.picture.matrix)
            open_ends = ", ".join(telling.uncovered(self.picture.matrix))
            more: list[Piece] = [(" · not covered: ", "quiet"), (open_ends, "unknown")] if open_ends else []
            told = [[[(" verdict: ", "quiet"), (said, "strong" if found.median is None else "ok"), *more]]]
        first = len(found.verdicts)
        for at, one in enumerate(found.doubts, first):
            lead = f"{glyphs.POINTER if at == current else ' '}doubt: "
            told.append([[(lead, "busy" if at == current else "quiet"), (telling.doubt(one), "")]])
        out: list[list[Piece]] = []
        for at, block in enumerate(told):
            rest = len(told) - at - 1
            room = lines - len(out) - (1 if rest else 0)
            if room < 1:
                out.append([(f" … and {rest + 1} more; n goes from one to the next", "quiet")])
                break
            out += block[:room]
        return out[:lines]

    def _verdict(self, blame: Blame, width: int, current: bool) -> list[list[Piece]]:
        """One line, or two where one has no room for how sure it is and what would settle it."""
        lead = f"{glyphs.POINTER if current else ' '}verdict: "
        said, sure = telling.headline(blame), telling.sureness(blame)
        settle = f" · to confirm: run {self.short_pair(blame.next_pair)}" if blame.next_pair else ""
        first: list[Piece] = [(lead, "busy" if current else "quiet"), (said, "fail")]
        if len(f"{lead}{said} ({sure}){settle}") < width:
            return [[*first, (f" ({sure})", ""), (settle, "quiet")]]
        if len(self.picture.view.attribution.verdicts) > 1 and len(f"{lead}{said} ({sure})") < width:
            # Of several, each has its line before any has two.
            return [[*first, (f" ({sure})", "")]]
        return [first, [(f"   {sure}", ""), (settle, "quiet")]]

    def short_pair(self, wanted: tuple[str, str]) -> str:
        picture = self.picture
        one, other = (
            picture.labels[picture.numbers[name]] if name in picture.numbers else telling.name(name)
            for name in wanted
        )
        return f"{one} × {other} alone" if wanted[0] != wanted[1] else f"{one} by itself"

    def legend(self, width: int) -> list[Piece]:
        nine = self.picture.norm_name
        long = (
            f" 9 = at {nine}, each step a tenth slower, 0 = next to none   x failed   ! above what the wire carries"
            "   ~ cut off   blank = not run"
        )
        short = f" 9 = {nine} … 0 = next to none  x failed  ! too high  ~ cut  blank not run"
        if len(short) >= width:
            short = f" 9 = {nine} … 0 = none  x failed  ! too high  ~ cut  blank not run"
        return [(long if len(long) < width else short, "quiet")]
