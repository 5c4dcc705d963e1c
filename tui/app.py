"""The terminal UI: which screen is up, what all screens share, and a clean end however it comes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen

from straggler.tui.clipboard import copyable, sequence, write_file
from straggler.tui.glyphs import AsciiFilter
from straggler.tui.messages import Copy, Notice
from straggler.tui.panes.bars import Bar
from straggler.tui.start import Start
from straggler.tui.theme import OWN_VARIABLES, THEMES

if TYPE_CHECKING:
    from straggler.engine.targets.base import Target
    from straggler.engine.targets.replay import Replay
    from straggler.tui.live import Live

SWITCH_SECONDS = 0.0005
"""How long the judging thread may keep the interpreter from the event loop; Python's 5 ms would be felt in every key."""


class StragglerApp(App[None]):
    """Holds what the session was started with and the session that runs; screens do the rest.

    `parting` is what to print once the terminal is back: which session it was and how to open it again.
    """

    TITLE = "straggler"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("question_mark", "help", "help"),
        Binding("colon", "command_palette", "palette"),
        Binding("ctrl+l,L", "redraw", "redraw", show=False),
    ]

    def __init__(self, *, start: Start) -> None:
        super().__init__()
        self.start = start
        self.live: Live | None = None
        self.parting = ""
        self._files = ThreadPoolExecutor(1, thread_name_prefix="files")
        for one in THEMES:
            self.register_theme(one)
        self.theme = start.theme
        if start.low_bandwidth:
            self.animation_level = "none"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(OWN_VARIABLES)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = list(super().get_line_filters())
        return [*filters, AsciiFilter()] if self.start.ascii_only else filters

    def compose(self) -> ComposeResult:
        bar = Bar(id="title")
        bar.show([(" straggler ", "brand"), ("  READ-ONLY", "ok")])
        yield bar

    def on_mount(self) -> None:
        if not self.is_headless:
            self._heed_signals()
        self.call_after_refresh(self.run_worker, self._open(), group="open")

    async def _open(self) -> None:
        """After the first paint: ask what is not known yet, then show the session."""
        start = self.start
        if start.replay is not None:
            await self.open_session(start.replay.target, start.symptom, start.replay)
        elif start.target is not None:
            await self.open_session(start.target, start.symptom)

    async def open_session(self, target: Target, symptom: str | None, replay: Replay | None = None) -> None:
        """Show the main screen for a target; a session that was up before is closed first."""
        from straggler.tui.opening import open_live
        from straggler.tui.screens.main import MainScreen

        await self.close_session()
        prepared = await asyncio.get_running_loop().run_in_executor(
            self._files, partial(open_live, self.start, target, symptom, replay)
        )
        self.live = prepared.live()
        await self.push_screen(MainScreen(self.live, prepared.remedies, start=self.start, acks=prepared.acks))

    # The end.

    def _heed_signals(self) -> None:
        """A closed terminal and a polite kill end like `q`: nothing on screen is lost."""
        sys.setswitchinterval(SWITCH_SECONDS)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: self.run_worker(self.action_quit(), group="quit"))

    async def action_quit(self) -> None:
        await self.close_session()
        self.exit()

    async def close_session(self) -> None:
        """Stop reading, write down what came, close the journal."""
        live, self.live = self.live, None
        if live is None:
            return
        for screen in self.screen_stack:
            self.workers.cancel_node(screen)
        await live.end()
        self.parting = live.parting(self.start.state_dir)

    async def on_unmount(self) -> None:
        await self.close_session()
        self._files.shutdown(wait=False, cancel_futures=True)

    # What all screens share.

    @on(Copy)
    async def copy_text(self, message: Copy) -> None:
        """To the terminal's clipboard, and to a file whose path is said."""
        text = copyable(message.text)
        signs = sequence(text, os.environ)
        if signs is not None and self._driver is not None:
            self._driver.write(signs)
        size = f"{len(text.encode()):,} bytes"
        try:
            path = await asyncio.get_running_loop().run_in_executor(
                self._files, partial(write_file, text, self.start.state_dir)
            )
        except OSError as error:
            self._tell(Notice(f"{message.what}: sent to the terminal's clipboard; no file ({error.strerror})", bad=True))
            return
        how = "copied" if signs is not None else "too long for a terminal's clipboard,"
        self._tell(Notice(f"{message.what} {how} ({size}), also in {path}"))

    @on(Notice)
    def _tell(self, notice: Notice) -> None:
        show = getattr(self.screen, "show_notice", None)
        if show is not None:
            show(notice)
        else:
            self.notify(notice.text, severity="error" if notice.bad else "information", markup=False)

    def action_redraw(self) -> None:
        """Everything again, for a terminal that got garbled."""
        self.screen.refresh(layout=True)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        from straggler.tui.palette import commands

        yield from commands(self, screen)
