"""The terminal UI: which screen is up, and what all of them share."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static

from straggler.tui.start import Start


class StragglerApp(App[None]):
    """Holds what the session was started with; screens do the rest."""

    TITLE = "straggler"

    def __init__(self, *, start: Start) -> None:
        super().__init__()
        self.start = start

    def compose(self) -> ComposeResult:
        yield Static("straggler", markup=False)
