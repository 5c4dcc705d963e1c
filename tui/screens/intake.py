"""What hurts, since when, and the exact error if there is one: the first question, with why it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from straggler.engine.errors import UsageError
from straggler.engine.knowledge import Knowledge
from straggler.engine.safetext import safe
from straggler.engine.window import DEFAULT_SINCE, window
from straggler.tui.messages import Notice
from straggler.tui.screens.choices import Choices, Row
from straggler.tui.screens.look import KeyLine, TitleLine, TypedLine, hanging

SINCES = ("30m", DEFAULT_SINCE, "6h", "1d", "3d")


@dataclass(frozen=True, slots=True)
class Intake:
    """The answers. `since` is as typed (`2h`, an ISO date); it has been checked."""

    symptom: str
    error_text: str
    since: str
    sudo: bool
    guided: bool


class IntakeScreen(Screen[Intake | None]):
    """Owns the first question. A pasted error moves the cursor to the symptom it speaks of."""

    DEFAULT_CSS = """
    IntakeScreen #lead { height: auto; padding: 1 2; color: $quiet; }
    IntakeScreen Choices { padding: 0 1; }
    IntakeScreen #why { height: auto; padding: 0 2; margin: 1 0 0 0; color: $quiet; }
    IntakeScreen #settings { height: 1; padding: 0 2; background: $panel; dock: bottom; margin: 0 0 1 0; }
    """
    AUTO_FOCUS = "Choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "line('error')", "paste the error"),
        Binding("s", "since", "since when"),
        Binding("S", "line('since')", "type since when", key_display="S"),
        Binding("u", "sudo", "sudo on the nodes"),
        Binding("G", "guided", "guided / expert", key_display="G"),
        Binding("escape", "back", "back"),
        *(Binding(str(at), f"pick({at})", "go to that line", show=False) for at in range(1, 10)),
    ]

    def __init__(
        self,
        known: Knowledge,
        about: str,
        now: float,
        *,
        since: str | None = None,
        sudo: bool = False,
        guided: bool = False,
        starts: Sequence[str] = (),
        starter: str = "ssh config",
    ) -> None:
        """`starts`: local programs that `starter`, a configuration of the operator's, starts to reach the target."""
        super().__init__()
        self.starter = starter
        self.known, self.about, self.now = known, about, now
        self.since, self.sudo, self.guided = since or DEFAULT_SINCE, sudo, guided
        self.starts = tuple(starts)
        self.error_text = ""
        self.hint_below = False
        self.line_is = ""

    def compose(self) -> ComposeResult:
        yield TitleLine(safe(self.about, limit=200))
        yield Static(self._lead(), id="lead", markup=False)
        yield Choices()
        yield Static(id="why", markup=False)
        yield Static(id="settings", markup=False)
        yield TypedLine()
        yield KeyLine(
            ("Enter", "start"),
            ("e", "paste error"),
            ("s", "since"),
            ("u", "sudo"),
            ("G", "guided"),
            ("?", "help"),
            ("q", "quit"),
        )

    def _lead(self) -> Content:
        lines = [
            Content.assemble(
                ("What hurts?", "bold $primary"), "   Not sure? Take the last one: it looks at everything."
            ),
            Content("Nothing on the cluster is changed, whatever you choose."),
        ]
        lines += [
            Content.assemble((f"Your {self.starter} starts: ", "$warning"), safe(one, limit=300))
            for one in self.starts
        ]
        return Content("\n").join(lines)

    def on_mount(self) -> None:
        self.query_one("#line").display = False
        self.lay_out()

    def on_resize(self) -> None:
        self.lay_out()

    @property
    def words_here(self) -> str:
        """The text whose terms `?` explains: the question under the cursor, then the others."""
        row = self.query_one(Choices).current
        every = list(self.known.symptoms)
        first = [row.id] if row is not None and row.id else []
        shown = [self.known.symptoms[name] for name in dict.fromkeys([*first, *every])]
        near = " ".join((shown[0].asked, *shown[0].steps))
        return " ".join([near, *(f"{one.title} {one.hint}" for one in shown)])

    # How much of each symptom there is room for: its hint behind it, below it, or only that of the one under the cursor.

    def lay_out(self) -> None:
        symptoms, size = self.known.symptoms, self.app.size
        width = size.width - 4
        longest = max(len(one.hint) for one in symptoms.values())
        fixed = 7 + len(self.starts)
        self.hint_below = False
        below = max(len(self._why(name, width)) for name in symptoms)
        titles = max(len(one.title) for one in symptoms.values())
        inline = 9 + titles + longest <= size.width
        paired = not inline and size.height - fixed - below >= 2 * len(symptoms)
        if not inline and not paired:
            self.hint_below = True
            below += 1
        rows: list[Row] = []
        for at, (name, one) in enumerate(symptoms.items(), 1):
            hint = one.hint if inline else ""
            rows.append(Row(one.title, hint, id=name, mark=(str(at) if at < 10 else " ")))
            if paired:
                rows.append(Row(one.hint))
        # As high as the longest explanation: the list must not jump while the cursor moves.
        self.query_one("#why").styles.height = max(1, min(below, size.height - fixed - min(6, len(rows))))
        self.query_one(Choices).show(rows)
        self.draw()

    def _why(self, name: str, width: int) -> list[Content]:
        one = self.known.symptoms[name]
        lead = "Why this is asked: "
        first, *rest = hanging(one.asked, width, len(lead), 0)
        lines = [Content(one.hint)] if self.hint_below else []
        lines += [Content.assemble((lead, "bold"), first), *map(Content, rest)]
        if self.guided:
            for step in one.steps:
                lines += [
                    Content(f"· {line}" if at == 0 else line)
                    for at, line in enumerate(hanging(step, width, 2, 2))
                ]
        return lines

    def draw(self) -> None:
        parts = [
            ("since ", ""),
            (safe(self.since, limit=40), "bold"),
            ("   sudo on the nodes ", ""),
            ("yes" if self.sudo else "no", "bold"),
            ("   mode ", ""),
            ("guided" if self.guided else "expert", "bold"),
        ]
        if self.error_text:
            parts += [("   error ", ""), (safe(self.error_text, limit=60), "bold")]
        self.query_one("#settings", Static).update(Content.assemble(*parts))

    @on(Choices.Moved)
    def explain(self, message: Choices.Moved) -> None:
        lines = self._why(message.row.id or "", self.app.size.width - 4)
        self.query_one("#why", Static).update(Content("\n").join(lines))

    @on(Choices.Chosen)
    def start(self, message: Choices.Chosen) -> None:
        self.dismiss(Intake(message.row.id or "", self.error_text, self.since, self.sudo, self.guided))

    def action_pick(self, at: int) -> None:
        names = list(self.known.symptoms)
        if at <= len(names):
            self.query_one(Choices).land(names[at - 1])

    def action_since(self) -> None:
        at = SINCES.index(self.since) if self.since in SINCES else -1
        self.since = SINCES[(at + 1) % len(SINCES)]
        self.draw()

    def action_sudo(self) -> None:
        self.sudo = not self.sudo
        self.draw()

    def action_guided(self) -> None:
        self.guided = not self.guided
        self.lay_out()

    # The line at the bottom.

    def action_line(self, what: str) -> None:
        self.line_is = what
        box = self.query_one("#line", Input)
        box.display = True
        hints: Mapping[str, str] = {
            "error": "paste the exact error here · Enter finds its symptom · Esc leaves",
            "since": "2h, 30m, 3d or 2026-11-30T03:12Z · Enter takes it · Esc leaves",
        }
        box.placeholder = hints[what]
        box.value = self.error_text if what == "error" else self.since
        box.cursor_position = len(box.value)
        box.focus()

    @on(Input.Changed, "#line")
    def typing(self) -> None:
        self.query_one(TitleLine).unsay()

    @on(Input.Submitted, "#line")
    def submitted(self, message: Input.Submitted) -> None:
        text = message.value.strip()
        if self.line_is == "since":
            try:
                window(text, None, self.now)
            except UsageError as error:
                self.show_notice(Notice(str(error), bad=True))
                return
            self.since = text or DEFAULT_SINCE
        else:
            self._take_error(text)
        self._close_line()
        self.draw()

    def _take_error(self, text: str) -> None:
        self.error_text = text
        if not text:
            return
        # Comes with every rule and collector: not before there is an error to place.
        from straggler.engine.triage import symptom_of_error

        found = symptom_of_error(text, self.known)
        if found is not None and self.query_one(Choices).land(found):
            self.show_notice(
                Notice(f"this speaks of: {self.known.symptoms[found].title}; Enter starts there")
            )
        else:
            self.query_one(Choices).land("everything")
            self.show_notice(Notice("no symptom here knows this error; the last one looks at everything"))

    def action_back(self) -> None:
        if self.query_one("#line").display:
            self.query_one(TitleLine).unsay()
            self._close_line()
        else:
            self.dismiss(None)

    def _close_line(self) -> None:
        self.query_one("#line").display = False
        self.query_one(Choices).focus()

    def show_notice(self, notice: Notice) -> None:
        self.query_one(TitleLine).say(safe(notice.text, limit=300), bad=notice.bad)
