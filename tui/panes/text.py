"""Panes that are read, not chosen from: wrapped text that scrolls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from straggler.tui.panes.bars import content
from straggler.tui.panes.lines import Piece

Paragraph = Sequence[Piece]


class TextPane(VerticalScroll, can_focus=True):
    """Owns paragraphs; draws them again only when they changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("g,less_than_sign", "scroll_home", "top", show=False),
        Binding("greater_than_sign", "scroll_end", "bottom", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.paragraphs: tuple[Paragraph, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="text")

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        if tuple(paragraphs) != self.paragraphs:
            self.paragraphs = tuple(paragraphs)
            self.query_one(".text", Static).update(Content("\n").join(map(content, self.paragraphs)))

    @property
    def plain(self) -> str:
        """The text without its colours, for copying."""
        return "\n".join("".join(text for text, _ in one).rstrip() for one in self.paragraphs)
