"""The node list: thousands of nodes, one line each, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from straggler.tui.panes.lines import LinesPane, Piece, column
from straggler.tui.rows import SORTS, Row, matching

NAMES_FROM, PLACE_FROM = 64, 54
"""Columns from which further names, and places, stand beside a note; on less, the note has their room."""


class NodesPane(LinesPane):
    """Owns the rows, the sort order and the filter. What a choice leads to is the screen's business."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "sort", "sort")]

    @dataclass
    class Chosen(Message):
        """Enter on a node: show it."""

        node: str

    @dataclass
    class Moved(Message):
        """The cursor stands on this node now."""

        node: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.every: Sequence[Row] = ()
        self.rows: Sequence[Row] = ()
        self.sort = next(iter(SORTS))
        self.wanted = ""
        self._told: str | None = None

    def show(self, rows: Sequence[Row]) -> None:
        """Replace every row at once; the cursor stays with its node though the order changed."""
        self.every = rows
        self._arrange()

    def filter(self, wanted: str) -> None:
        self.wanted = wanted
        self._arrange()

    def action_sort(self) -> None:
        names = list(SORTS)
        self.sort = names[(names.index(self.sort) + 1) % len(names)]
        self._arrange()

    def _arrange(self) -> None:
        self.rows = sorted(matching(self.every, self.wanted), key=SORTS[self.sort])
        cards = [one.card for one in self.rows]
        self._name_width = min(26, max((len(one.name) for one in cards), default=0))
        self._names_width = min(20, max((len(one.names) for one in cards), default=0))
        self._place_width = min(20, max((len(one.place) for one in cards), default=0))
        self.replace([one.node for one in cards])

    @property
    def node(self) -> str | None:
        """The node under the cursor."""
        return self.rows[self.cursor].card.node if self.rows else None

    def line_of(self, at: int, line: int, width: int) -> Sequence[Piece]:
        row = self.rows[at]
        card, mark = row.card, row.mark
        pieces: list[Piece] = [
            (f"{mark.glyph} {mark.word:<4} ", mark.tone),
            (column(card.name, self._name_width), "strong" if mark.tone in ("fail", "warn") else ""),
        ]
        names, place = (
            (column(card.names, self._names_width), "quiet"),
            (column(card.place, self._place_width), "quiet"),
        )
        if not row.note:
            return [*pieces, names, place]
        if width >= NAMES_FROM + self._names_width:
            pieces.append(names)
        if width >= PLACE_FROM + self._place_width:
            pieces.append(place)
        return [
            *pieces,
            (row.note, "dim" if mark.tone == "quiet" else mark.tone if mark.tone == "unknown" else ""),
        ]

    def moved(self, at: int) -> None:
        if self.node is not None and self.node != self._told:
            self._told = self.node
            self.post_message(self.Moved(self.node))

    def chosen(self, at: int) -> None:
        self.post_message(self.Chosen(self.rows[at].card.node))
