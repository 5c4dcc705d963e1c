"""What every screen beside the main one shares: the title line on top and the line of keys at the bottom."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class TitleLine(Static):
    """One line: who we are and what this screen is about on the left, the promise on the right."""

    DEFAULT_CSS = """
    TitleLine { dock: top; height: 1; background: $panel; color: $foreground; }
    """

    def __init__(self, about: str = "") -> None:
        super().__init__(markup=False)
        self.about = about
        self.notice: tuple[str, str] | None = None

    def say(self, text: str, *, bad: bool = False) -> None:
        """One line for the operator in place of what the screen is about, for a while."""
        self.notice = (text, "bold $error" if bad else "$warning")
        self.set_timer(6.0, self._unsay)
        self.refresh()

    def _unsay(self) -> None:
        self.notice = None
        self.refresh()

    def render(self) -> Content:
        right = "READ-ONLY "
        about: tuple[str, str] | str = self.notice or f"{self.about}"
        left = Content.assemble((" straggler ", "bold $primary"), " ", about)
        room = max(0, self.size.width - len(right))
        line = left.truncate(room, ellipsis=True)
        return Content.assemble(line.pad_right(max(0, room - line.cell_length)), (right, "bold $success"))


class KeyLine(Static):
    """The keys that matter now, as `key what` pairs on one line; `?` has them all."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $panel; color: $text-muted; padding: 0 1; }
    """

    def __init__(self, *pairs: tuple[str, str]) -> None:
        super().__init__(markup=False)
        self.pairs = pairs

    def show(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs
        self.refresh()

    def render(self) -> Content:
        return keys(self.pairs)


def keys(pairs: tuple[tuple[str, str], ...]) -> Content:
    """`Enter open · / filter`, the keys standing out."""
    return Content(" · ").join(Content.assemble((key, "bold $primary"), f" {what}") for key, what in pairs)
