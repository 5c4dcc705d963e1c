"""One question with one line for the answer, such as a key's passphrase."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class PromptScreen(ModalScreen[str | None]):
    """Dismisses with the answer, or None when it was left. A secret is never drawn."""

    DEFAULT_CSS = """
    PromptScreen { align: center middle; background: $background 60%; }
    PromptScreen Vertical { width: 72; max-width: 100%; height: auto; background: $panel; padding: 0 1; }
    PromptScreen Input { height: 1; border: none; padding: 0; background: $background; }
    PromptScreen Input:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, question: str, *, secret: bool = False) -> None:
        super().__init__()
        self.question, self.secret = question, secret

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.question, markup=False)
            yield Input(password=self.secret)
            yield Static("Enter answers · Esc leaves it", markup=False)

    @on(Input.Submitted)
    def answered(self, message: Input.Submitted) -> None:
        self.dismiss(message.value)

    def action_leave(self) -> None:
        self.dismiss(None)
