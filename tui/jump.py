"""Going straight to any symptom, node or finding by typing part of its name into the palette."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.command import Hit, Hits, Provider
from textual.content import Content

from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe
from straggler.tui.messages import AnotherSymptom
from straggler.tui.panes.findings import FindingsPane
from straggler.tui.panes.nodes import NodesPane
from straggler.tui.screens.choices import Choices
from straggler.tui.screens.intake import IntakeScreen
from straggler.tui.screens.main import MainScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from straggler.engine.model import Finding

MOST = 50
"""Hits shown of one kind: who types a whole name finds it first, who types `w` gets no list of a thousand."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place to go. `haystack`: every name it answers to, lower case."""

    kind: str
    title: str
    note: str
    haystack: str
    go: Callable[[], object]


class Jump(Provider):
    """Matches whole words in any order, names first; nothing typed, nothing offered."""

    async def startup(self) -> None:
        self.places = tuple(places(self.screen))

    async def search(self, query: str) -> Hits:
        words = query.lower().split()
        shown: dict[str, int] = {}
        for place in self.places:
            if not all(word in place.haystack for word in words):
                continue
            shown[place.kind] = shown.get(place.kind, 0) + 1
            if shown[place.kind] > MOST:
                continue
            yield Hit(
                _score(place, query.lower()),
                Content.assemble((f"{place.kind} ", "$primary"), (place.title, "bold"), f"  {place.note}"),
                place.go,
                text=place.title,
            )


def _score(place: Place, query: str) -> float:
    """The name typed whole, then names that begin with it, then the rest; always above a chance likeness to a command."""
    title = place.title.lower()
    return 10.0 if title == query else 5.0 if title.startswith(query) else 2.0


def places(screen: object) -> Iterator[Place]:
    if isinstance(screen, IntakeScreen):
        for name, one in screen.known.symptoms.items():
            land = partial(screen.query_one(Choices).land, name)
            yield Place("symptom", one.title, one.hint, f"{one.title} {one.hint} {name}".lower(), land)
    if isinstance(screen, MainScreen):
        yield from _of_session(screen)


def _of_session(screen: MainScreen) -> Iterator[Place]:
    report = screen.live.report
    for finding in report.findings if report is not None else ():
        title, where = safe(finding.title, limit=120), safe(fold(finding.subjects), limit=60)
        words = f"{title} {finding.id} {finding.level.value} {' '.join(finding.subjects)}"
        yield Place("finding", title, where, safe(words, limit=4000).lower(), partial(_open, screen, finding))
    for row in screen.live.rows():
        card = row.card
        note = f"{row.mark.word}  {card.names}"
        yield Place("node", card.name, note, card.haystack, partial(_show, screen, card.node))
    if not screen.live.recording:
        for name, one in screen.live.diagnosis.known.symptoms.items():
            words = f"{one.title} {one.hint} {name}".lower()
            yield Place(
                "symptom",
                one.title,
                "read for it, as another session",
                words,
                partial(screen.post_message, AnotherSymptom(name)),
            )


def _open(screen: MainScreen, finding: Finding) -> None:
    screen.guided = False
    pane = screen.query_one(FindingsPane)
    if not pane.select(finding):
        pane.filter("")
        pane.select(finding)
    screen.show_remedy(finding)
    screen.go("remedy")


def _show(screen: MainScreen, node: str) -> None:
    screen.guided = False
    pane = screen.query_one(NodesPane)
    if not pane.land(node):
        pane.filter("")
        pane.land(node)
    screen.show_node(node)
    screen.go("output")
