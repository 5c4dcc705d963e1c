"""What to look at, when the command line named nothing: hosts, this machine, past sessions, the simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from straggler.engine.safetext import safe
from straggler.tui.beside import beside
from straggler.tui.messages import Notice
from straggler.tui.screens.choices import Choices, Row
from straggler.tui.screens.look import KeyLine, TitleLine, TypedLine
from straggler.tui.screens.offers import Offers, Source

TYPED = "type"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen: a source's kind (`hyperpod`, `hosts`, `local`, `session`, `demo`, `ssh`) and the values that name it."""

    kind: str
    values: tuple[str, ...]


class ChooserScreen(Screen[Choice]):
    """Owns the list of what can be opened. It fills in as each source has been read, in threads, after the first paint."""

    DEFAULT_CSS = """
    ChooserScreen Choices { padding: 1 1 0 1; }
    """
    AUTO_FOCUS = "Choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", "tick"),
        Binding("slash", "line('filter')", "filter"),
        Binding("h", "line('hosts')", "type hosts"),
        *(Binding(str(at), f"group({at})", "go to that group", show=False) for at in range(1, 10)),
        Binding("escape", "back", "clear filter and ticks"),
    ]

    def __init__(self, sources: Sequence[Source], trouble: str = "", typed: str = "") -> None:
        """`trouble`: why what was chosen before could not be opened; `typed`: the hosts it was, to be mended."""
        super().__init__()
        self.trouble, self.typed_before = trouble, typed
        self.sources = tuple(sources)
        self.offers: dict[str, Offers] = {}
        self.ticked: set[str] = set()
        self.wanted = ""
        self.line_is = ""

    def compose(self) -> ComposeResult:
        yield TitleLine("What do you want to look at?")
        yield Choices()
        yield TypedLine()
        yield KeyLine(
            ("Enter", "open"),
            ("Space", "tick"),
            ("h", "type hosts"),
            ("/", "filter"),
            ("?", "help"),
            ("q", "quit"),
        )

    def on_mount(self) -> None:
        self.query_one("#line").display = False
        self.draw()
        if self.trouble:
            self.show_notice(Notice(self.trouble, bad=True))
        if self.typed_before:
            self.action_line("hosts")
        for source in self.sources:
            self.run_worker(self._load(source), group="offers")

    async def _load(self, source: Source) -> None:
        """One source that fails says so in its own line; the others are not touched by it."""
        try:
            self.offers[source.kind] = await beside(source.load)
        except Exception as error:  # noqa: BLE001 - what cannot be listed must not keep the rest from being opened
            self.offers[source.kind] = Offers(note=f"could not be listed ({type(error).__name__}: {error})")
        self.draw()

    @property
    def words_here(self) -> str:
        """The text whose terms `?` explains."""
        return " ".join(f"{one.title} {one.hint}" for one in self._rows())

    def draw(self) -> None:
        self.query_one(Choices).show(self._rows())

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        for number, source in enumerate(self.sources, 1):
            group = self._group(source)
            # While a word is looked for, only what has it is in the way of the cursor.
            if group or not self.wanted:
                rows += [Row(source.title, source.hint, mark=str(number), heading=True), *group]
        return rows or [Row(f"nothing here has {safe(self.wanted, limit=60)!r}; Esc shows everything again")]

    def _group(self, source: Source) -> list[Row]:
        rows: list[Row] = []
        if source.kind == "hosts" and not self.wanted:
            rows.append(Row("type them", "user@node[001-016]:22, or @FILE", id=TYPED))
        offers = self.offers.get(source.kind)
        if offers is None:
            return [*rows, Row("looking …")]
        for at, one in enumerate(offers.found):
            if self.wanted.lower() in f"{one.title} {one.hint}".lower():
                key = f"{source.kind}:{at}"
                tick = key in self.ticked if source.several else None
                rows.append(Row(safe(one.title, limit=200), safe(one.hint, limit=200), id=key, checked=tick))
        if offers.note and not self.wanted:
            rows.append(Row(safe(offers.note, limit=300)))
        return rows

    def _value(self, key: str) -> tuple[str, str]:
        kind, _, at = key.partition(":")
        return kind, self.offers[kind].found[int(at)].value

    @on(Choices.Chosen)
    def chosen(self, message: Choices.Chosen) -> None:
        key = message.row.id or ""
        if key == TYPED:
            self.action_line("hosts")
            return
        kind, value = self._value(key)
        several = (
            sorted(one for one in self.ticked if one.startswith(f"{kind}:")) if key in self.ticked else []
        )
        self.dismiss(Choice(kind, tuple(self._value(one)[1] for one in several) or (value,)))

    def action_group(self, at: int) -> None:
        self.query_one(Choices).land_below(str(at))

    def action_tick(self) -> None:
        row = self.query_one(Choices).current
        if row is None or row.checked is None or row.id is None:
            self.say("only hosts of the ssh config can be ticked; Enter opens this one")
            return
        self.ticked ^= {row.id}
        self.draw()

    # The line at the bottom: a filter, or hosts typed by hand.

    def action_line(self, what: str) -> None:
        self.line_is = what
        box = self.query_one("#line", Input)
        box.display = True
        box.placeholder = (
            "user@node[001-016]:22,other · or @FILE · Enter opens, Esc leaves"
            if what == "hosts"
            else "filter by any word · Enter keeps it · Esc clears it"
        )
        with box.prevent(Input.Changed):
            box.value = self.wanted if what == "filter" else self.typed_before
        box.cursor_position = len(box.value)
        box.focus()

    @on(Input.Changed, "#line")
    def typed(self, message: Input.Changed) -> None:
        self.query_one(TitleLine).unsay()
        if self.line_is == "filter":
            self.wanted = message.value
            self.draw()

    @on(Input.Submitted, "#line")
    def submitted(self, message: Input.Submitted) -> None:
        if self.line_is == "hosts":
            if message.value.strip():
                self.dismiss(Choice("hosts", (message.value.strip(),)))
            return
        self._close_line()

    def action_back(self) -> None:
        if self.query_one("#line").display:
            if self.line_is == "filter":
                self.wanted = ""
                self.draw()
            self._close_line()
        elif self.wanted or self.ticked:
            self.wanted, self.ticked = "", set()
            self.draw()
        else:
            self.say("q leaves")

    def _close_line(self) -> None:
        self.query_one(TitleLine).unsay()
        self.query_one("#line").display = False
        self.query_one(Choices).focus()

    def say(self, text: str) -> None:
        self.show_notice(Notice(text))

    def show_notice(self, notice: Notice) -> None:
        self.query_one(TitleLine).say(safe(notice.text, limit=300), bad=notice.bad)
