"""The findings, worst first, with what was not covered and the good news folded below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from straggler.engine.model import Finding
from straggler.tui.items import Board, Item, items, key_of
from straggler.tui.panes.lines import LinesPane, Piece


class FindingsPane(LinesPane):
    """Owns the list, its folding and its filter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "evidence", "evidence"),
        Binding("c", "recheck", "re-check"),
        Binding("a", "acknowledge", "acknowledge"),
    ]

    @dataclass
    class Chosen(Message):
        """Enter on a finding: show its remedy."""

        finding: Finding

    @dataclass
    class Moved(Message):
        """The cursor stands on this finding now, or on none."""

        finding: Finding | None

    @dataclass
    class EvidenceWanted(Message):
        finding: Finding

    @dataclass
    class RecheckWanted(Message):
        finding: Finding

    @dataclass
    class AcknowledgeWanted(Message):
        finding: Finding

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.board = Board()
        self.items: Sequence[Item] = ()
        self.wanted = ""
        self.opened: frozenset[str] = frozenset()

    def show(self, board: Board) -> None:
        """Replace everything at once; the cursor stays with its finding."""
        self.board = board
        self._arrange()

    def filter(self, wanted: str) -> None:
        self.wanted = wanted
        self._arrange()

    def _arrange(self) -> None:
        words = self.wanted.lower().split()
        # A filter looks into folded groups too, or it would miss what it was asked for.
        opened = self.opened | {"info", "pass", "acknowledged"} if words else self.opened
        every = items(self.board, opened, self.scrollable_content_region.width)
        if words:
            every = (one for one in every if one.haystack and all(word in one.haystack for word in words))
        self.items = tuple(every)
        self.replace([one.key for one in self.items])

    def on_resize(self) -> None:
        """Titles are wrapped to the width."""
        self._arrange()

    @property
    def finding(self) -> Finding | None:
        """The finding under the cursor."""
        return self.items[self.cursor].finding if self.cursor < len(self.items) else None

    @property
    def on_fold(self) -> bool:
        """The cursor stands on a line that unfolds or folds a group."""
        return self.cursor < len(self.items) and bool(self.items[self.cursor].opens)

    def select(self, finding: Finding) -> bool:
        """Put the cursor on a finding, unfolding the group it is in."""
        if not self.land(key_of(finding)):
            self.opened |= {"info", "pass", "acknowledged"}
            self._arrange()
            return self.land(key_of(finding))
        return True

    def height_of(self, at: int) -> int:
        return len(self.items[at].lines)

    def lands_on(self, at: int) -> bool:
        return self.items[at].lands

    def line_of(self, at: int, line: int, width: int) -> Sequence[Piece]:
        return self.items[at].lines[line]

    def tail_of(self, at: int, line: int) -> Sequence[Piece]:
        return self.items[at].tail if line == 0 else ()

    def moved(self, at: int) -> None:
        self.post_message(self.Moved(self.finding))

    def chosen(self, at: int) -> None:
        item = self.items[at]
        if item.opens:
            self.opened = self.opened ^ {item.opens}
            self._arrange()
        elif item.finding is not None:
            self.post_message(self.Chosen(item.finding))

    def action_evidence(self) -> None:
        if self.finding is not None:
            self.post_message(self.EvidenceWanted(self.finding))

    def action_recheck(self) -> None:
        if self.finding is not None:
            self.post_message(self.RecheckWanted(self.finding))

    def action_acknowledge(self) -> None:
        if self.finding is not None:
            self.post_message(self.AcknowledgeWanted(self.finding))
