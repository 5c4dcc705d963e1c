"""The main screen: nodes, probe output, findings and remedy of one session, side by side or one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from straggler.engine.acknowledge import Acks
from straggler.engine.model import Finding
from straggler.tui.headings import PANES
from straggler.tui.items import key_of
from straggler.tui.live import Live
from straggler.tui.messages import AnotherSymptom, Copy, Notice
from straggler.tui.panes.bars import Bar
from straggler.tui.panes.findings import FindingsPane
from straggler.tui.panes.guided import GuidedPane
from straggler.tui.panes.matrix import MatrixPane
from straggler.tui.panes.nodes import NodesPane
from straggler.tui.panes.output import OutputPane
from straggler.tui.panes.remedy import RemedyPane
from straggler.tui.panes.text import TextPane
from straggler.tui.remedies import Remedies
from straggler.tui.screens.matrix_keys import MatrixKeys
from straggler.tui.start import Start

WIDE, HIGH = 120, 30
"""Columns and rows from which panes stand side by side."""

ROOMY = 220
"""Columns from which a matrix has the node list beside it, too."""

BEAT, SLOW_BEAT = 0.25, 0.5
NOTICE_SECONDS = 6.0
REST_SECONDS = 0.12
"""How long the cursor must rest on a finding before its remedy is drawn beside it."""


class MainScreen(MatrixKeys):
    """Owns which pane is up and hands data to the panes; what keys do to the session is in SessionKeys, to the matrix in MatrixKeys."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(at), f"pane('{name}')", name, show=False) for at, name in enumerate(PANES, 1)),
        Binding("tab", "turn(1)", "next pane", show=False),
        Binding("shift+tab", "turn(-1)", "previous pane", show=False),
        Binding("slash", "filter", "filter"),
        Binding("escape", "back", "back"),
        Binding("r", "reread", "re-read this node"),
        Binding("R", "reread_unread", "re-read what is unread", key_display="R"),
        Binding("y", "copy", "copy"),
        Binding("p", "pause", "pause"),
        Binding("G", "guided", "guided / expert", key_display="G"),
    ]

    def __init__(self, live: Live, remedies: Remedies, *, start: Start, acks: Acks | None = None) -> None:
        super().__init__()
        self.live, self.remedies, self.acks = live, remedies, acks
        self.guided = start.guided
        self.active = "guided" if start.guided else "findings"
        self.state_dir = start.state_dir
        self._slow = start.low_bandwidth
        self._notice_timer: Timer | None = None
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Bar(id="title")
        yield Bar(id="crumbs")
        yield Bar(id="tabs")
        with Horizontal(id="body"):
            panes: list[tuple[str, Callable[..., Widget]]] = [
                ("nodes", NodesPane),
                ("symptom", TextPane),
                ("output", OutputPane),
                ("matrix", MatrixPane),
                ("findings", FindingsPane),
                ("guided", GuidedPane),
                ("remedy", RemedyPane),
            ]
            for name, kind in panes:
                with Vertical(id=f"{name}-side", classes="side"):
                    yield Bar(id=f"{name}-head", classes="head")
                    yield kind(id=name)
        yield Input(
            id="filter", placeholder="filter by any name, place or word · Enter keeps it · Esc clears it"
        )
        yield Bar(id="keys")

    def on_mount(self) -> None:
        self.filter_box.display = False
        self.begin()
        self.lay_out()
        self.beat()
        self.set_interval(SLOW_BEAT if self._slow else BEAT, self.beat)

    @property
    def words_here(self) -> str:
        """The text whose terms `?` explains: the matrix, or the remedy that is shown, then the findings."""
        if self.active == "matrix":
            return self.query_one(MatrixPane).plain
        remedy = self.query_one(RemedyPane).remedy
        findings = self.live.report.findings if self.live.report else ()
        shown = [remedy.finding] if remedy else []
        return " ".join(f"{one.title} {one.why} {one.false_alarm}" for one in (*shown, *findings))

    # Which pane is up.

    @property
    def wide(self) -> bool:
        return self.size.width >= WIDE and self.size.height >= HIGH

    @property
    def filter_box(self) -> Input:
        return self.query_one("#filter", Input)

    def lay_out(self) -> None:
        """Show the panes this size and mode have room for, and put the keys where the operator is."""
        if self.active not in ("nodes", "remedy", "guided"):
            self.middle = self.active
        wide, guided = self.wide, self.guided
        self.set_class(wide, "-wide")
        self.query_one("#tabs").display = not wide and not guided
        for name in (*PANES, "guided"):
            if guided:
                up = name == self.active or (wide and name in ("guided", "remedy"))
            else:
                up = name == self.active or (wide and name in self.beside)
            self.query_one(f"#{name}-side").display = up
        pane = self.query_one(f"#{self.active}")
        if not self.filter_box.has_focus:
            pane.focus(scroll_visible=False)
        self.draw_output()
        if not self.paused or self.query_one(MatrixPane).view is None:
            # A pane that was never drawn must not say that there is nothing, paused or not.
            self.draw_matrix()
        self.draw_bars()

    @property
    def beside(self) -> tuple[str, ...]:
        """The panes that stand side by side. A matrix has its own names of nodes: below `ROOMY` it takes the list's place."""
        if self.middle == "matrix" and self.size.width < ROOMY:
            return ("matrix", "remedy")
        return ("nodes", self.middle, "remedy")

    def go(self, name: str) -> None:
        if name != self.active:
            self.active = name
            self.filter_box.display = False
            # What was said belongs to the pane one left; its place is the new pane's keys.
            self.notice = None
        self.lay_out()

    def on_resize(self, event: events.Resize) -> None:
        self.lay_out()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        name = event.widget.id or ""
        if name in (*PANES, "guided") and name != self.active:
            self.active = name
            self.draw_bars()

    def action_pane(self, name: str) -> None:
        if self.guided:
            self.guided = False
        self.go(name)

    def action_turn(self, by: int) -> None:
        expert = ["nodes", self.middle, "remedy"] if self.wide else list(PANES)
        order = ["guided", "remedy"] if self.guided else expert
        at = order.index(self.active) if self.active in order else 0
        self.go(order[(at + by) % len(order)])

    def action_guided(self) -> None:
        self.guided = not self.guided
        self.go("guided" if self.guided else "findings")
        self.say("guided: one finding at a time" if self.guided else "expert: every pane, number keys 1 to 6")

    def action_back(self) -> None:
        """One step back: out of the filter, out of a remedy or an output; at the start, stop what is being gathered."""
        pane = self.query_one(f"#{self.active}")
        if self.filter_box.display or bool(getattr(pane, "wanted", "")):
            self.set_filter("")
        elif self.active == "remedy":
            self.go("guided" if self.guided else "findings")
        elif self.active in ("output", "matrix", "symptom"):
            self.go("findings")
        elif self.live.running:
            self.stop_reading()
        elif self.active == "nodes":
            self.go("findings")
        else:
            self.say("q leaves; everything read so far is kept")

    def action_pause(self) -> None:
        self.paused = not self.paused
        self.say("paused: what comes in is kept, the screen stands still" if self.paused else "live again")
        self.live.changed = True
        self.beat()

    # What panes say.

    @on(NodesPane.Chosen)
    def open_node(self, message: NodesPane.Chosen) -> None:
        self.show_node(message.node)
        self.go("output")

    @on(NodesPane.Moved)
    def follow_node(self, message: NodesPane.Moved) -> None:
        if self.middle == "output" and self.wide:
            self.show_node(message.node)

    @on(FindingsPane.Chosen)
    def open_finding(self, message: FindingsPane.Chosen) -> None:
        self.show_remedy(message.finding)
        self.go("remedy")

    @on(FindingsPane.Moved)
    def follow_finding(self, message: FindingsPane.Moved) -> None:
        """The keys follow the cursor at once; the remedy beside the list only when it rests."""
        self.draw_bars()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_SECONDS, self._rested)

    def _rested(self) -> None:
        finding = self.query_one(FindingsPane).finding
        if self.guided or finding is None:
            return
        shown = self.query_one(RemedyPane).remedy
        if self.active != "remedy" or shown is None or key_of(shown.finding) == key_of(finding):
            self.show_remedy(finding)

    @on(FindingsPane.EvidenceWanted)
    def open_evidence(self, message: FindingsPane.EvidenceWanted) -> None:
        self.show_evidence(message.finding)

    @on(FindingsPane.RecheckWanted)
    def recheck_finding(self, message: FindingsPane.RecheckWanted) -> None:
        self.recheck(message.finding)

    @on(FindingsPane.AcknowledgeWanted)
    def acknowledge_finding(self, message: FindingsPane.AcknowledgeWanted) -> None:
        self.acknowledge(message.finding)

    @on(RemedyPane.Asked)
    def asked_of_remedy(self, message: RemedyPane.Asked) -> None:
        doing: dict[str, Callable[[Finding], None]] = {
            "evidence": self.show_evidence,
            "recheck": self.recheck,
            "acknowledge": self.acknowledge,
        }
        doing[message.what](message.finding)

    @on(GuidedPane.Turned)
    def turn_guided(self, message: GuidedPane.Turned) -> None:
        self.turn_page(message.by)

    @on(GuidedPane.Opened)
    def open_guided(self, message: GuidedPane.Opened) -> None:
        finding = self.finding_on_page
        if finding is not None:
            self.show_remedy(finding)
            self.go("remedy")
        elif not self.live.running:
            self.action_pane("findings")

    @on(OutputPane.ScopeToggled)
    def toggle_scope(self) -> None:
        self.output_all = not self.output_all
        self.draw_output(force=True)
        self.draw_bars()

    def another_symptom(self) -> None:
        self.post_message(AnotherSymptom())

    def sort_nodes(self) -> None:
        self.query_one(NodesPane).action_sort()

    def recheck_chosen(self) -> None:
        self.query_one(FindingsPane).action_recheck()

    def acknowledge_chosen(self) -> None:
        self.query_one(FindingsPane).action_acknowledge()

    # The filter.

    def action_filter(self) -> None:
        pane = self.query_one(f"#{self.active}")
        if not hasattr(pane, "wanted"):
            self.say("nothing to filter here; 2, 3, 4 and 5 have lists")
            return
        box = self.filter_box
        box.display = True
        box.value = pane.wanted
        box.focus()

    @on(Input.Changed, "#filter")
    def filter_changed(self, message: Input.Changed) -> None:
        self._filter(message.value)

    @on(Input.Submitted, "#filter")
    def filter_kept(self) -> None:
        self.filter_box.display = False
        self.query_one(f"#{self.active}").focus()

    def set_filter(self, wanted: str) -> None:
        self.filter_box.value = wanted
        self.filter_box.display = False
        self._filter(wanted)
        self.query_one(f"#{self.active}").focus()

    def _filter(self, wanted: str) -> None:
        pane = self.query_one(f"#{self.active}")
        if isinstance(pane, NodesPane | FindingsPane | OutputPane | MatrixPane):
            pane.filter(wanted)
            self.draw_bars()

    # Notices.

    def say(self, text: str, *, bad: bool = False) -> None:
        self.show_notice(Notice(text, bad))

    def show_notice(self, notice: Notice) -> None:
        self.notice = notice
        if self._notice_timer is not None:
            self._notice_timer.stop()
        self._notice_timer = self.set_timer(NOTICE_SECONDS, self._unsay)
        self.draw_bars()

    def _unsay(self) -> None:
        self.notice = None
        self.draw_bars()

    def copy(self, text: str, what: str) -> None:
        self.post_message(Copy(text, what))
