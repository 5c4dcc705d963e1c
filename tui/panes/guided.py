"""Guided mode: one finding at a time, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from straggler.tui.panes.text import TextPane


class GuidedPane(TextPane):
    """Owns nothing but its text; which finding is next is the screen's business."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,right,j", "turn(1)", "next finding"),
        Binding("b,left,k", "turn(-1)", "previous finding"),
        Binding("enter", "open", "what to do"),
    ]

    @dataclass
    class Turned(Message):
        by: int

    class Opened(Message):
        """Enter: show the remedy of the finding on the page."""

    def action_turn(self, by: int) -> None:
        self.post_message(self.Turned(by))

    def action_open(self) -> None:
        self.post_message(self.Opened())
