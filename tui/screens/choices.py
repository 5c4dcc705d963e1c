"""The list that the chooser and the intake ask with: grouped rows of a title and a hint, drawn line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from straggler.tui.glyphs import POINTER


@dataclass(frozen=True, slots=True)
class Row:
    """One line. `id` names what it stands for; headings and notes have none and are never landed on.

    `mark` is a short label in front (a digit to press), `checked` None where the row cannot be ticked.
    """

    title: str
    hint: str = ""
    id: str | None = None
    mark: str = ""
    checked: bool | None = None
    heading: bool = False


class Choices(ScrollView, can_focus=True):
    """Owns the rows and the cursor; what a choice leads to is the screen's business."""

    DEFAULT_CSS = """
    Choices {
        height: 1fr; background: $background; color: $foreground; scrollbar-size-vertical: 1;
        & > .choices--cursor { background: $block-cursor-background; text-style: bold; }
        & > .choices--heading { color: $primary; text-style: bold; }
        & > .choices--hint { color: $quiet; }
        & > .choices--mark { color: $primary; }
        & > .choices--checked { color: $success; text-style: bold; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"choices--{part}" for part in ("cursor", "heading", "hint", "mark", "checked")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "next"),
        Binding("k,up", "move(-1)", "previous"),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("home", "move(-100000)", "first", show=False),
        Binding("end", "move(100000)", "last", show=False),
        Binding("enter", "choose", "choose"),
    ]

    cursor = reactive(-1)
    rows: tuple[Row, ...] = ()
    _titles: Sequence[int] = ()

    @dataclass
    class Moved(Message):
        row: Row

    @dataclass
    class Chosen(Message):
        row: Row

    @property
    def current(self) -> Row | None:
        """The row under the cursor; None while there is nothing to choose."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def show(self, rows: Sequence[Row]) -> None:
        """Replace every row at once; the cursor stays with its row where that is still there."""
        held = self.current
        self.rows = tuple(rows)
        self._titles = self._title_widths()
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows))
        places = self._places()
        same = [at for at in places if held is not None and self.rows[at].id == held.id]
        before = self.cursor
        self.set_reactive(Choices.cursor, -1)
        self.cursor = (same or places or [-1])[0]
        if self.cursor == before and self.current is not None:
            self.post_message(self.Moved(self.current))
        self.refresh()

    def land(self, row_id: str) -> bool:
        """Put the cursor on a row; False when no such row is shown."""
        for at, row in enumerate(self.rows):
            if row.id == row_id:
                self.cursor = at
                return True
        return False

    def land_below(self, mark: str) -> None:
        """Put the cursor on the first row to choose below the heading with this mark, where there is one."""
        head = next((at for at, row in enumerate(self.rows) if row.heading and row.mark == mark), None)
        below = [at for at in self._places() if head is not None and at > head]
        if head is not None and below:
            self.cursor = below[0]
            self.scroll_to_region(Region(0, head, 1, 1), animate=False, top=True)

    def _places(self) -> list[int]:
        return [at for at, row in enumerate(self.rows) if row.id is not None]

    def watch_cursor(self, at: int) -> None:
        if at >= 0:
            # The heading above the first row of a group comes into view with it.
            lead = 1 if at and self.rows[at - 1].id is None else 0
            self.scroll_to_region(Region(0, at - lead, 1, 1 + lead), animate=False)
            self.post_message(self.Moved(self.rows[at]))
        self.refresh()

    def action_move(self, by: int) -> None:
        places = self._places()
        if places:
            now = places.index(self.cursor) if self.cursor in places else 0
            self.cursor = places[max(0, min(now + by, len(places) - 1))]

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 1))

    def action_choose(self) -> None:
        if self.current is not None:
            self.post_message(self.Chosen(self.current))

    def on_click(self, event: events.Click) -> None:
        at = event.y + self.scroll_offset.y
        if at < len(self.rows) and self.rows[at].id is not None:
            self.cursor = at
            if event.chain == 2:
                self.action_choose()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows))

    def _title_widths(self) -> list[int]:
        """For each row the cells of the widest title of its group: hints line up within a group, not across groups."""
        widths: list[int] = []
        group: list[int] = []
        widest = 0
        for at, row in enumerate([*self.rows, Row("", heading=True)]):
            if row.heading:
                widths += [widest] * len(group)
                group, widest = [], 0
            elif row.id is not None and row.hint:
                widest = max(widest, cell_len(row.title))
            group.append(at)
        return widths

    def render_line(self, y: int) -> Strip:
        at, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        base = self.rich_style
        if at >= len(self.rows):
            return Strip.blank(width, base)
        row, here = self.rows[at], at == self.cursor
        if here:
            base += self._part("cursor")
        segments = self._heading(row, base) if row.heading else self._choice(at, here, base, width)
        return Strip(segments).adjust_cell_length(width, base)

    def _heading(self, row: Row, base: Style) -> list[Segment]:
        mark = f"{row.mark} " if row.mark else ""
        return [
            Segment(f" {mark}", base + self._part("mark")),
            Segment(row.title, base + self._part("heading")),
            Segment(f"  {row.hint}" if row.hint else "", base + self._part("hint")),
        ]

    def _choice(self, at: int, here: bool, base: Style, width: int) -> list[Segment]:
        row = self.rows[at]
        hint = base if here else base + self._part("hint")
        if row.id is None:
            return [Segment(elide(f"     {row.title}", width), hint)]
        box = "" if row.checked is None else ("[x] " if row.checked else "[ ] ")
        mark = f"{row.mark} " if row.mark else ""
        front = cell_len(f" {POINTER} {mark}{box}")
        room = min(self._titles[at], max(24, width * 3 // 5)) if row.hint else width - front
        title = set_cell_size(elide(row.title, room), room)
        rest = width - front - room - 3
        return [
            Segment(f" {POINTER if here else ' '} ", base + self._part("mark")),
            Segment(mark, base + self._part("mark")),
            Segment(box, base + self._part("checked") if row.checked else hint),
            Segment(title, base),
            Segment(f"  {elide(row.hint, rest)}" if row.hint and rest > 3 else "", hint),
        ]

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"choices--{name}", partial=True)


def elide(text: str, room: int) -> str:
    """The text in at most `room` cells; what was cut off is said by a mark at the end."""
    if cell_len(text) <= room:
        return text
    return set_cell_size(text, max(0, room - 1)).rstrip() + "…" if room > 0 else ""
