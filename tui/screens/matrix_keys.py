"""What keys do in the matrix: from a cell to the remedy of its verdict or to its node, and onto disk."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.model import Kind
from straggler.engine.model import Finding
from straggler.engine.safetext import safe
from straggler.tui.matrix_cell import FINDINGS, IN_DOUBT
from straggler.tui.panes.matrix import MatrixPane
from straggler.tui.panes.nodes import NodesPane
from straggler.tui.screens.session_keys import SessionKeys

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Blame
    from straggler.engine.bandwidth.view import MatrixView


class MatrixKeys(SessionKeys):
    """The matrix's part of the main screen."""

    @on(MatrixPane.Chosen)
    def open_cell(self, message: MatrixPane.Chosen) -> None:
        """The remedy of its verdict or doubt where the session has that finding, else the node of the row."""
        finding = self.finding_of(message.blame) if message.blame is not None else None
        if finding is None and message.in_doubt:
            finding = self.doubt_of(message.pair)
        node = message.pair[0]
        if finding is not None:
            self.show_remedy(finding)
            self.go("remedy")
        elif self.query_one(NodesPane).land(node):
            self.show_node(node)
            self.go("output")
        else:
            self.say(f"{safe(node, limit=60)} is no node of this target: only its results were read")

    @on(MatrixPane.ExportWanted)
    def export_matrix(self, message: MatrixPane.ExportWanted) -> None:
        self.run_worker(self.write_matrix(message.view), group="export", exclusive=True)

    def export_chosen(self) -> None:
        self.query_one(MatrixPane).action_export()

    def finding_of(self, blame: Blame) -> Finding | None:
        """The finding of this session that says what a verdict says."""
        found = self.live.report.findings if self.live.report else ()
        mine = [one for one in found if one.id in FINDINGS[blame.kind] and one.level.is_fault]
        if blame.kind in (Kind.NODE, Kind.LINK):
            mine = [one for one in mine if set(blame.subjects) & set(one.subjects)]
        # Several boundaries are several findings of one id; a finding is titled as its verdict is told.
        said = telling.headline(blame)
        return next((one for one in mine if said in one.title), mine[0] if mine else None)

    def doubt_of(self, pair: tuple[str, str]) -> Finding | None:
        """The finding of this session that says this pair is to be repeated."""
        found = self.live.report.findings if self.live.report else ()
        return next((one for one in found if one.id in IN_DOUBT and set(pair) <= set(one.subjects)), None)

    async def write_matrix(self, view: MatrixView) -> None:
        """Every format at once, beside the event loop; the notice says where."""
        from straggler.engine.export import matrix_files

        try:
            where = await self.live.beside(
                partial(matrix_files.write, view, self.state_dir, self.live.clock())
            )
        except OSError as error:
            self.say(f"the matrix could not be written: {error.strerror or error}", bad=True)
            return
        self.say(f"written: {where} (.svg .csv .json .txt)")
