"""How the session's state gets onto the panes: a beat a few times a second, and drawing only what changed and is seen."""

from __future__ import annotations

from textual.screen import Screen

from straggler.engine.model import Finding, Observation
from straggler.engine.safetext import safe
from straggler.tui import glyphs, guidance, headings, replies
from straggler.tui.items import Board, key_of
from straggler.tui.live import Live
from straggler.tui.messages import Notice
from straggler.tui.panes.bars import Bar
from straggler.tui.panes.findings import FindingsPane
from straggler.tui.panes.guided import GuidedPane
from straggler.tui.panes.lines import Piece
from straggler.tui.panes.matrix import MatrixPane
from straggler.tui.panes.nodes import NodesPane
from straggler.tui.panes.output import OutputPane
from straggler.tui.panes.remedy import Remedy, RemedyPane
from straggler.tui.panes.text import TextPane
from straggler.tui.remedies import Remedies
from straggler.tui.screens.keys import keys_of


class Views(Screen[None]):
    """The drawing half of the main screen."""

    live: Live
    remedies: Remedies
    guided = False
    active = "findings"
    middle = "findings"
    paused = False
    notice: Notice | None = None
    output_node: str | None = None
    output_all = False
    marked: frozenset[str] = frozenset()
    page: tuple[str, ...] | None = None
    _drawn: object = None
    _board: Board | None = None

    @property
    def wide(self) -> bool:
        raise NotImplementedError

    @property
    def standing(self) -> bool:
        """False once the screen is being taken down: work that comes back then has nobody to show itself to."""
        return self.is_running and self.is_attached and bool(self.query("#keys"))

    # The beat.

    def beat(self) -> None:
        """Once in a while: hand over what changed. Never per event."""
        if not self.standing:
            return
        live = self.live
        if live.changed and not self.paused:
            live.changed = False
            self.query_one(NodesPane).show(live.rows())
            self.draw_board()
            self.draw_matrix()
            self.draw_output()
            self.draw_guided()
        self.draw_symptom()
        self.draw_bars()

    def draw_board(self) -> None:
        report, live = self.live.report, self.live
        acknowledged = self.acknowledged(report.findings) if report else {}
        progress = live.progress
        board = Board(
            report.findings if report else (),
            report.uncovered if report else (),
            report.nodes_read if report else 0,
            progress.total,
            live.running,
            acknowledged,
            live.rechecks,
            live.trouble,
        )
        if board != self._board:
            self._board = board
            self.query_one(FindingsPane).show(board)

    def acknowledged(self, findings: tuple[Finding, ...]) -> dict[tuple[str, ...], str]:
        raise NotImplementedError

    # Output.

    @property
    def chosen_node(self) -> str | None:
        """The node that was opened, else the one the list stands on."""
        return self.output_node or self.query_one(NodesPane).node

    def show_node(self, node: str) -> None:
        """Show one node's replies."""
        self.output_node, self.output_all = node, False
        self.draw_output()

    def draw_output(self, *, force: bool = False) -> None:
        """Only when it is on the screen, and only when a reply it shows is new."""
        pane = self.query_one(OutputPane)
        if not self.query_one("#output-side").display:
            return
        node = self.chosen_node
        every_reply = self.live.diagnosis.seen
        seen = every_reply.get(node or "", {})
        stamp = (
            self.output_all,
            node,
            self.marked,
            self.live.revision if self.output_all else tuple(seen.values()),
        )
        if stamp == self._drawn and not force:
            return
        self._drawn = stamp
        order = [one.id for one in self.live.diagnosis.plan.collectors]
        if self.output_all:
            every = {name: dict(replies_of) for name, replies_of in every_reply.items()}
            self.run_worker(self._draw_all(every, order), group="output", exclusive=True)
        else:
            pane.show(tuple(replies.of_node(dict(seen), order, self.marked)))

    async def _draw_all(self, seen: dict[str, dict[str, Observation]], order: list[str]) -> None:
        marked = self.marked
        lines = await self.live.beside(lambda: tuple(replies.of_all(seen, order, marked)))
        if self.standing:
            self.query_one(OutputPane).show(lines)

    def draw_matrix(self) -> None:
        """Only when it is on the screen: to arrange half a million pairs costs a few hundredths of a second."""
        if self.query_one("#matrix-side").display:
            self.query_one(MatrixPane).show(self.live.matrix)

    # Remedy.

    def show_remedy(self, finding: Finding) -> None:
        self.run_worker(self._show_remedy(finding), group="remedy", exclusive=True)

    async def _show_remedy(self, finding: Finding) -> None:
        remedy = await self.live.beside(lambda: self.remedies.of(finding, self.live.diagnosis.nodes))
        if self.standing:
            await self.query_one(RemedyPane).show_remedy(remedy)
            self.draw_bars()

    # Guided and symptom.

    def draw_symptom(self) -> None:
        if self.query_one("#symptom-side").display:
            one = self.live.diagnosis
            page = guidance.symptom_page(self.live, one.known.symptoms[one.plan.symptom], self.live.answered)
            self.query_one("#symptom", TextPane).show(page)

    def draw_guided(self) -> None:
        if not self.guided:
            return
        pane, live = self.query_one(GuidedPane), self.live
        one = live.diagnosis
        found = guidance.causes(live.report)
        if live.running and not found:
            pane.show(guidance.gathering_page(live, one.known.symptoms[one.plan.symptom], self.live.answered))
        elif found and live.report is not None:
            at = next((at for at, finding in enumerate(found) if key_of(finding) == self.page), 0)
            self.page = key_of(found[at])
            pane.show(guidance.finding_page(found, at, live.report))
            if self.wide:
                self.show_remedy(found[at])
        else:
            pane.show(guidance.no_finding_page(live.report))

    def turn_page(self, by: int) -> None:
        found = guidance.causes(self.live.report)
        if found:
            at = next((at for at, finding in enumerate(found) if key_of(finding) == self.page), 0)
            self.page = key_of(found[max(0, min(at + by, len(found) - 1))])
            self.query_one(GuidedPane).scroll_home(animate=False)
            self.draw_guided()

    @property
    def finding_on_page(self) -> Finding | None:
        found = guidance.causes(self.live.report)
        return next((one for one in found if key_of(one) == self.page), found[0] if found else None)

    # Bars.

    def draw_bars(self) -> None:
        if not self.standing:
            return
        live, width = self.live, self.size.width
        report = live.report
        faults = sum(one.level.is_fault for one in report.findings) if report else 0
        symptom = live.diagnosis.known.symptoms[live.diagnosis.plan.symptom].title
        remedy: Remedy | None = self.query_one(RemedyPane).remedy
        section = remedy.finding.reference.removeprefix("remedies/") if remedy else ""
        self.query_one("#title", Bar).show(*headings.title_bar(live, width))
        waiting: list[Piece] = [(headings.waiting_for(live.progress) + " ", "quiet")] if live.running else []
        if self.paused:
            waiting = [("PAUSED ", "warn")]
        crumbs = headings.breadcrumb(live, symptom, faults, section, self.active, self.wide)
        self.query_one("#crumbs", Bar).show(crumbs, waiting if self.wide else [])
        about = self.heading(self.active)
        tabs = headings.tabs(self.active)
        while about and sum(len(text) for text, _ in (*tabs, *about)) >= width:
            # The keys matter more than a long id, which the remedy has in its last line, too.
            about.pop()
        self.query_one("#tabs", Bar).show(tabs, about)
        for at, name in enumerate(headings.PANES, 1):
            tone = "here" if name == self.active else "strong"
            left: list[Piece] = [(f" {at} {name.capitalize()} ", tone)]
            self.query_one(f"#{name}-head", Bar).show(left, self.heading(name))
        self.query_one("#guided-head", Bar).show(
            [(" Guided ", "here" if self.active == "guided" else "strong")]
        )
        self._draw_keys(width, [] if self.wide else waiting)

    def _draw_keys(self, width: int, waiting: list[Piece]) -> None:
        bar = self.query_one("#keys", Bar)
        if self.notice is not None:
            bar.show([(f" {safe(self.notice.text, limit=400)}", "fail" if self.notice.bad else "strong")])
        elif self.live.trouble:
            bar.show([(f" {safe(self.live.trouble, limit=400)}", "fail")])
        else:
            room = width - sum(len(text) for text, _ in waiting)
            on_fold = self.active == "findings" and self.query_one(FindingsPane).on_fold
            bar.show(keys_of(self.active, room, running=self.live.running, on_fold=on_fold), waiting)

    def heading(self, name: str) -> list[Piece]:
        """What stands on the right of a pane's head."""
        filtered = getattr(self.query_one(f"#{name}"), "wanted", "")
        said: list[Piece] = [(f"/{safe(filtered, limit=30)} ", "busy")] if filtered else []
        if name == "nodes":
            pane = self.query_one(NodesPane)
            shown = f"{len(pane.rows):,} of " if filtered else ""
            return [*said, (f"{shown}{len(pane.every):,}  ", "strong"), *headings.node_counts(pane.every)]
        if name == "output":
            every = "all nodes, alike folded" if self.wide else "all nodes"
            who = every if self.output_all else safe(self.chosen_node or "", limit=40)
            return [*said, (f"{who} ", "strong")]
        if name == "matrix":
            return [*said, *headings.matrix_counts(self.live.matrix)]
        if name == "findings":
            return [*said, *headings.coverage(self.live.report)]
        if name == "remedy":
            remedy = self.query_one(RemedyPane).remedy
            return [(f"{remedy.finding.id} ", "quiet")] if remedy else []
        return [(f"{glyphs.INFO.glyph} {len(self.live.diagnosis.plan.collectors)} readings ", "quiet")]
