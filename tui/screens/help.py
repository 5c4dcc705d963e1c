"""`?`: the keys that work right here, and what the words on the screen mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from straggler.engine.glossary import lookup, terms_in
from straggler.engine.knowledge import Term
from straggler.engine.safetext import safe
from straggler.tui.screens.look import Box, hanging

Key = tuple[str, str]

NAMES: Mapping[str, str] = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "Shift-Tab",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "less_than_sign": "<",
    "greater_than_sign": ">",
}
"""How keys are written on keyboards; in this order on one line. Letters and digits are their own names."""

ONE_LINE: Mapping[str, str] = {
    "next": "move",
    "previous": "move",
    "left": "move",
    "right": "move",
    "down": "move",
    "up": "move",
    "page down": "a page at a time",
    "page up": "a page at a time",
    "first": "first, last",
    "last": "first, last",
    "top": "first, last",
    "bottom": "first, last",
    "next pane": "next, previous pane",
    "previous pane": "next, previous pane",
    "next finding": "next, previous finding",
    "previous finding": "next, previous finding",
    "next reply": "next, previous reply",
    "previous reply": "next, previous reply",
    "next verdict": "next, previous verdict",
    "previous verdict": "next, previous verdict",
    "next command": "next, previous command",
    "previous command": "next, previous command",
}
"""Two directions of one thing share a line."""

NOT_OURS = frozenset({"ctrl+q", "ctrl+c", "super+c", "f1", "ctrl+f", "ctrl+b", "alt+up"})
"""Keys the framework binds, or that only save a hand from moving: terminals eat them, so none is named."""


@dataclass(frozen=True, slots=True)
class Group:
    """Keys that belong together: those of the list one is in, of the screen, and those that always work."""

    title: str
    keys: tuple[Key, ...]


def live_keys(screen: Screen[object]) -> tuple[Group, ...]:
    """Every key that works on this screen now, the focused pane's first."""
    found: dict[str, dict[str, list[str]]] = {"Here": {}, "On this screen": {}, "Everywhere": {}}
    for name, active in screen.active_bindings.items():
        binding = active.binding
        # Our descriptions are in small letters; the framework's own (Focus Next, Scroll Left) are not worth a line.
        if not binding.description[:1].islower() or not active.enabled or name in NOT_OURS:
            continue
        title = (
            "Everywhere"
            if isinstance(active.node, App)
            else "On this screen"
            if isinstance(active.node, Screen)
            else "Here"
        )
        what = "numbered" if name.isdigit() else ONE_LINE.get(binding.description, binding.description)
        found[title].setdefault(what, []).append(
            f"{name}={binding.description}" if name.isdigit() else binding.key_display or named(name)
        )
    return tuple(
        Group(title, tuple(_line(what, names) for what, names in keys.items()))
        for title, keys in found.items()
        if keys
    )


def named(key: str) -> str:
    return NAMES.get(key, f"Ctrl-{key[5:].upper()}" if key.startswith("ctrl+") else key)


def _line(what: str, names: Sequence[str]) -> Key:
    if what == "numbered":
        digits, words = zip(*(one.split("=", 1) for one in names), strict=True)
        span = digits[0] if len(digits) == 1 else f"{digits[0]}-{digits[-1]}"
        return span, ", ".join(dict.fromkeys(words))
    order = list(NAMES.values())
    keys = sorted(dict.fromkeys(names), key=lambda one: order.index(one) if one in order else len(order))
    return " ".join(keys), what


class HelpScreen(ModalScreen[None]):
    """Owns what it was given: keys and terms. Typing looks a term up in the whole glossary."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen Box { width: 80; }
    HelpScreen VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
    """
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("down", "scroll_by(1)", "down", show=False),
        Binding("up", "scroll_by(-1)", "up", show=False),
        Binding("pagedown", "scroll_by(10)", "page down", show=False),
        Binding("pageup", "scroll_by(-10)", "page up", show=False),
    ]

    def __init__(self, groups: Sequence[Group], glossary: Mapping[str, Term], text: str) -> None:
        super().__init__()
        self.groups, self.glossary = tuple(groups), glossary
        self.here = terms_in(text, glossary)

    def compose(self) -> ComposeResult:
        with Box("Help", "↑ ↓ scroll · Esc closes"):
            with VerticalScroll():
                yield Static(id="live", markup=False)
                yield Static(id="terms", markup=False)
            yield Input(placeholder="type a word to look it up: EFA, Xid, blast radius …")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).can_focus = False
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        wanted = self.query_one(Input).value.strip()
        width = max(20, min(80, self.app.size.width) - 6)
        self.query_one(VerticalScroll).styles.max_height = max(4, self.app.size.height - 4)
        self.query_one("#live").display = not wanted
        self.query_one("#live", Static).update(Content("\n").join(self._keys(width)))
        self.query_one("#terms", Static).update(Content("\n").join(self._terms(wanted, width)))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _keys(self, width: int) -> list[Content]:
        """Each group below its title, in two columns that are read downwards."""
        lines: list[Content] = []
        half = width // 2
        for group in self.groups:
            lines.append(Content.styled(group.title, "bold"))
            wide = max(len(key) for key, _ in group.keys)
            cells = [
                Content.assemble((f" {key:<{wide}}  ", "bold $primary"), what) for key, what in group.keys
            ]
            short = [one for one in cells if one.cell_length < half]
            rows = (len(short) + 1) // 2
            for at in range(rows):
                right = short[at + rows] if at + rows < len(short) else Content("")
                lines.append(Content.assemble(short[at].pad_right(half - short[at].cell_length), right))
            lines += [one for one in cells if one.cell_length >= half]
        return lines

    def _terms(self, wanted: str, width: int) -> list[Content]:
        if wanted:
            exact = lookup(wanted, self.glossary)
            low = wanted.casefold()
            alike = [
                (name, one)
                for name, one in self.glossary.items()
                if any(low in word.casefold() for word in (name, *one.also))
            ]
            found = list(dict.fromkeys([*([exact] if exact else []), *alike]))
            head = "" if found else f"The glossary has no {safe(wanted, limit=60)}"
        else:
            found = self.here
            head = "Words on this screen" if found else ""
        lines = [Content.styled(head, "bold")] if head else []
        if head and not wanted:
            lines.insert(0, Content(""))
        for name, one in found:
            first, *rest = hanging(one.means, width, len(name) + 3, 3)
            lines.append(Content.assemble((f" {name}  ", "bold $primary"), first))
            lines += [Content(more) for more in rest]
        return lines

    @on(Input.Changed)
    def typed(self) -> None:
        self.draw()

    @on(Input.Submitted)
    def submitted(self) -> None:
        if not self.query_one(Input).value:
            self.dismiss()

    def action_scroll_by(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
