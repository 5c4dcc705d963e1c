"""The terminal UI: which screen is up, what all screens share, and a clean end however it comes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Event, Key
from textual.filter import LineFilter
from textual.screen import Screen

from straggler.tui.clipboard import copyable, sequence, write_file
from straggler.tui.glyphs import AsciiFilter
from straggler.tui.messages import AnotherSymptom, Copy, Notice
from straggler.tui.panes.bars import Bar
from straggler.tui.start import Start
from straggler.tui.terminal_driver import HangupDriver
from straggler.tui.theme import OWN_VARIABLES, THEMES
from straggler.tui.typeahead import OneKeyAtATime

if TYPE_CHECKING:
    from textual.command import Provider

    from straggler.engine.targets.base import Target
    from straggler.engine.targets.replay import Replay
    from straggler.tui.live import Live

SWITCH_SECONDS = 0.0005
"""How long the judging thread may keep the interpreter from the event loop; Python's 5 ms would be felt in every key."""


def _jump() -> type[Provider]:
    """Loaded with the first opening of the palette."""
    from straggler.tui.jump import Jump

    return Jump


LEAVE_SECONDS = 3.0
"""How long leaving waits for sessions on nodes to end."""

COLLECT = (20_000, 20, 200)
"""Garbage collections of everything are made rare: with a thousand nodes' facts in memory each stops all for 0.1 s."""


class StragglerApp(OneKeyAtATime):
    """Holds what the session was started with and the session that runs; screens do the rest.

    `parting` is what to print once the terminal is back: which session it was and how to open it again.
    """

    TITLE = "straggler"
    CSS_PATH = "app.tcss"
    COMMANDS = App.COMMANDS | {_jump}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("question_mark", "help", "help"),
        Binding("colon", "command_palette", "palette"),
        Binding("ctrl+l,L", "redraw", "redraw", show=False),
        Binding("ctrl+z", "suspend_process", "suspend (fg brings it back)", show=False),
    ]

    def __init__(self, *, start: Start) -> None:
        super().__init__()
        self.start = start
        self.live: Live | None = None
        self.parting = ""
        self._still = ExitStack()
        self._room = asyncio.Event()
        self._files = ThreadPoolExecutor(1, thread_name_prefix="files")
        for one in THEMES:
            self.register_theme(one)
        self.theme = start.theme
        if start.low_bandwidth:
            self.animation_level = "none"

    def get_driver_class(self) -> type[Driver]:
        return HangupDriver

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
        self.call_after_refresh(self.run_worker, self._open, group="open")

    async def _open(self) -> None:
        """After the first paint: ask what the command line left open, then show the session."""
        from straggler.engine.errors import StragglerError

        await self._room.wait()
        try:
            await self._ask_and_open()
        except StragglerError as error:
            # Such as a broken file in the user's config: said on the terminal, once it is back.
            self.parting = f"straggler: {error}"
            self.exit(return_code=1)

    async def _ask_and_open(self) -> None:
        from straggler.tui import asking

        self.start = await asking.ask(self)
        if self.start.replay is not None:
            await self.open_session(self.start.replay.target, self.start.symptom, self.start.replay)
            return
        target = self.start.target
        if target is not None:
            await self.open_session(target, self.start.symptom)

    @on(AnotherSymptom)
    def ask_again(self, message: AnotherSymptom) -> None:
        """Another symptom on the same target is another session."""
        self.run_worker(self._ask_again(message.symptom), group="open", exclusive=True)

    async def _ask_again(self, symptom: str | None) -> None:
        from straggler.tui import asking

        live = self.live
        if live is None or live.recording:
            return
        if symptom is not None:
            told: Start | None = replace(self.start, symptom=symptom, error_text=None)
        else:
            told = await asking.ask_symptom(self, self.start, live.diagnosis.target)
        if told is not None:
            self.start = told
            await self.open_session(live.diagnosis.target, told.symptom)

    async def action_help(self) -> None:
        """What works here and what the words here mean."""
        from straggler.engine import knowledge
        from straggler.tui.screens.help import HelpScreen, live_keys

        if isinstance(self.screen, HelpScreen):
            return
        keys, text = live_keys(self.screen), getattr(self.screen, "words_here", "")
        known = await asyncio.get_running_loop().run_in_executor(self._files, knowledge.load)
        await self.push_screen(HelpScreen(keys, known.glossary, text))

    def on_resize(self, event: events.Resize) -> None:
        self.call_next(self._fit)

    def _fit(self) -> None:
        """Whatever screen is up: on too small a terminal only that is said."""
        from straggler.tui.screens.too_small import TooSmallScreen, too_small

        if not too_small(self.size):
            self._room.set()
        elif not isinstance(self.screen, TooSmallScreen):
            self.push_screen(TooSmallScreen())

    async def open_session(self, target: Target, symptom: str | None, replay: Replay | None = None) -> None:
        """Show the main screen for a target; a session that was up before is closed first."""
        from straggler.tui.opening import open_live
        from straggler.tui.screens.main import MainScreen

        await self.close_session()
        prepared = await asyncio.get_running_loop().run_in_executor(
            self._files, partial(open_live, self.start, target, symptom, replay)
        )
        self.live = prepared.live()
        if target.hyperpod is not None:
            target.hyperpod.clients.on_trouble = self._trouble
        screen = MainScreen(self.live, prepared.remedies, start=self.start, acks=prepared.acks)
        if isinstance(self.screen, MainScreen):
            await self.switch_screen(screen)
        else:
            await self.push_screen(screen)
        if target.notes:
            more = f" · and {len(target.notes) - 1} more" if len(target.notes) > 1 else ""
            self._tell(Notice(f"{target.notes[0]}{more}"))

    def _trouble(self, line: str) -> None:
        self._tell(Notice(line, bad=line.startswith("waiting")))

    # The end.

    def _heed_signals(self) -> None:
        """A closed terminal and a polite kill end like `q`: nothing on screen is lost."""
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.set_threshold(*COLLECT)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._terminal_gone)
        loop.add_signal_handler(signal.SIGTERM, self._leave)

    def _terminal_gone(self) -> None:
        """Nothing is drawn any more: Textual's writer would wait for ever for a terminal that takes nothing."""
        self._still.enter_context(self.batch_update())
        self._leave()

    def _leave(self) -> None:
        self.run_worker(self.action_quit(), group="quit")

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and self.live is not None:
            self.live.hush()
        await super().on_event(event)

    async def action_quit(self) -> None:
        await self.close_session()
        self.exit()

    async def close_session(self) -> None:
        """Stop reading, write down what came, close the journal."""
        live, self.live = self.live, None
        if live is None:
            return
        from straggler.tui.live import READING

        reading = [one for one in self.workers if one.group == READING]
        for screen in self.screen_stack:
            self.workers.cancel_node(screen)
        # Only when the last node was told to stop is everything said that the journal must hold.
        with suppress(asyncio.TimeoutError):
            ends = asyncio.gather(*(one.wait() for one in reading), return_exceptions=True)
            await asyncio.wait_for(ends, LEAVE_SECONDS)
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
            self._tell(
                Notice(
                    f"{message.what}: sent to the terminal's clipboard; no file ({error.strerror})", bad=True
                )
            )
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
