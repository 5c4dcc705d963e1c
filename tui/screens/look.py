"""What every screen beside the main one shares: the title line, the line of keys, the box of a question."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from textual.containers import Vertical
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


class Box(Vertical):
    """The frame of what lies over another screen: a question or the help."""

    DEFAULT_CSS = """
    Box {
        width: 72; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        background: $panel; border: round $border;
        border-title-color: $primary; border-title-style: bold; border-subtitle-color: $text-muted;
    }
    Box Input { height: 1; border: none; padding: 0 1; background: $background; margin: 1 0 0 0; }
    Box Input:focus { border: none; background-tint: $foreground 0%; }
    Box .hint { height: auto; color: $text-muted; }
    """

    def __init__(self, title: str, ways_out: str) -> None:
        """Both are shown as they are, never as markup."""
        super().__init__()
        self.border_title = Content(title)
        self.border_subtitle = Content(ways_out)


def hanging(text: str, width: int, first: int, rest: int) -> Iterator[str]:
    """The text wrapped to a width, the first line short by `first` cells, the others indented by `rest`."""
    lines = textwrap.wrap(text, max(20, width), initial_indent=" " * first, subsequent_indent=" " * rest)
    yield from [lines[0][first:], *lines[1:]] if lines else [""]


def keys(pairs: tuple[tuple[str, str], ...]) -> Content:
    """`Enter open · / filter`, the keys standing out."""
    return Content(" · ").join(Content.assemble((key, "bold $primary"), f" {what}") for key, what in pairs)
