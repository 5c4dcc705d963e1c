"""The bandwidth matrix: one widget that draws lines, however many pairs there are; only lines on the screen are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from straggler.tui import matrix_cell
from straggler.tui.glyphs import TONES
from straggler.tui.matrix_sheet import RULE, Sheet
from straggler.tui.panes.lines import Piece, fit

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Blame
    from straggler.engine.bandwidth.picture import Picture
    from straggler.engine.bandwidth.view import MatrixView

EMPTY: tuple[tuple[Piece, ...], ...] = (
    (("No bandwidth result yet.", "strong"),),
    (("", ""),),
    (("straggler sweep", "busy"), (" plans the pairs and writes what your scheduler runs", "")),
    (("straggler matrix DIR", "busy"), (" reads results that are there already", "")),
    (("--results DIR", "busy"), (" shows them here as they appear", "")),
)
TALL = 22
"""Lines from which the pane can spare a second line for the headline."""


class MatrixPane(ScrollView, can_focus=True):
    """Owns the cursor, the order of the nodes and how a cell is written. What a choice leads to is the screen's business."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"tone--{tone}" for tone in (*TONES, "strong", "dim", "rule", "cursor")),
        *(f"tone--ramp{digit}" for digit in range(10)),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1,0)", "next", show=False),
        Binding("k,up", "move(-1,0)", "previous", show=False),
        Binding("h,left", "move(0,-1)", "left", show=False),
        Binding("l,right", "move(0,1)", "right", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("home", "edge(0,0)", "start, end of the row", show=False),
        Binding("end", "edge(0,1)", "start, end of the row", show=False),
        Binding("g,less_than_sign", "edge(1,0)", "first", show=False),
        Binding("greater_than_sign", "edge(1,1)", "last", show=False),
        Binding("enter", "choose", "node or remedy"),
        Binding("n", "verdict(1)", "next verdict"),
        Binding("N", "verdict(-1)", "previous verdict", show=False),
        Binding("w", "wide", "signs or numbers"),
        Binding("o", "order", "by place or by score"),
        Binding("e", "export", "export to files"),
    ]

    @dataclass
    class Chosen(Message):
        """Enter on a cell: its verdict where it is part of one, else the node of its row."""

        node: str
        blame: Blame | None

    @dataclass
    class Moved(Message):
        """The cursor stands on the pair of these two nodes now."""

        pair: tuple[str, str]

    @dataclass
    class ExportWanted(Message):
        view: MatrixView

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view: MatrixView | None = None
        self.picture: Picture | None = None
        self.sheet: Sheet | None = None
        self.at = (0, 0)
        self.wide = False
        self.by_score = False
        self.current: int | None = None
        self.held = False
        self._head: list[list[Piece]] = []
        self._foot: list[list[Piece]] = []

    # What is shown.

    def show(self, view: MatrixView | None) -> None:
        """Take over a whole matrix at once; the cursor stays on its pair. One that was shown already costs nothing."""
        if view is self.view:
            return
        self.view = view
        self._arrange()

    def _arrange(self) -> None:
        """Order and sections anew; the cursor goes where its pair went."""
        held = self.pair if self.held else None
        if self.view is None or not self.view.matrix.nodes:
            self.picture = self.sheet = None
            self.at = (0, 0)
            self._measure()
            return
        from straggler.engine.bandwidth import picture

        if self.by_score:
            self.picture = picture.Picture(self.view, picture.by_score(self.view))
        else:
            self.picture = picture.arranged(self.view)
        if held is not None and all(name in self.picture.numbers for name in held):
            row, column = (int(self.picture.place[self.picture.numbers[name]]) for name in held)
            self.at = (row, column)
        else:
            self.at = (0, min(1, len(self.picture) - 1))
            # Until somebody moves it, the cursor stands on what is to be seen.
            for a, b in self._targets()[: not self.by_score]:
                self.at = (int(self.picture.place[a]), int(self.picture.place[b]))
        verdicts = self.view.attribution.verdicts
        if self.current is not None and self.current >= len(self._targets()):
            self.current = len(verdicts) - 1 if verdicts else None
        self._measure()

    def _measure(self) -> None:
        """Fit the sheet to the widget, and tell the scroll bars how much there is."""
        width = max(20, self.size.width)
        if self.picture is not None:
            self.sheet = Sheet(self.picture, width - 1, wide=self.wide)
            self._draw_frame()
            self.virtual_size = Size(
                self.sheet.label_width + self.sheet.cells_width,
                len(self.sheet.rows) + len(self._head) + len(self._foot),
            )
        else:
            self.virtual_size = Size(1, 1)
        if self.is_mounted:
            self._follow()
        self.refresh()

    def _draw_frame(self) -> None:
        """The lines above and below the cells, which do not scroll."""
        assert self.sheet is not None
        width, height = max(20, self.size.width - 1), self.size.height
        most = max(1, min(5, height // 6))
        self._head = [
            *self.sheet.title(width, 2 if height >= TALL else 1),
            *self.sheet.verdicts(width, most, self.current),
            [],
        ]
        assert self.picture is not None
        self._foot = [*matrix_cell.described(self.picture, *self.at), self.sheet.legend(width)]

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two nodes of the cell under the cursor, the row's first."""
        if self.picture is None:
            return None
        return self.picture.node(self.at[0]), self.picture.node(self.at[1])

    @property
    def plain(self) -> str:
        """What stands around the cells, as text, for copying."""
        lines = (*self._head, *self._foot[:2])
        return "\n".join(filter(None, ("".join(text for text, _ in one).strip() for one in lines)))

    @property
    def body_height(self) -> int:
        return max(1, self.scrollable_content_region.height - len(self._head) - len(self._foot))

    @property
    def body_width(self) -> int:
        label = self.sheet.label_width if self.sheet is not None else 0
        return max(1, self.scrollable_content_region.width - label)

    # The cursor.

    def _go(self, row: int, column: int) -> None:
        if self.picture is None or self.sheet is None:
            return
        last = len(self.picture) - 1
        self.held = True
        self.at = (max(0, min(row, last)), max(0, min(column, last)))
        self._draw_frame()
        self._follow()
        self.refresh()
        pair = self.pair
        assert pair is not None
        self.post_message(self.Moved(pair))

    def _follow(self) -> None:
        """Bring the cursor's cell into view."""
        if self.sheet is None:
            return
        row, column = self.at
        line, left = self.sheet.line_of_place[row], self.sheet.lefts[column]
        x, y = self.scroll_offset if self.held else (0, 0)
        y = min(max(y, line - self.body_height + 1), line)
        x = min(max(x, left + self.sheet.step - self.body_width), left)
        if (x, y) != tuple(self.scroll_offset):
            self.scroll_to(x, y, animate=False, force=True, immediate=True)

    def action_move(self, down: int, right: int) -> None:
        self._go(self.at[0] + down, self.at[1] + right)

    def action_page(self, by: int) -> None:
        self._go(self.at[0] + by * max(1, self.body_height - 1), self.at[1])

    def action_edge(self, rows: int, end: int) -> None:
        last = len(self.picture) if self.picture is not None else 0
        self._go(end * last if rows else self.at[0], self.at[1] if rows else end * last)

    def _targets(self) -> list[tuple[int, int]]:
        """The cell of every verdict and every doubt, as node numbers."""
        picture = self.picture
        if picture is None:
            return []
        found = picture.view.attribution
        cells = [matrix_cell.shown_by(picture, blame) for blame in found.verdicts]
        for one in found.doubts:
            a, b = (picture.numbers.get(name) for name in one.pair)
            cells.append((a, b) if a is not None and b is not None else (0, 0))
        return cells

    def action_verdict(self, by: int) -> None:
        targets = self._targets()
        if not targets or self.picture is None:
            return
        start = -1 if by > 0 else 0
        self.current = ((start if self.current is None else self.current) + by) % len(targets)
        a, b = targets[self.current]
        self._go(int(self.picture.place[a]), int(self.picture.place[b]))

    def action_wide(self) -> None:
        self.wide = not self.wide
        self._measure()

    def action_order(self) -> None:
        self.by_score = not self.by_score
        self._arrange()

    def action_choose(self) -> None:
        if self.pair is not None and self.view is not None:
            blames = matrix_cell.concerning(self.view, *self.pair)
            self.post_message(self.Chosen(self.pair[0], blames[0] if blames else None))

    def action_export(self) -> None:
        if self.view is not None:
            self.post_message(self.ExportWanted(self.view))

    def on_click(self, event: events.Click) -> None:
        if self.sheet is None or self.picture is None:
            return
        line = event.y - len(self._head)
        x = event.x - self.sheet.label_width
        if 0 <= line < self.body_height and line + self.scroll_offset.y < len(self.sheet.rows):
            row = self.sheet.rows[line + self.scroll_offset.y]
            if row != RULE:
                self._go(row, self.sheet.place_at(x + self.scroll_offset.x) if x >= 0 else self.at[1])

    def on_resize(self) -> None:
        self._measure()

    # Drawing.

    def tone(self, name: str) -> Style:
        return self.get_component_rich_style(f"tone--{name}", partial=True) if name else Style.null()

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if self.sheet is None:
            line = EMPTY[y - 1] if 1 <= y <= len(EMPTY) else ()
            return self._strip([("  ", ""), *line], width, base)
        head, foot = len(self._head), len(self._foot)
        bottom = self.scrollable_content_region.height - foot
        if y == head - 1:
            return self._sections(width, base)
        if y < head:
            return self._strip(self._head[y], width, base)
        if y >= bottom:
            return self._strip(self._foot[y - bottom] if y - bottom < foot else (), width, base)
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
        if place == RULE:
            line = sheet.rule()[left : left + room]
            return self._strip([(" " * sheet.label_width, ""), (line, "rule")], width, base)
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
