"""The node list as data: one frozen row per node, made of what the engine says, safe to draw.

What never changes of a node (its names, its place) is prepared once; a row is made anew only when its node changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from straggler.engine.diagnosis import NodeState
from straggler.engine.judge import Report
from straggler.engine.model import Finding, Level, Node
from straggler.engine.safetext import SafeText, safe
from straggler.tui import glyphs
from straggler.tui.glyphs import Mark


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of a node before it is read. `haystack`: every name it answers to, lower case, for the filter."""

    node: str
    number: int
    name: SafeText
    names: SafeText
    place: SafeText
    haystack: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the node list."""

    card: Card
    mark: Mark
    note: SafeText


def cards(nodes: Sequence[Node]) -> tuple[Card, ...]:
    return tuple(_card(number, node) for number, node in enumerate(nodes))


def _card(number: int, node: Node) -> Card:
    where = node.placement
    place = " ".join(
        filter(None, [where.az, where.layers[-1] if where.layers else where.block, where.ultraserver])
    )
    words = [node.id, *node.names, node.group, node.instance_type or "", place]
    return Card(
        node.id,
        number,
        safe(node.id, limit=80),
        safe(" ".join(node.names), limit=120),
        safe(place, limit=60),
        safe(" ".join(words), limit=600).lower(),
    )


ORDER: Mapping[Mark, int] = {
    mark: at
    for at, mark in enumerate(
        (glyphs.FAIL, glyphs.WARN, glyphs.UNKNOWN, glyphs.READING, glyphs.WAITING, glyphs.INFO, glyphs.OK)
    )
}

SORTS: Mapping[str, Callable[[Row], Any]] = {
    "worst first": lambda row: (ORDER[row.mark], row.card.number),
    "by name": lambda row: (row.card.name, row.card.number),
    "by place": lambda row: (row.card.place, row.card.number),
}


def row(card: Card, state: NodeState, level: Level | None, note: str, why: str) -> Row:
    """A node is judged once it has ended; until then its row says what it is doing, unless a fault is known already."""
    if state is NodeState.ENDED:
        mark = glyphs.LEVELS[level or Level.UNKNOWN]
    elif level is not None and level.is_fault:
        mark = glyphs.LEVELS[level]
    else:
        mark = glyphs.READING if state is NodeState.READING else glyphs.WAITING
    said = note or (why if mark is not glyphs.OK else "")
    return Row(card, mark, safe(said, limit=200))


def notes(findings: Iterable[Finding]) -> dict[str, str]:
    """The worst thing known of each node, and how many more there are. Findings come worst first."""
    first: dict[str, str] = {}
    more: Counter[str] = Counter()
    for one in findings:
        if one.level.is_fault or (one.level is Level.UNKNOWN and one.rule == "reachability"):
            for node in one.subjects:
                if node in first:
                    more[node] += 1
                else:
                    first[node] = one.title
    return {node: f"{text} +{more[node]}" if more[node] else text for node, text in first.items()}


def counts(rows: Iterable[Row]) -> tuple[tuple[Mark, int], ...]:
    """How many nodes stand at each mark, worst first; what waits and what is being read are one."""
    found = Counter(glyphs.WAITING if row.mark is glyphs.READING else row.mark for row in rows)
    return tuple((mark, found[mark]) for mark in ORDER if found[mark])


def matching(rows: Sequence[Row], wanted: str) -> Sequence[Row]:
    """Rows whose names, place or note hold every word of the filter."""
    words = wanted.lower().split()
    if not words:
        return rows
    return [
        one for one in rows if all(word in one.card.haystack or word in one.note.lower() for word in words)
    ]


def levels_of(report: Report | None) -> Mapping[str, Level]:
    return {} if report is None else report.levels
