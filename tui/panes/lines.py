"""What the list-like panes share: items of one or more lines, a cursor that stays with its item, and drawing by line.

Only the lines on screen are ever drawn, so ten thousand items cost what twenty do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from straggler.tui.glyphs import POINTER, TONES

Piece = tuple[str, str]
"""Text and its tone: a key of TONES, `strong`, `dim` or empty for the plain colour. The text must be safe already."""


class LinesPane(ScrollView, can_focus=True):
    """Owns items and cursor. A pane says how many lines an item has (`height_of`) and what stands on them (`line_of`)."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"tone--{tone}" for tone in (*TONES, "strong", "dim", "rule", "cursor")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "next", show=False),
        Binding("k,up", "move(-1)", "previous", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("home,g,less_than_sign", "edge(0)", "first", show=False),
        Binding("end,greater_than_sign", "edge(1)", "last", show=False),
        Binding("enter", "choose", "open"),
    ]

    cursor = reactive(0)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.keys: Sequence[Hashable] = ()
        self.held = False
        self._tops: list[int] = [0]

    def height_of(self, at: int) -> int:
        """Lines of an item."""
        return 1

    def line_of(self, at: int, line: int, width: int) -> Sequence[Piece]:
        """What stands on one line of an item, left to right."""
        raise NotImplementedError

    def tail_of(self, at: int, line: int) -> Sequence[Piece]:
        """What is pushed to the right edge of that line."""
        return ()

    def lands_on(self, at: int) -> bool:
        """False for items that only part others: the cursor steps over them."""
        return True

    def chosen(self, at: int) -> None:
        """Enter was pressed on an item."""

    def moved(self, at: int) -> None:
        """The cursor came to rest on another item, or its item changed."""

    def replace(self, keys: Sequence[Hashable]) -> None:
        """Take over new items at once. The cursor goes where its item went, and the item keeps its place on the screen.

        Until somebody has moved it, the cursor stays at the top instead: there the worst is.
        """
        held = self.keys[self.cursor] if self.held and self.cursor < len(self.keys) else None
        offset = self._top(self.cursor) - self.scroll_offset.y if self.keys else 0
        self.keys = keys
        self._tops = [0, *accumulate(self.height_of(at) for at in range(len(keys)))]
        self._measure()
        at = self.cursor if self.held else 0
        if held is not None and not (at < len(keys) and keys[at] == held):
            at = next((new for new, key in enumerate(keys) if key == held), at)
        at = self._landing(at, 1)
        self.set_reactive(LinesPane.cursor, at)
        if self.keys and self.is_mounted:
            y = max(0, self._top(at) - offset) if self.held else 0
            self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self.refresh()
        self.moved(at)

    def _measure(self) -> None:
        self.virtual_size = Size(max(1, self.scrollable_content_region.width), self._tops[-1])

    def _top(self, at: int) -> int:
        return self._tops[min(at, len(self._tops) - 1)]

    def _landing(self, at: int, by: int) -> int:
        """The nearest item at or beyond `at` that the cursor may stand on."""
        last = len(self.keys) - 1
        if last < 0:
            return 0
        at = max(0, min(at, last))
        for way in (
            (range(at, last + 1), range(at, -1, -1)) if by > 0 else (range(at, -1, -1), range(at, last + 1))
        ):
            for one in way:
                if self.lands_on(one):
                    return one
        return at

    def validate_cursor(self, at: int) -> int:
        return max(0, min(at, len(self.keys) - 1))

    def watch_cursor(self, at: int) -> None:
        """Bring the whole item into view, and with it the heading above."""
        first = at
        while first > 0 and not self.lands_on(first - 1):
            first -= 1
        region = Region(0, self._top(first), 1, max(1, self._top(at + 1) - self._top(first)))
        self.scroll_to_region(region, animate=False, force=True, immediate=True)
        self.refresh()
        self.moved(at)

    def land(self, key: Hashable) -> bool:
        """Put the cursor on an item by its key; False when it is not shown."""
        for at, one in enumerate(self.keys):
            if one == key:
                self.held = True
                self.cursor = at
                return True
        return False

    def action_move(self, by: int) -> None:
        self.held = True
        self.cursor = self._landing(self.cursor + by, by)

    def action_page(self, by: int) -> None:
        self.held = True
        line = self._top(self.cursor) + by * max(1, self.size.height - 1)
        self.cursor = self._landing(self._item_at(max(0, line)), by)

    def action_edge(self, end: int) -> None:
        self.held = bool(end)
        self.cursor = self._landing(len(self.keys) - 1 if end else 0, -1 if end else 1)
        if not end:
            self.scroll_home(animate=False, force=True, immediate=True)

    def action_choose(self) -> None:
        if self.keys and self.lands_on(self.cursor):
            self.chosen(self.cursor)

    def on_click(self, event: events.Click) -> None:
        line = event.y + self.scroll_offset.y
        if line < self._tops[-1] and self.lands_on(at := self._item_at(line)):
            again = at == self.cursor
            self.held = True
            self.cursor = at
            if again or event.chain == 2:
                self.action_choose()

    def on_resize(self) -> None:
        """Heights may depend on the width."""
        self.replace(self.keys)

    def _item_at(self, line: int) -> int:
        return max(0, min(bisect_right(self._tops, line) - 1, len(self.keys) - 1))

    def tone(self, name: str) -> Style:
        return self.get_component_rich_style(f"tone--{name}", partial=True) if name else Style.null()

    def render_line(self, y: int) -> Strip:
        line = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self.rich_style
        if line >= self._tops[-1]:
            return Strip.blank(self.size.width, base)
        at = self._item_at(line)
        under = at == self.cursor and self.lands_on(at)
        if under:
            base += self.tone("cursor") if self.has_focus else Style(bold=True)
        within = line - self._tops[at]
        tail = self.tail_of(at, within)
        room = max(0, width - 1 - (sum(cell_len(text) for text, _ in tail) + 2 if tail else 0))
        pieces = [
            (POINTER if under else " ", "busy"),
            *fit(self.line_of(at, within, room), room, pad=bool(tail)),
        ]
        if tail:
            pieces += [(" ", ""), *tail]
        return Strip([Segment(text, base + self.tone(tone)) for text, tone in pieces]).adjust_cell_length(
            self.size.width, base
        )


def fit(pieces: Sequence[Piece], room: int, *, pad: bool = False) -> list[Piece]:
    """As many cells of `pieces` as there is room; what is cut ends in `…`. Padded to the room when asked."""
    out: list[Piece] = []
    left = room
    for text, tone in pieces:
        size = cell_len(text)
        if size > left:
            if left > 0:
                out.append((set_cell_size(text, left - 1) + "…", tone))
            left = 0
            break
        out.append((text, tone))
        left -= size
    if pad and left > 0:
        out.append((" " * left, ""))
    return out


def column(text: str, width: int) -> str:
    """Exactly `width` cells, cut with `…` where longer, and one blank behind."""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(0, width - 1)) + "… " if width > 0 else ""
    return text + " " * (width - size + 1)
