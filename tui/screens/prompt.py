"""One question with one line for the answer, such as a key's passphrase."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from straggler.tui.screens.look import Box


class PromptScreen(ModalScreen[str | None]):
    """Dismisses with the answer, or None when it was left. A secret is never drawn."""

    DEFAULT_CSS = """
    PromptScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, question: str, *, secret: bool = False) -> None:
        super().__init__()
        self.question, self.secret = question, secret

    def compose(self) -> ComposeResult:
        with Box("A question", "Enter answers · Esc leaves it"):
            yield Static(self.question, markup=False)
            if self.secret:
                yield Static("Kept in memory only, and never shown.", classes="hint", markup=False)
            yield Input(password=self.secret)

    @on(Input.Submitted)
    def answered(self, message: Input.Submitted) -> None:
        self.dismiss(message.value)

    def action_leave(self) -> None:
        self.dismiss(None)
