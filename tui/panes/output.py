"""What the probes printed, word for word: of the chosen node, or of all nodes with equal replies folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from straggler.tui.panes.lines import LinesPane, Piece
from straggler.tui.replies import Line


class OutputPane(LinesPane):
    """Owns the lines and the place in them; the screen decides whose they are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "scope", "one/all nodes"),
        Binding("n", "reply(1)", "next reply", show=False),
        Binding("b", "reply(-1)", "previous reply", show=False),
    ]

    class ScopeToggled(Message):
        """Show all nodes instead of one, or the other way round."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.every: Sequence[Line] = ()
        self.lines: Sequence[Line] = ()
        self.wanted = ""

    def show(self, lines: Sequence[Line]) -> None:
        """Replace all lines at once; the cursor stays with its line of its reply."""
        self.every = lines
        self._arrange()

    def filter(self, wanted: str) -> None:
        self.wanted = wanted
        self._arrange()

    def _arrange(self) -> None:
        self.lines = self.every
        if words := self.wanted.lower().split():
            hits = {
                (one.block, one.number)
                for one in self.every
                if all(word in "".join(text for text, _ in one.pieces).lower() for word in words)
            }
            blocks = {block for block, _ in hits}
            self.lines = [
                one
                for one in self.every
                if (one.block, one.number) in hits or (one.head and one.block in blocks)
            ]
        self.replace([(one.block, one.number) for one in self.lines])

    def show_reply(self, collector: str, marked: frozenset[str] = frozenset()) -> None:
        """Move to a collector's reply: to its first marked line where there is one."""
        mine = [at for at, one in enumerate(self.lines) if one.block.split(" ", 1)[0] == collector]
        if mine:
            hit = next(
                (at for at in mine if self.lines[at].text.strip() in marked and self.lines[at].text.strip()),
                mine[0],
            )
            self.held = True
            self.cursor = hit
            self.scroll_to(
                y=max(0, mine[0] if hit - mine[0] < self.size.height else hit - 2), animate=False, force=True
            )

    @property
    def reply(self) -> str:
        """The text of the reply under the cursor, for copying."""
        if not self.lines:
            return ""
        block = self.lines[self.cursor].block
        return "\n".join(one.text for one in self.every if one.block == block and not one.head)

    def line_of(self, at: int, line: int, width: int) -> Sequence[Piece]:
        return self.lines[at].pieces

    def tail_of(self, at: int, line: int) -> Sequence[Piece]:
        return self.lines[at].tail

    def action_reply(self, by: int) -> None:
        heads = [at for at, one in enumerate(self.lines) if one.head]
        later = (
            [at for at in heads if at > self.cursor]
            if by > 0
            else [at for at in heads[::-1] if at < self.cursor]
        )
        if later:
            self.held = True
            self.cursor = later[0]
            self.scroll_to(y=later[0], animate=False, force=True)

    def action_scope(self) -> None:
        self.post_message(self.ScopeToggled())
