"""Shown while the terminal is too small to tell anything: which size it has, which it needs. It leaves by itself."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

LEAST = Size(60, 16)


def too_small(size: Size) -> bool:
    return size.width < LEAST.width or size.height < LEAST.height


class TooSmallScreen(ModalScreen[None]):
    DEFAULT_CSS = """
    TooSmallScreen { align: center middle; }
    TooSmallScreen Static { width: auto; max-width: 100%; height: auto; text-align: center; }
    """

    leaving = False

    def compose(self) -> ComposeResult:
        yield Static(self.words(), markup=False)

    def words(self) -> str:
        size = self.app.size
        return f"{size.width}×{size.height} is too small\nmake it {LEAST.width}×{LEAST.height} or larger\n(80×24 is fine)\nreading goes on"

    def on_resize(self) -> None:
        if too_small(self.app.size):
            self.query_one(Static).update(self.words())
        elif self.is_current and not self.leaving:
            self.leaving = True
            self.dismiss()
