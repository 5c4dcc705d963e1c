"""Panes that are read, not chosen from: wrapped text that scrolls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from straggler.tui.glyphs import POINTER
from straggler.tui.panes.bars import content
from straggler.tui.panes.lines import Piece

Paragraph = Sequence[Piece]


HANG = 26
"""The widest label that what follows it is indented to; below a longer one, lines start at the margin."""


def flow(paragraph: Paragraph, width: int) -> list[list[Piece]]:
    """A paragraph in lines of `width`. A margin mark is repeated on each, and text after a label hangs below its start."""
    pieces = list(paragraph)
    lead: list[Piece] = []
    if pieces and pieces[0][0] in (f"{POINTER} ", "  ", "│ "):
        lead = [pieces.pop(0)]
    labels = takewhile(lambda text: text.endswith(" "), (text for text, _ in pieces[:-1]))
    label = sum(cell_len(text) for text in labels)
    hang = label if label <= min(HANG, width // 3) else 0
    room = max(10, width - sum(cell_len(text) for text, _ in lead))
    lines: list[list[Piece]] = [[]]
    used = 0
    for text, tone in pieces:
        for word in _words(text, room - hang):
            size = cell_len(word)
            if used + size > room and not word.isspace() and used > hang:
                lines.append([(" " * hang, "")] if hang else [])
                used = hang
            elif used + size > room and word.isspace():
                continue
            lines[-1].append((word, tone))
            used += size
    return [[*lead, *line] for line in lines]


def _words(text: str, room: int) -> Iterator[str]:
    """What stays together on a line; a set of nodes that is longer than one is parted at its commas."""
    for word in re.findall(r"\s+|\S+", text):
        yield from re.findall(r"[^,]*,|[^,]+", word) if cell_len(word) > room else [word]


class TextPane(VerticalScroll, can_focus=True):
    """Owns paragraphs; draws them again only when they changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("g,less_than_sign", "scroll_home", "top", show=False),
        Binding("greater_than_sign", "scroll_end", "bottom", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.paragraphs: tuple[Paragraph, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="text")

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        if tuple(paragraphs) != self.paragraphs:
            self.paragraphs = tuple(paragraphs)
            self.draw()

    def draw(self) -> None:
        self.put(".text", self.paragraphs)

    def put(self, part: str, paragraphs: Sequence[Paragraph]) -> None:
        """Fill one part of the pane, wrapped to its width."""
        width = max(20, self.scrollable_content_region.width)
        lines = [line for one in paragraphs for line in flow(one, width)]
        self.query_one(part, Static).update(Content("\n").join(map(content, lines)))

    def on_resize(self) -> None:
        self.draw()

    @property
    def plain(self) -> str:
        """The text without its colours, for copying."""
        return "\n".join("".join(text for text, _ in one).rstrip() for one in self.paragraphs)
