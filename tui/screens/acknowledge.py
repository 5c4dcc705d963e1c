"""Set a finding aside for a while: how long, and why. It comes back when it changes or when the time is over."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from straggler.tui.screens.choices import Choices, Row
from straggler.tui.screens.look import Box

HOURS = ((1, "1 hour"), (8, "8 hours"), (24, "a day"), (168, "a week"))


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """`until`: Unix seconds."""

    until: float
    note: str


class AcknowledgeScreen(ModalScreen[Acknowledged | None]):
    """Owns the two questions; what acknowledging does is the asker's business."""

    DEFAULT_CSS = """
    AcknowledgeScreen { align: center middle; }
    AcknowledgeScreen #about { text-style: bold; margin: 0 0 1 0; }
    AcknowledgeScreen Choices { height: 4; background: $panel; }
    """
    AUTO_FOCUS = "Choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave it"),
        Binding("n", "note", "add a note"),
        *(Binding(str(at), f"pick({at})", show=False) for at in range(1, len(HOURS) + 1)),
    ]

    def __init__(self, title: str, now: float) -> None:
        super().__init__()
        self.about, self.now = title, now

    def compose(self) -> ComposeResult:
        with Box("Set aside for a while", "Enter sets it aside · n note · Esc leaves it"):
            yield Static(self.about, id="about", markup=False)
            yield Choices()
            yield Input(placeholder="n: a note, who or what it waits for")
            yield Static(
                "It comes back by itself when it changes or when the time is over.",
                classes="hint",
                markup=False,
            )

    def on_mount(self) -> None:
        rows = [
            Row(
                f"for {words}",
                f"until {time.strftime('%Y-%m-%d %H:%MZ', time.gmtime(self.now + 3600 * hours))}",
                str(hours),
                str(at),
            )
            for at, (hours, words) in enumerate(HOURS, 1)
        ]
        self.query_one(Choices).show(rows)

    @on(Choices.Chosen)
    def chosen(self, message: Choices.Chosen) -> None:
        until = self.now + 3600 * int(message.row.id or "1")
        self.dismiss(Acknowledged(until, self.query_one(Input).value.strip()))

    @on(Input.Submitted)
    def noted(self) -> None:
        self.query_one(Choices).focus()

    def action_note(self) -> None:
        self.query_one(Input).focus()

    def action_pick(self, at: int) -> None:
        self.query_one(Choices).land(str(HOURS[at - 1][0]))

    def action_leave(self) -> None:
        self.dismiss(None)
