"""What is said of the cell under the cursor: both nodes, both directions, sizes, runs, state and why, and whose verdict it is part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.model import Kind, Run, RunState
from straggler.engine.safetext import safe
from straggler.tui import glyphs
from straggler.tui.matrix_sheet import STATE_MARKS
from straggler.tui.panes.lines import Piece

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Blame, Doubt
    from straggler.engine.bandwidth.picture import Picture
    from straggler.engine.bandwidth.view import MatrixView

IN_DOUBT = frozenset({"bandwidth.repeat-pair", "bandwidth.pair-failed"})
"""Which findings say that a run proves nothing yet."""

FINDINGS: Mapping[Kind, frozenset[str]] = {
    Kind.NODE: frozenset({"bandwidth.slow-node", "bandwidth.slow-alone", "bandwidth.node-failed"}),
    Kind.LINK: frozenset({"bandwidth.slow-link"}),
    Kind.BOUNDARY: frozenset({"bandwidth.slow-boundary"}),
    Kind.CLUSTER: frozenset({"bandwidth.slow-cluster"}),
}
"""Which findings say what a verdict says."""

Lines = list[list[Piece]]


def concerning(view: MatrixView, one: str, other: str) -> tuple[Blame, ...]:
    """The verdicts a pair is part of; of a node alone those about the node."""
    pair = {one, other}

    def touches(blame: Blame) -> bool:
        if blame.kind is Kind.NODE:
            return bool(pair & set(blame.subjects))
        if blame.kind is Kind.LINK:
            return pair == set(blame.subjects)
        return blame.kind is Kind.CLUSTER or (one != other and crosses(view, blame.subjects, one, other))

    return tuple(blame for blame in view.attribution.verdicts if touches(blame))


def in_doubt(view: MatrixView, one: str, other: str) -> tuple[Doubt, ...]:
    return tuple(doubt for doubt in view.attribution.doubts if set(doubt.pair) == {one, other})


def crosses(view: MatrixView, labels: Sequence[str], one: str, other: str) -> bool:
    """Whether a pair crosses a boundary: `az:a` and `az:b`, `az:a` and `az:*` (any other), or only `az:*` (any two)."""
    from straggler.engine.bandwidth.placement import boundaries

    level = labels[0].partition(":")[0] if labels else ""
    sides = {
        dict(boundaries(view.placements[node])).get(level) for node in (one, other) if node in view.placements
    }
    if len(sides) < 2 or None in sides:
        return False
    named = {label.partition(":")[2] for label in labels} - {"*"}
    return named <= sides


def described(picture: Picture, row: int, column: int, width: int) -> Lines:
    """Two lines: what the cell is, and what stands behind it; of the latter as much as is whole in `width` columns."""
    one, other = picture.node(row), picture.node(column)
    runs, value, state, size = _behind(picture, row, column)
    matrix = picture.matrix
    head: list[Piece] = [(f" {telling.pair(one, other)}  ", "strong")]
    if not runs and state is None:
        head.append(
            ("not run: nothing is known of this pair" if one != other else "not run alone", "unknown")
        )
        return [head, [*_verdicts(picture.view, one, other), *_standing(picture, one, other)]]
    if value is not None:
        head.append((f"{telling.number(value)} {telling.unit(matrix)} at {telling.size(size)}", "strong"))
        change = telling.against(value, picture.norm, lower_is_better=matrix.metric.lower_is_better)
        if change is not None and one != other:
            head.append((f"  {telling.percent(change)} against {picture.norm_name}", ""))
    if state is not None and (state is not RunState.OK or value is None):
        mark = STATE_MARKS[state]
        tone, glyph = (mark.tone, mark.glyph) if state is not RunState.OK else ("unknown", "?")
        word = telling.STATE_WORDS[state] if state is not RunState.OK else f"no value at {telling.size(size)}"
        why = next((run.why for run in runs if run.why and run.state is state), "")
        # A reason often begins with the state; it is not said twice.
        why = why.removeprefix(word)
        head.append((f"{glyph} {word}", tone))
        if why:
            lead = "" if why.startswith((" ", ":")) else ": "
            head.append((f"{lead}{safe(why, limit=120)}", ""))
    said = _verdicts(picture.view, one, other)
    room = width - sum(cell_len(text) for text, _ in said)
    return [head, [*said, *_evidence(picture, row, column, runs, room)]]


def _behind(
    picture: Picture, row: int, column: int
) -> tuple[tuple[Run, ...], float | None, RunState | None, int | None]:
    from straggler.engine.bandwidth.matrix import STATES

    matrix = picture.matrix
    a, b = int(picture.order[row]), int(picture.order[column])
    if a == b:
        if not matrix.alone_runs[a]:
            return (), None, None, matrix.alone_size
        own = float(matrix.alone[a])
        state = STATES[int(matrix.alone_state[a])]
        return matrix.by_node.get(a, ()), None if own != own else own, state, matrix.alone_size
    cell = matrix.cell(a, b)
    if cell is None:
        return (), None, None, matrix.size
    return cell.runs, cell.value, cell.state, matrix.size


def _verdicts(view: MatrixView, one: str, other: str) -> list[Piece]:
    said: list[Piece] = [
        (f" {glyphs.ARROW} {telling.headline(blame)}  ", "fail") for blame in concerning(view, one, other)
    ]
    said += [
        (f" {glyphs.UNKNOWN.glyph} in doubt: {safe(doubt.why, limit=200)}  ", "warn")
        for doubt in in_doubt(view, one, other)
    ]
    return said


def _standing(picture: Picture, one: str, other: str) -> list[Piece]:
    """Of a pair that was not run: how each node does otherwise."""
    found = picture.view.attribution
    out: list[Piece] = []
    for node in dict.fromkeys((one, other)):
        score, standing = found.scores.get(node), found.standings.get(node)
        said = "no run" if score is None else f"{100 * score:.0f} % of the fleet"
        out.append((f" {telling.name(node)}: {said}{f', {standing.value}' if standing else ''} ", "quiet"))
    return out


def _evidence(picture: Picture, row: int, column: int, runs: Sequence[Run], room: int) -> list[Piece]:
    """Directions where they differ, then other sizes, then where it came from."""
    matrix = picture.matrix
    a, b = int(picture.order[row]), int(picture.order[column])
    cell = matrix.cell(a, b) if a != b else None
    parts = [telling.many(len(runs), "run")]
    if cell is not None:
        labels = {matrix.nodes[number]: picture.labels[number] for number in (a, b)}
        parts += [
            f"{labels.get(one, telling.name(one))}→{labels.get(other, telling.name(other))} {telling.number(value)}"
            for one, other, value in telling.directions(cell, matrix)
        ]
    best = max(runs, key=lambda run: len(run.points), default=None)
    if best is not None and len(best.points) > 1:
        sizes = sorted(best.points)
        shown = [one for one in sizes if one != matrix.size][-2:]
        parts.append(", ".join(f"{telling.size(one)} {telling.number(best.points[one])}" for one in shown))
        parts.append(f"{len(sizes)} sizes from {telling.size(sizes[0])}")
    if runs:
        sources = [safe(run.source, limit=48) for run in runs[:2]]
        parts.append(f"{safe(runs[0].tool, limit=24)}: {', '.join(sources)}{' …' if len(runs) > 2 else ''}")
    while len(parts) > 1 and cell_len(f" {' · '.join(parts)}") > room:
        parts.pop()
    return [(f" {' · '.join(parts)}", "quiet")]


def shown_by(picture: Picture, blame: Blame) -> tuple[int, int]:
    """The cell that shows a verdict best, as two node numbers."""
    mine = [picture.numbers[name] for name in blame.subjects if name in picture.numbers]
    if blame.kind is Kind.NODE and mine:
        partner = None if blame.alone else picture.worst_partner(mine[0])
        return mine[0], mine[0] if partner is None else partner
    if blame.kind is Kind.LINK and len(mine) == 2:
        return mine[0], mine[1]
    matrix, view = picture.matrix, picture.view
    if blame.kind is Kind.BOUNDARY:
        for a, b in zip(matrix.a.tolist(), matrix.b.tolist(), strict=True):
            if crosses(view, blame.subjects, matrix.nodes[a], matrix.nodes[b]):
                return a, b
    return (int(matrix.a[0]), int(matrix.b[0])) if len(matrix) else (0, 0)
