"""The app with one of the screens that ask in front, and what was answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.screen import Screen

from straggler.tui.app import StragglerApp
from straggler.tui.start import Start
from tests.tui.driving import NOW, until

__all__ = ["NOW", "Asking", "until"]


class Asking(StragglerApp):
    """Shows one screen and keeps its answer; everything else is the app as it is."""

    # The style sheet lies beside the app, not beside this file.
    CSS_PATH = str(Path(__file__).parents[2] / "tui" / "app.tcss")

    def __init__(self, asked: Screen[Any], **start: Any) -> None:
        super().__init__(start=Start(clock=lambda: NOW, **start))
        self.asked = asked
        self.answers: list[Any] = []

    async def _open(self) -> None:
        await self._room.wait()
        await self.push_screen(self.asked, self.answers.append)
