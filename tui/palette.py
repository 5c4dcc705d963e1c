"""Every action by name, for the palette (`:`): whoever forgot a key, or whose terminal eats it, finds it here."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.screen import Screen

from straggler.tui.headings import PANES

if TYPE_CHECKING:
    from straggler.tui.app import StragglerApp
    from straggler.tui.screens.main import MainScreen


def of_main(screen: MainScreen) -> Iterable[SystemCommand]:
    for at, name in enumerate(PANES, 1):
        yield SystemCommand(
            name.capitalize(), f"go to the {name} pane  {at}", partial(screen.action_pane, name)
        )
    yield SystemCommand(
        "Guided or expert", "one finding at a time in plain words, or every pane  G", screen.action_guided
    )
    yield SystemCommand("Another symptom", "ask again what hurts, on the same target", screen.another_symptom)
    yield SystemCommand("Filter", "narrow the list one is in  /", screen.action_filter)
    yield SystemCommand("Sort nodes", "worst first, by name, by place  s", screen.sort_nodes)
    yield SystemCommand("Re-read this node", "ask the chosen node again  r", screen.action_reread)
    yield SystemCommand(
        "Re-read what is unread", "ask the nodes nothing is known of  R", screen.action_reread_unread
    )
    yield SystemCommand(
        "Re-check this finding", "read only what it rests on; before and after  c", screen.recheck_chosen
    )
    yield SystemCommand("Acknowledge this finding", "set it aside for a while  a", screen.acknowledge_chosen)
    yield SystemCommand("Export the matrix", "SVG, CSV, JSON and text, as files  e", screen.export_chosen)
    yield SystemCommand("Copy", "what this pane is about, to clipboard and file  y", screen.action_copy)
    yield SystemCommand("One node or all nodes", "whose output is shown  o", screen.toggle_scope)
    yield SystemCommand("Pause", "let the screen stand still  p", screen.action_pause)
    yield SystemCommand("Stop reading", "keep what came  Esc", screen.stop_reading)


def commands(app: StragglerApp, screen: Screen[object]) -> Iterable[SystemCommand]:
    from straggler.tui.screens.main import MainScreen

    if isinstance(screen, MainScreen):
        yield from of_main(screen)
    yield SystemCommand("Help", "the keys that work here, and the term under the cursor  ?", app.action_help)
    yield SystemCommand(
        "Redraw", "draw everything again on a garbled terminal  Ctrl-L or L", app.action_redraw
    )
    for theme in ("straggler-dark", "straggler-light", "textual-ansi"):
        word = theme.removeprefix("straggler-").replace("textual-ansi", "the terminal's own colours")
        yield SystemCommand(
            f"Theme: {word}", "colours of the screens", lambda name=theme: setattr(app, "theme", name)
        )
    yield SystemCommand("Quit", "leave; everything read so far is kept  q", app.action_quit)
