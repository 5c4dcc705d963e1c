"""The commands of the front door: a plain tuple of objects with a name, a help line, arguments and a run."""

from __future__ import annotations

from straggler.tui.commands import check, replay, sessions, ui
from straggler.tui.commands.base import Command

COMMANDS: tuple[Command, ...] = (
    Command("ui", "open the terminal UI (the default)", ui.arguments, ui.run),
    Command("check", "read the target, judge it, print the report", check.arguments, check.run),
    Command("sessions", "list the sessions on this machine", sessions.arguments, sessions.run),
    Command("replay", "open a session again, offline", replay.arguments, replay.run),
)
