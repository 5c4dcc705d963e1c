"""Textual's driver, made to outlive its terminal: a hung-up terminal takes nothing, and must not hold anything up.

Textual writes from a thread behind a short queue. When the terminal goes, that thread dies of EIO, the queue fills, and the event
loop waits in it for ever, signal handlers and all. With a file that swallows what nobody can read, the thread lives on and drains.
"""

from __future__ import annotations

import termios
from typing import IO, Any, cast

from textual.drivers.linux_driver import LinuxDriver


class Forgiving:
    """A text file that goes quiet with the first OSError instead of raising it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.gone = False

    def write(self, text: str) -> int:
        if not self.gone:
            try:
                return self._file.write(text)
            except (OSError, ValueError):
                self.gone = True
        return len(text)

    def flush(self) -> None:
        if not self.gone:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self.gone = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class HangupDriver(LinuxDriver):
    """LinuxDriver over a forgiving file, which does not start again on a terminal that is gone.

    The kernel sends SIGCONT behind SIGHUP. Textual takes that for the end of a Ctrl-Z and starts to read keys once more, from a
    thread that nobody ends.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._file is not None:
            self._file = cast("Any", Forgiving(self._file))

    def start_application_mode(self) -> None:
        if self._terminal_is_there():
            super().start_application_mode()  # type: ignore[no-untyped-call]

    def _terminal_is_there(self) -> bool:
        try:
            termios.tcgetattr(self.fileno)
        except (termios.error, OSError, ValueError):
            return False
        return True
