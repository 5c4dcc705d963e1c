"""What travels between screens and the app. What a pane tells its screen stands in the pane's own class."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class Copy(Message):
    """Put `text` on the clipboard and into the file; `what` names it in the notice."""

    text: str
    what: str


@dataclass
class Notice(Message):
    """One line for the operator at the bottom of the screen; `bad` when something did not work."""

    text: str
    bad: bool = False


@dataclass
class AnotherSymptom(Message):
    """Look for another symptom on the same target; None: ask which."""

    symptom: str | None = None
