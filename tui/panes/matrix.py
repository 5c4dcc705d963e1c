"""The bandwidth matrix: one widget that draws lines, however many pairs there are; only lines on the screen are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message

from straggler.tui import matrix_cell
from straggler.tui.matrix_sheet import Sheet
from straggler.tui.panes.matrix_drawing import MatrixDrawing

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Blame
    from straggler.engine.bandwidth.view import MatrixView

TALL = 22
"""Lines from which the pane can spare a second line for the headline."""


class MatrixPane(MatrixDrawing, can_focus=True):
    """Owns the cursor, the order of the nodes and how a cell is written. What a choice leads to is the screen's business."""

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
        """Enter on a cell: its verdict where it is part of one, else what is in doubt about it, else the node of its row."""

        pair: tuple[str, str]
        blame: Blame | None
        in_doubt: bool

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
        self.wide = False
        self.by_score = False
        self.current: int | None = None
        self.held = False
        self.wanted = ""

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
                len(self.sheet.rows) + len(self.head) + len(self.foot),
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
        self.head = [
            *self.sheet.title(width, 2 if height >= TALL else 1),
            *self.sheet.verdicts(width, most, self.current),
            [],
        ]
        assert self.picture is not None
        self.foot = [*matrix_cell.described(self.picture, *self.at, width), self.sheet.legend(width)]

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two nodes of the cell under the cursor, the row's first."""
        if self.picture is None:
            return None
        return self.picture.node(self.at[0]), self.picture.node(self.at[1])

    @property
    def plain(self) -> str:
        """What stands around the cells, as text, for copying."""
        lines = (*self.head, *self.foot[:2])
        return "\n".join(filter(None, ("".join(text for text, _ in one).strip() for one in lines)))

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

    def filter(self, wanted: str) -> None:
        """Go to the row of the first node whose name has every word; a matrix without its other nodes would be none."""
        self.wanted = wanted
        words = wanted.lower().split()
        if words and self.picture is not None:
            for place in range(len(self.picture)):
                if all(word in self.picture.node(place).lower() for word in words):
                    self._go(place, self.at[1])
                    return

    def action_wide(self) -> None:
        self.wide = not self.wide
        self._measure()

    def action_order(self) -> None:
        self.by_score = not self.by_score
        self._arrange()

    def action_choose(self) -> None:
        if self.pair is not None and self.view is not None:
            blames = matrix_cell.concerning(self.view, *self.pair)
            doubts = matrix_cell.in_doubt(self.view, *self.pair)
            self.post_message(self.Chosen(self.pair, blames[0] if blames else None, bool(doubts)))

    def action_export(self) -> None:
        if self.view is not None:
            self.post_message(self.ExportWanted(self.view))

    def on_click(self, event: events.Click) -> None:
        if self.sheet is None or self.picture is None:
            return
        line = event.y - len(self.head)
        x = event.x - self.sheet.label_width
        if 0 <= line < self.body_height and line + self.scroll_offset.y < len(self.sheet.rows):
            row = self.sheet.rows[line + self.scroll_offset.y]
            if row >= 0:
                self._go(row, self.sheet.place_at(x + self.scroll_offset.x) if x >= 0 else self.at[1])

    def on_resize(self) -> None:
        self._measure()
