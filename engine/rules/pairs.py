"""What pairwise runs say of nodes, links, boundaries and the fleet, as findings beside those of the nodes' own readings.

A fleet rule: the verdicts are made over all pairs at once (engine/bandwidth); here they become findings with their sections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.model import Blame, Kind, RunState, Standing
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Finding, Level, Node
from straggler.engine.nodesets import fold
from straggler.engine.rules.fleet import fleet_finding

if TYPE_CHECKING:
    from straggler.engine.bandwidth.view import MatrixView

ID = "pairs"
FINDS = (
    "bandwidth.slow-node",
    "bandwidth.slow-alone",
    "bandwidth.node-failed",
    "bandwidth.slow-link",
    "bandwidth.slow-boundary",
    "bandwidth.slow-cluster",
    "bandwidth.repeat-pair",
    "bandwidth.pair-failed",
    "bandwidth.implausible",
    "bandwidth.too-small",
    "bandwidth.even",
    "bandwidth.not-covered",
)
SOURCE = "pairwise runs"
SHOWN = 8
"""Lines of evidence and detail a finding carries; the matrix has the rest."""


def pair_findings(view: MatrixView, nodes: Sequence[Node], known: Knowledge) -> list[Finding]:
    """Findings of one matrix. Subjects are nodes of `nodes` or, where a log names others, those."""
    if not view.matrix.nodes:
        return []
    return [
        *_verdicts(view, known),
        *_worse(view, known),
        *_doubts(view, known),
        *_even(view, known),
        *_open(view, nodes, known),
    ]


def nothing_measured(nodes: Sequence[Node], known: Knowledge) -> list[Finding]:
    """Said where uneven speed is asked about and no pairwise run is at hand: the hosts alone cannot rule a slow pair out."""
    names = tuple(node.id for node in nodes)
    if len(names) < 2:
        return []
    title = "no pairwise bandwidth was measured: a node that is slow only together with others would not show"
    return [_finding("bandwidth.not-covered", Level.INFO, title, names, (), (), 1.0, known)]


# Verdicts.


def _verdicts(view: MatrixView, known: Knowledge) -> Iterator[Finding]:
    failed = [one for one in view.attribution.verdicts if _kind(one) == "bandwidth.node-failed"]
    if len(failed) > 1:
        yield _failed_nodes(failed, known)
    for blame in view.attribution.verdicts:
        if len(failed) > 1 and blame in failed:
            continue
        level = Level.FAIL if blame.effect is None or blame.kind is Kind.CLUSTER else Level.WARN
        nodes = _subjects(blame, view)
        details = [(fold(nodes), blame.why)]
        if blame.next_pair is not None:
            details.append((fold(nodes), f"to confirm it, run {telling.next_pair(blame.next_pair)}"))
        yield _finding(
            _kind(blame),
            level,
            telling.headline(blame)
            + (f" ({telling.percent(blame.effect)})" if blame.effect is not None else ""),
            nodes,
            tuple(details),
            blame.evidence[:SHOWN],
            blame.confidence,
            known,
        )


def _failed_nodes(failed: Sequence[Blame], known: Knowledge) -> Finding:
    """Nodes that fail with everybody are one finding: the reason is likely one."""
    return _finding(
        "bandwidth.node-failed",
        Level.FAIL,
        f"every pairwise run of {len(failed)} nodes failed",
        tuple(node for one in failed for node in one.subjects),
        tuple((fold(one.subjects), one.why) for one in failed[:SHOWN]),
        [line for one in failed for line in one.evidence[:2]][:SHOWN],
        min(one.confidence for one in failed),
        known,
    )


def _kind(blame: Blame) -> str:
    if blame.kind is Kind.NODE:
        if blame.effect is None:
            return "bandwidth.node-failed"
        return "bandwidth.slow-alone" if blame.alone else "bandwidth.slow-node"
    return {
        Kind.LINK: "bandwidth.slow-link",
        Kind.BOUNDARY: "bandwidth.slow-boundary",
        Kind.CLUSTER: "bandwidth.slow-cluster",
    }[blame.kind]


def _subjects(blame: Blame, view: MatrixView) -> tuple[str, ...]:
    """The nodes a verdict is about; of a boundary those on its smaller side, of the fleet those that are slow or all that were run."""
    if blame.kind in (Kind.NODE, Kind.LINK):
        return blame.subjects
    matrix = view.matrix
    if blame.kind is Kind.CLUSTER:
        standings = view.attribution.standings
        if slow := tuple(node for node in matrix.nodes if standings.get(node) is Standing.CULPRIT):
            return slow
        return _ran(view)
    from straggler.engine.bandwidth.placement import boundaries

    sides: dict[str, list[str]] = {label: [] for label in blame.subjects}
    for node in matrix.nodes:
        place = view.placements.get(node)
        for level, name in boundaries(place) if place is not None else ():
            for label in (f"{level}:{name}", f"{level}:*"):
                if label in sides:
                    sides[label].append(node)
    held: list[list[str]] = [nodes for nodes in sides.values() if nodes]
    return tuple(sorted(held, key=len)[0]) if held else ()


def _ran(view: MatrixView) -> tuple[str, ...]:
    matrix = view.matrix
    ran = {int(one) for one in (*matrix.a.tolist(), *matrix.b.tolist())}
    return tuple(node for at, node in enumerate(matrix.nodes) if at in ran)


def _worse(view: MatrixView, known: Knowledge) -> Iterator[Finding]:
    """A fleet that is slower than it was itself, where its type's expectation does not say so already."""
    change = telling.since(view)
    called = any(one.kind is Kind.CLUSTER for one in view.attribution.verdicts)
    if change is None or called or view.earlier is None or change > -known.number("bandwidth.effect") / 100:
        return
    unit, usual = telling.unit(view.matrix), view.attribution.usual or 0.0
    then = datetime.fromtimestamp(view.earlier.at, timezone.utc).strftime("%Y-%m-%d %H:%MZ")
    detail = (
        f"{telling.number(usual)} {unit} now, {telling.number(view.earlier.usual)} {unit} at {then} "
        f"(session {view.earlier.session})"
    )
    yield _finding(
        "bandwidth.slow-cluster",
        Level.WARN,
        f"the fleet is slower than in its own earlier sweep ({telling.percent(change)})",
        _ran(view),
        (("all", detail),),
        (),
        0.8,
        known,
    )


