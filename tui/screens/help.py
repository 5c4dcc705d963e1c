"""`?`: the keys that work right here, and what the words on the screen mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from straggler.engine.glossary import lookup, terms_in
from straggler.engine.knowledge import Term

Key = tuple[str, str]
_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "escape": "Esc",
    "enter": "Enter",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "space": "Space",
    "tab": "Tab",
    "shift+tab": "Shift-Tab",
    "ctrl+l": "Ctrl-L",
    "ctrl+p": "Ctrl-P",
}
NOT_OURS = frozenset({"ctrl+q", "ctrl+c", "super+c", "f1"})
"""Keys the framework binds that we never name: terminals eat them."""


def live_keys(screen: Screen[object]) -> list[Key]:
    """(key, what it does) of every binding that works on this screen now, the focused pane's first."""
    grouped: dict[str, list[str]] = {}
    for name, active in screen.active_bindings.items():
        binding = active.binding
        # Our descriptions are in small letters; the framework's own (Focus Next, Scroll Left) are not worth a line.
        if (
            binding.description[:1].islower()
            and active.enabled
            and name not in NOT_OURS
            and not name.startswith("alt")
        ):
            key = binding.key_display or _NAMES.get(name, name.replace("ctrl+", "Ctrl-"))
            grouped.setdefault(binding.description, []).append(key)
    return [(" ".join(dict.fromkeys(names)), what) for what, names in grouped.items()]


class HelpScreen(ModalScreen[None]):
    """Owns what it was given: keys and terms. Typing looks a term up in the whole glossary."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen Vertical { width: 78; max-width: 100%; height: auto; max-height: 100%; background: $panel; padding: 0 1; }
    HelpScreen VerticalScroll { height: auto; max-height: 18; scrollbar-size-vertical: 1; }
    HelpScreen .head { height: 1; color: $primary; text-style: bold; }
    HelpScreen Input { height: 1; border: none; padding: 0; background: $background; margin: 1 0 0 0; }
    HelpScreen Input:focus { border: none; }
    """
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("down", "scroll_by(1)", "down", show=False),
        Binding("up", "scroll_by(-1)", "up", show=False),
        Binding("pagedown", "scroll_by(10)", "page down", show=False),
        Binding("pageup", "scroll_by(-10)", "page up", show=False),
    ]

    def __init__(self, keys: Sequence[Key], glossary: Mapping[str, Term], text: str) -> None:
        super().__init__()
        self.keys, self.glossary = tuple(keys), glossary
        self.here = terms_in(text, glossary)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Help · Esc closes", classes="head", markup=False)
            with VerticalScroll():
                yield Static(self._keys(), markup=False)
                yield Static(id="terms", markup=False)
            yield Input(placeholder="look up a term: EFA, Xid, blast radius …")

    def on_mount(self) -> None:
        self.show_terms("")

    def _keys(self) -> Content:
        wide = max((len(key) for key, _ in self.keys), default=0)
        lines = [Content("Keys that work here")]
        lines += [Content.assemble((f" {key:<{wide}}  ", "bold $primary"), what) for key, what in self.keys]
        return Content("\n").join(lines)

    @on(Input.Changed)
    def typed(self, message: Input.Changed) -> None:
        self.show_terms(message.value.strip())

    def show_terms(self, wanted: str) -> None:
        if not wanted:
            found, head = (
                self.here,
                "Words on this screen" if self.here else "No term of the glossary on this screen",
            )
        else:
            exact = lookup(wanted, self.glossary)
            alike = [
                (name, one) for name, one in self.glossary.items() if wanted.casefold() in name.casefold()
            ]
            found = list(dict.fromkeys([*([exact] if exact else []), *alike]))
            head = f"Terms like {wanted}" if found else f"The glossary has no {wanted}"
        lines = [Content(""), Content(head)]
        lines += [Content.assemble((f" {name}  ", "bold"), one.means) for name, one in found]
        self.query_one("#terms", Static).update(Content("\n").join(lines))

    @on(Input.Submitted)
    def submitted(self) -> None:
        if not self.query_one(Input).value:
            self.dismiss()

    def action_scroll_by(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
