"""The one-line widgets around the panes: title bar, breadcrumb, tabs, pane heads, keys. Each draws what it is handed."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from straggler.tui.glyphs import TONES
from straggler.tui.panes.lines import Piece

STYLES = {
    **TONES,
    "strong": "bold $foreground",
    "dim": "$faint",
    "brand": "bold $primary",
    "here": "bold $text on $block-cursor-background",
    "": "",
}


def content(pieces: Sequence[Piece]) -> Content:
    """Text with tones, never markup."""
    return Content.assemble(*((text, STYLES[tone]) if tone else text for text, tone in pieces))


def two_sided(left: Sequence[Piece], right: Sequence[Piece], width: int) -> Content:
    """Left and right on one line; where there is no room for both, the left gives way."""
    end = content(right)
    room = max(0, width - end.cell_length - (1 if right else 0))
    start = content(left)
    if start.cell_length > room:
        start = start.truncate(room, ellipsis=True)
    return Content.assemble(start.pad_right(max(0, width - end.cell_length - start.cell_length)), end)


class Bar(Widget):
    """One line with a left and a right side."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.left: tuple[Piece, ...] = ()
        self.right: tuple[Piece, ...] = ()

    def show(self, left: Sequence[Piece], right: Sequence[Piece] = ()) -> None:
        """Draw only what changed: most beats leave most bars as they are."""
        if (tuple(left), tuple(right)) != (self.left, self.right):
            self.left, self.right = tuple(left), tuple(right)
            self.refresh()

    def render(self) -> Content:
        return two_sided(self.left, self.right, self.content_size.width)