# What proves nothing yet.


def _doubts(view: MatrixView, known: Knowledge) -> Iterator[Finding]:
    low = [one for one in view.attribution.doubts if one.effect is not None]
    failed = [one for one in view.attribution.doubts if one.effect is None]
    if low:
        many = "one low run proves" if len(low) == 1 else f"{len(low)} low runs prove"
        yield _finding(
            "bandwidth.repeat-pair",
            Level.INFO,
            f"{many} nothing yet and should be repeated alone",
            _of_pairs([one.pair for one in low]),
            tuple((_pair(one.pair), one.why) for one in low[:SHOWN]),
            (),
            1.0,
            known,
        )
    if failed:
        many = "one run" if len(failed) == 1 else f"{len(failed)} runs"
        yield _finding(
            "bandwidth.pair-failed",
            Level.UNKNOWN,
            f"{many} ended without a value, which no node or boundary explains",
            _of_pairs([one.pair for one in failed]),
            tuple((_pair(one.pair), one.why) for one in failed[:SHOWN]),
            (),
            1.0,
            known,
        )
    high = (
        [cell for cell in view.matrix.cells() if cell.state is RunState.IMPLAUSIBLE]
        if _any_high(view)
        else []
    )
    if high:
        yield _finding(
            "bandwidth.implausible",
            Level.UNKNOWN,
            "values above what the wire can carry are not believed",
            _of_pairs([(cell.a, cell.b) for cell in high]),
            tuple(
                (_pair((cell.a, cell.b)), next((r.why for r in cell.runs if r.why), ""))
                for cell in high[:SHOWN]
            ),
            (),
            0.99,
            known,
        )


def _any_high(view: MatrixView) -> bool:
    from straggler.engine.bandwidth.matrix import STATES

    return bool((view.matrix.state == STATES.index(RunState.IMPLAUSIBLE)).any())


def _pair(pair: tuple[str, str]) -> str:
    return pair[0] if pair[0] == pair[1] else f"{pair[0]} × {pair[1]}"


def _of_pairs(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for pair in pairs for node in pair))


# Good news, and what is open.


def _even(view: MatrixView, known: Knowledge) -> Iterator[Finding]:
    found = view.attribution
    fine = tuple(node for node in view.matrix.nodes if found.standings.get(node) is Standing.CLEARED)
    if found.verdicts or not fine or found.median is None:
        return
    matrix = view.matrix
    detail = f"{len(matrix):,} pairs at {telling.size(matrix.size)}, median {telling.number(found.median)} {telling.unit(matrix)}"
    yield _finding(
        "bandwidth.even",
        # Below a certain message size all nodes are alike, whatever is wrong with them.
        Level.INFO if view.too_small else Level.PASS,
        f"the nodes are as fast as each other{_beside_type(view)}",
        fine,
        ((fold(fine), detail),),
        (),
        0.95,
        known,
    )


def _beside_type(view: MatrixView) -> str:
    """What the type's expectation adds to good news; a level that misses it by too little for a verdict is not said to meet it."""
    usual, low, high = view.attribution.usual, view.expected.low, view.expected.high
    if usual is None or low is None or high is None:
        return ""
    slow = usual > high if view.matrix.metric.lower_is_better else usual < low
    return ", but below what their type should reach" if slow else " and as fast as their type should be"


def _open(view: MatrixView, nodes: Sequence[Node], known: Knowledge) -> Iterator[Finding]:
    if view.too_small:
        yield _finding(
            "bandwidth.too-small",
            Level.INFO,
            f"messages of {telling.size(view.matrix.size)} are too small to judge bandwidth by",
            tuple(view.matrix.nodes),
            (),
            (),
            0.95,
            known,
        )
    if view.attribution.notes:
        yield _finding(
            "bandwidth.not-covered",
            Level.INFO,
            "what the pairwise runs leave open",
            tuple(view.matrix.nodes),
            tuple(("all", note) for note in view.attribution.notes[:SHOWN]),
            (),
            1.0,
            known,
        )
    standing = view.attribution.standings
    open_ = [
        node.id
        for node in nodes
        if standing.get(node.id, Standing.UNDECIDED) in (Standing.UNDECIDED, Standing.SUSPECT)
    ]
    if open_:
        yield _finding(
            "bandwidth.not-covered",
            Level.INFO,
            "too few pairwise runs to say anything of some nodes",
            tuple(open_),
            ((fold(open_), "neither cleared nor accused by the runs so far"),),
            (),
            1.0,
            known,
        )


def _finding(
    name: str,
    level: Level,
    title: str,
    subjects: tuple[str, ...],
    details: tuple[tuple[str, str], ...],
    evidence: Sequence[str],
    confidence: float,
    known: Knowledge,
    values: Mapping[str, str] | None = None,
) -> Finding:
    return fleet_finding(
        name,
        level,
        title,
        subjects,
        known,
        rule=ID,
        source=SOURCE,
        details=details,
        evidence=evidence,
        confidence=confidence,
        values=values,
    )
