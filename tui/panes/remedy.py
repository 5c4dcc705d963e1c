"""What to do about a finding: its evidence, the section of the references, commands to run yourself, and the doubts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from straggler.engine.model import Finding, SuggestedCommand
from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe
from straggler.tui import glyphs
from straggler.tui.panes.lines import Piece
from straggler.tui.panes.text import Paragraph, TextPane

NOT_THIS = "Not this if"


@dataclass(frozen=True)
class Remedy:
    """A finding with its section rendered for it. `theirs`: the section is from the user's own config directory.

    `left_out`: commands that cannot be offered for these nodes, and why; `trouble`: why there is no section.
    """

    finding: Finding
    title: str = ""
    body: str = ""
    commands: tuple[SuggestedCommand, ...] = ()
    theirs: bool = False
    left_out: tuple[tuple[str, str], ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Sureness:
    """What a confidence means, in words: `word` and what to do with it."""

    word: str
    advice: str


def sureness(confidence: float) -> Sureness:
    """Bands of confidence; they are wording, not limits: nothing is decided by them."""
    if confidence >= 0.995:
        return Sureness("certain", "the reading itself says so")
    if confidence >= 0.9:
        return Sureness("very likely", "act on it once “not this if” is ruled out")
    if confidence >= 0.7:
        return Sureness("likely", "rule out “not this if” before you act")
    return Sureness("a hint", "confirm it by the next step before you act")


class RemedyPane(TextPane):
    """Owns one remedy and which of its commands is picked for copying (-1: none yet)."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "evidence", "evidence"),
        Binding("c", "recheck", "re-check"),
        Binding("a", "acknowledge", "acknowledge"),
        Binding("n", "pick(1)", "next command"),
        Binding("b", "pick(-1)", "previous command", show=False),
    ]

    @dataclass
    class Asked(Message):
        """A key that is about this finding: `evidence`, `recheck` or `acknowledge`."""

        what: str
        finding: Finding

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.remedy: Remedy | None = None
        self.picked = -1

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="text")
        yield Vertical(classes="section")
        yield Static("", markup=False, classes="commands")
        yield Static("", markup=False, classes="doubts")

    async def show_remedy(self, remedy: Remedy | None) -> None:
        """Another finding's remedy, from its top; the same one leaves the place alone."""
        if remedy == self.remedy:
            return
        same = bool(remedy and self.remedy and remedy.finding.id == self.remedy.finding.id)
        old = self.remedy.body if self.remedy else None
        self.remedy = remedy
        if not same:
            self.picked = -1
            self.scroll_home(animate=False)
        self.show(
            _head(remedy.finding)
            if remedy
            else [[("choose a finding, and what to do about it stands here", "quiet")]]
        )
        self.put(".doubts", _doubts(remedy) if remedy else [])
        self._draw_commands()
        if (body := remedy.body if remedy else "") != old:
            await self._draw_section(body)

    def draw(self) -> None:
        super().draw()
        if self.remedy is not None:
            self.put(".doubts", _doubts(self.remedy))
            self._draw_commands()

    async def _draw_section(self, body: str) -> None:
        holder = self.query_one(".section", Vertical)
        if not body:
            await holder.remove_children()
            return
        # Loaded here: the markdown parser must not hold up the first paint.
        from textual.widgets import Markdown

        found = holder.query(Markdown)
        if found:
            await found.first().update(body)
        else:
            await holder.mount(Markdown(body, open_links=False))

    def _draw_commands(self) -> None:
        commands = self.remedy.commands if self.remedy else ()
        self.query_one(".commands", Static).display = bool(commands)
        self.put(
            ".commands",
            [line for at, one in enumerate(commands) for line in _command(at, one, at == self.picked)],
        )

    @property
    def command(self) -> SuggestedCommand | None:
        commands = self.remedy.commands if self.remedy else ()
        return commands[self.picked] if commands and self.picked >= 0 else None

    def action_pick(self, by: int) -> None:
        if self.remedy and self.remedy.commands:
            last = len(self.remedy.commands) - 1
            self.picked = max(0, min(self.picked + by, last))
            self._draw_commands()
            self.scroll_to_widget(self.query_one(".commands"), animate=False, top=True)

    def action_evidence(self) -> None:
        self._ask("evidence")

    def action_recheck(self) -> None:
        self._ask("recheck")

    def action_acknowledge(self) -> None:
        self._ask("acknowledge")

    def _ask(self, what: str) -> None:
        if self.remedy is not None:
            self.post_message(self.Asked(what, self.remedy.finding))


def _head(one: Finding) -> list[Paragraph]:
    mark = glyphs.LEVELS[one.level]
    sure = sureness(one.confidence)
    priority = f"{one.priority.value} " if one.priority else ""
    lines: list[Paragraph] = [
        [(f"{priority}{mark.glyph} {mark.word}  ", mark.tone), (safe(one.title), "strong")],
        [("on ", "quiet"), (safe(fold(one.subjects), limit=400), "")],
        [
            ("sure ", "quiet"),
            (f"{one.confidence * 100:.0f}%: {sure.word}", ""),
            (f"; {sure.advice}", "quiet"),
        ],
        [],
    ]
    for names, detail in one.details[:8]:
        lines.append([(f"{safe(names, limit=200)}: ", "quiet"), (safe(detail, limit=400), "")])
    if one.evidence:
        lines += [[], [("Evidence", "brand")]]
        for line in one.evidence:
            lines.append(
                [
                    ("│ ", "quiet"),
                    (f"{safe(line.source, limit=100)}  ", "quiet"),
                    (safe(line.text, limit=400), ""),
                ]
            )
    return [*lines, [], [("Why it matters  ", "brand"), (one.why, "")]]


def _command(at: int, one: SuggestedCommand, picked: bool) -> list[Paragraph]:
    lead: Piece = (f"{glyphs.POINTER} " if picked else "  ", "busy")
    lines: list[Paragraph] = [
        [lead, ("Run this yourself", "brand"), ("   y copies it" if picked else "   n picks it", "quiet")],
        [lead, ("$ ", "quiet"), (safe(one.command), "strong")],
    ]
    for word, text in (
        ("Before", one.preconditions),
        ("Affects", one.blast_radius),
        ("Undo", one.undo),
        ("Managed by code?", getattr(one, "iac", "")),
        ("Note", one.note),
    ):
        if text:
            lines.append([lead, (f"{word}  ", "quiet"), (safe(text), "")])
    return [*lines, []]


def _doubts(remedy: Remedy) -> list[Paragraph]:
    one = remedy.finding
    lines: list[Paragraph] = []
    if remedy.trouble:
        lines.append([(safe(remedy.trouble, limit=400), "fail")])
    for command, why in remedy.left_out:
        lines.append([("Not offered  ", "quiet"), (safe(command), ""), (f": {safe(why)}", "quiet")])
    # Where the section says when it is something else, it says it in full; once is enough.
    false_alarm = "" if NOT_THIS in remedy.body else one.false_alarm
    for word, text in (
        (NOT_THIS, false_alarm),
        ("Next", one.next_step),
        ("AWS's own guide", one.route),
    ):
        if text:
            lines += [[(f"{word}  ", "brand"), (text, "")]]
    source = f"{one.reference}{'  (from your own config directory)' if remedy.theirs else ''}"
    return [
        *lines,
        [("Section  ", "brand"), (source, "quiet")],
        [("Finding  ", "brand"), (", ".join((one.id, *one.also)), "quiet")],
    ]
