"""What every screen beside the main one shares: the title line, the line of keys, the box of a question."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.cells import cell_len
from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from straggler.engine.safetext import safe

LONGEST = 4000
"""Characters kept of what is typed or pasted: the last lines of a traceback fit, a log file does not."""


NOTICE_SECONDS = 6.0


class TitleLine(Static):
    """One line: who we are and what this screen is about on the left, the promise on the right."""

    DEFAULT_CSS = """
    TitleLine { dock: top; height: auto; max-height: 5; background: $panel; color: $foreground; }
    """

    def __init__(self, about: str = "") -> None:
        super().__init__(markup=False)
        self.about = about
        self.notice: tuple[str, str] | None = None
        self._timer: Timer | None = None

    def say(self, text: str, *, bad: bool = False) -> None:
        """One line for the operator in place of what the screen is about: for a while, or until unsaid when it is bad."""
        self.notice = (text, "bold $error" if bad else "$warning")
        if self._timer is not None:
            self._timer.stop()
        self._timer = None if bad else self.set_timer(NOTICE_SECONDS, self.unsay)
        self.refresh(layout=True)

    def unsay(self) -> None:
        self.notice = None
        self.refresh(layout=True)

    def render(self) -> Content:
        right = " READ-ONLY "
        brand = " straggler   "
        room = max(0, self.size.width - len(right))
        text, style = self.notice or ("", "")
        inline = bool(text) and len(brand) + cell_len(text) <= room
        about: tuple[str, str] | str = (text, style) if inline else self.about
        left = Content.assemble((brand, "bold $primary"), about).truncate(room, ellipsis=True)
        line = Content.assemble(left.pad_right(max(0, room - left.cell_length)), (right, "bold $success"))
        if inline or not text:
            return line
        # What is too long for the line is said below it, whole.
        return Content("\n").join(
            [line, *(Content.styled(f" {one}", style) for one in hanging(text, self.size.width - 2, 0, 0))]
        )


class KeyLine(Static):
    """The keys that matter now, as `key what` pairs on one line; `?` has them all."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $panel; color: $quiet; padding: 0 1; }
    """

    def __init__(self, *pairs: tuple[str, str]) -> None:
        super().__init__(markup=False)
        self.pairs = pairs

    def show(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs
        self.refresh()

    def render(self) -> Content:
        return keys(self.pairs)


class TypedLine(Input):
    """One line to type into at the bottom of a screen. It keeps every line of a paste, where Textual's keeps the first."""

    DEFAULT_CSS = """
    TypedLine { dock: bottom; height: 1; border: none; padding: 0 1; background: $panel; margin: 0 0 1 0; }
    TypedLine:focus { border: none; background-tint: $foreground 0%; }
    """

    def __init__(self) -> None:
        super().__init__(id="line", max_length=LONGEST, select_on_focus=False)

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.insert_text_at_cursor(safe(" ".join(event.text.split()), limit=LONGEST))


class Box(Vertical):
    """The frame of what lies over another screen: a question or the help."""

    DEFAULT_CSS = """
    Box {
        width: 72; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        background: $panel; border: round $border;
        border-title-color: $primary; border-title-style: bold; border-subtitle-color: $quiet;
    }
    Box Input { height: 1; border: none; padding: 0 1; background: $background; margin: 1 0 0 0; }
    Box Input:focus { border: none; background-tint: $foreground 0%; }
    Box .hint { height: auto; color: $quiet; }
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
