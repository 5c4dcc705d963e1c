"""How the matrix gets onto the screen: fixed lines above and below, rows in between, each made when it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.scroll_view import ScrollView
from textual.strip import Strip

from straggler.tui.glyphs import TONES
from straggler.tui.matrix_sheet import Sheet
from straggler.tui.panes.lines import Piece, fit

if TYPE_CHECKING:
    from straggler.engine.bandwidth.picture import Picture

EMPTY: tuple[tuple[Piece, ...], ...] = (
    (("No bandwidth result yet.", "strong"),),
    (("", ""),),
    (("straggler sweep", "busy"), (" plans the pairs and writes what your scheduler runs", "")),
    (("straggler matrix DIR", "busy"), (" reads results that are there already", "")),
    (("--results DIR", "busy"), (" shows them here as they appear", "")),
)


class MatrixDrawing(ScrollView):
    """Draws a sheet with the cursor `at` a row and a column; `head` and `foot` are the lines that do not scroll."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"tone--{tone}" for tone in (*TONES, "strong", "dim", "rule", "cursor")),
        *(f"tone--ramp{digit}" for digit in range(10)),
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.picture: Picture | None = None
        self.sheet: Sheet | None = None
        self.at = (0, 0)
        self.head: list[list[Piece]] = []
        self.foot: list[list[Piece]] = []

    @property
    def body_height(self) -> int:
        return max(1, self.scrollable_content_region.height - len(self.head) - len(self.foot))

    @property
    def body_width(self) -> int:
        label = self.sheet.label_width if self.sheet is not None else 0
        return max(1, self.scrollable_content_region.width - label)

    def tone(self, name: str) -> Style:
        return self.get_component_rich_style(f"tone--{name}", partial=True) if name else Style.null()

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if self.sheet is None:
            line = EMPTY[y - 1] if 1 <= y <= len(EMPTY) else ()
            return self._strip([("  ", ""), *line], width, base)
        head, foot = len(self.head), len(self.foot)
        bottom = self.scrollable_content_region.height - foot
        if y == head - 1:
            return self._sections(width, base)
        if y < head:
            return self._strip(self.head[y], width, base)
        if y >= bottom:
            return self._strip(self.foot[y - bottom] if y - bottom < foot else (), width, base)
        at = y - head + self.scroll_offset.y
        if at >= len(self.sheet.rows):
            return Strip.blank(width, base)
        return self._row(self.sheet.rows[at], width, base)

    def _strip(self, pieces: Sequence[Piece], width: int, base: Style) -> Strip:
        room = self.scrollable_content_region.width
        return Strip(
            [Segment(text, base + self.tone(tone)) for text, tone in fit(pieces, room)]
        ).adjust_cell_length(width, base)

    def _sections(self, width: int, base: Style) -> Strip:
        """The names of the sections over their columns, the cursor's column marked."""
        assert self.sheet is not None
        assert self.picture is not None
        left = self.scroll_offset.x
        at = self.sheet.lefts[self.at[1]] - left
        end = at + max(1, self.sheet.step - 1)
        room = self.sheet.label_width - 3
        lead = self.picture.lead if len(self.picture.lead) <= room else ""
        shown = self.sheet.section_names(left, left + self.body_width).ljust(end)
        cross = base + self.tone("cursor") + Style(reverse=True)
        segments = [
            Segment(f"  {lead}".ljust(self.sheet.label_width), base + self.tone("quiet")),
            Segment(shown[: max(0, at)], base + self.tone("quiet")),
            Segment(shown[max(0, at) : end], cross),
            Segment(shown[end:], base + self.tone("quiet")),
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def _row(self, place: int, width: int, base: Style) -> Strip:
        sheet = self.sheet
        assert sheet is not None
        left, room = self.scroll_offset.x, self.body_width
        if place < 0:
            line = sheet.rule(place)[left : left + room]
            return self._strip([(" " * sheet.label_width, ""), (line, "dim")], width, base)
        here = place == self.at[0]
        cross = self.tone("cursor")
        label_base = base + cross if here else base
        segments = [Segment(text, label_base + self.tone(tone)) for text, tone in sheet.label_of(place)]
        cells, start = sheet.cells_of(place, left, left + room)
        run: list[Segment] = []
        styles: dict[tuple[str, int], Style] = {}
        for column, text, tone in cells:
            kind = 2 if here and column == self.at[1] else 1 if here or column == self.at[1] else 0
            style = styles.get((tone, kind))
            if style is None:
                style = base + cross + self.tone(tone) if kind else base + self.tone(tone)
                styles[tone, kind] = style
            if kind == 2:
                core = text.rstrip() or " "
                lit = style + Style(reverse=True, bold=True)
                run += [Segment(core, lit), Segment(text[len(core) :], style)]
            elif run and run[-1].style is style:
                run[-1] = Segment(run[-1].text + text, style)
            else:
                run.append(Segment(text, style))
        shown = Strip(run).crop(left - start, left - start + room)
        return Strip([*segments, *shown]).adjust_cell_length(width, base)
