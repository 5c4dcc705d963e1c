"""Verdicts and doubts in words: what was seen, over how many runs, and the run that would settle it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.explain import Cause, Group
from straggler.engine.bandwidth.links import LowPair
from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Blame, Doubt, Kind, Metric
from straggler.engine.bandwidth.partners import Partners
from straggler.engine.nodesets import fold

SURE = 0.99
"""No verdict claims more: what was measured is the past, and a cable can be touched meanwhile."""

SHOWN = 4
"""Pairs that stand as evidence."""


def percent(effect: float | None) -> str:
    return "no bandwidth" if effect is None else f"{effect * 100:+.0f} %".replace("-", "−")


def amount(value: float, metric: Metric) -> str:
    """`471 GB/s`, with as many digits as tell two runs apart."""
    if abs(value) >= 1e9:
        return f"{value:.3g} {'µs' if metric is Metric.LATENCY else 'GB/s'}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} {'µs' if metric is Metric.LATENCY else 'GB/s'}"


def _lines(matrix: Matrix, pairs: Sequence[int]) -> tuple[str, ...]:
    shown = []
    for at in pairs[:SHOWN]:
        cell = matrix.cell_at(int(at))
        value = cell.state.value if cell.value is None else amount(cell.value, matrix.metric)
        shown.append(f"{cell.a} × {cell.b}: {value}")
    return tuple(shown)


def _in_matrix(pairs: np.ndarray, matrix: Matrix) -> list[int]:
    """Positions among pairs with a value, as positions in the matrix."""
    return [int(at) for at in np.flatnonzero(np.isfinite(matrix.value) & (matrix.value > 0))[pairs]]


def of_cause(cause: Cause, matrix: Matrix, partners: Partners, sign: float) -> Blame:
    effect = float(np.expm1(cause.cap)) if sign > 0 else float(np.expm1(-cause.cap))
    pairs = _in_matrix(cause.group.pairs, matrix)
    pairs.sort(key=lambda at: sign * float(matrix.value[at]))
    if cause.group.node >= 0:
        node = matrix.nodes[cause.group.node]
        partner = partners.for_node(cause.group.node)
        why = (
            f"{cause.slow} of its {cause.of} pairs are slow, whoever is at the other end; "
            f"without it those nodes are as fast as the rest"
        )
        settle = None if partner is None else (node, matrix.nodes[partner])
        return Blame(
            Kind.NODE, (node,), effect, min(SURE, cause.probability), why, cause.slow, cause.of, settle,
            evidence=_lines(matrix, pairs),
        )  # fmt: skip
    return _boundary(cause.group, effect, min(SURE, cause.probability), cause.slow, cause.of, pairs, matrix)


def _boundary(
    group: Group, effect: float | None, sure: float, slow: int, of: int, pairs: list[int], matrix: Matrix
) -> Blame:
    what, others = ("failed", "did not") if effect is None else ("are slow", "are not")
    why = f"{slow} of {of} pairs that cross it {what}; pairs that do not cross it {others}"
    subjects = _subjects(group.labels)
    first = matrix.cell_at(pairs[0]) if pairs else None
    settle = None if first is None else (first.a, first.b)
    return Blame(Kind.BOUNDARY, subjects, effect, sure, why, slow, of, settle, evidence=_lines(matrix, pairs))


def _subjects(labels: Sequence[str]) -> tuple[str, ...]:
    """Both sides of a boundary; one label alone stands for its side against every other of that level."""
    level, _, place = labels[0].partition(":")
    return tuple(labels) if len(labels) == 2 or place == "*" else (labels[0], f"{level}:*")


def of_suspect(cause: Cause, matrix: Matrix, partners: Partners, sign: float) -> Doubt:
    effect = float(np.expm1(cause.cap)) if sign > 0 else float(np.expm1(-cause.cap))
    if cause.group.node < 0:
        pair = matrix.cell_at(_in_matrix(cause.group.pairs, matrix)[0])
        way = telling.crossing(_subjects(cause.group.labels))
        return Doubt(
            (pair.a, pair.b),
            effect,
            f"pairs {way} look slow ({percent(effect)}), too few to say: run one again, alone",
        )
    node = matrix.nodes[cause.group.node]
    partner = partners.for_node(cause.group.node)
    other = node if partner is None else matrix.nodes[partner]
    return Doubt(
        (node, other),
        effect,
        f"{cause.slow} of {cause.of} pairs of {node} look slow ({percent(effect)}), too few to say: "
        f"run it with a node that is known to be fine",
    )


def of_few_runs(blame: Blame) -> Doubt:
    one, other = blame.next_pair or (blame.subjects[0], blame.subjects[0])
    return Doubt(
        (one, other),
        blame.effect,
        f"the verdict on {one} rests on {blame.of} pairs: one more run, alone, settles it",
    )


def of_untold(node: int, partner: int, matrix: Matrix) -> Doubt:
    one, other = matrix.nodes[node], matrix.nodes[partner]
    return Doubt(
        (one, other),
        None,
        f"{one} was low in every run, but never with a node known to be fine: run it with one",
    )


def of_link(low: LowPair, matrix: Matrix) -> Blame:
    cell = matrix.cell_at(low.at)
    why = (
        f"{low.runs} runs of this pair are slow ({percent(low.effect)}), and both nodes are faster with others: "
        f"it is the way between them, not a node"
    )
    return Blame(
        Kind.LINK, (cell.a, cell.b), low.effect, min(SURE, low.probability), why, low.runs, low.runs,
        (cell.a, cell.b), evidence=_lines(matrix, [low.at]),
    )  # fmt: skip


def of_low_pair(low: LowPair, matrix: Matrix) -> Doubt:
    cell = matrix.cell_at(low.at)
    runs = "one run" if low.runs == 1 else f"{low.runs} runs"
    return Doubt(
        (cell.a, cell.b),
        low.effect,
        f"{runs} at {percent(low.effect)} {'proves nothing' if low.runs == 1 else 'are no proof yet'}: repeat this pair alone",
    )


def of_wavering(node: int, partner: int, effect: float, low: int, of: int, matrix: Matrix) -> Doubt:
    one, other = matrix.nodes[node], matrix.nodes[partner]
    return Doubt(
        (one, other),
        effect,
        f"{low} of {of} pairs of {one} were low ({percent(effect)}), the others were not: it may have become slow in between, "
        f"or it comes and goes; run it again",
    )


def of_failed_pair(at: int, matrix: Matrix) -> Doubt:
    cell = matrix.cell_at(at)
    why = next((run.why for run in cell.runs if run.why), cell.state.value)
    return Doubt((cell.a, cell.b), None, f"{cell.state.value}: {why}; repeat this pair alone")


def of_failed_node(node: int, runs: int, matrix: Matrix, partners: Partners) -> Blame:
    name = matrix.nodes[node]
    partner = partners.for_node(node)
    own = [at for at in range(len(matrix)) if node in (matrix.a[at], matrix.b[at])]
    why = f"all {runs} pairs of {name} ended without a value, and its partners' other pairs did not"
    # Each further failed pair makes chance less likely; two are the least a verdict needs.
    sure = min(SURE, 1 - 0.2**runs)
    settle = None if partner is None else (name, matrix.nodes[partner])
    return Blame(Kind.NODE, (name,), None, sure, why, runs, runs, settle, evidence=_reasons(matrix, own))


def of_closed_boundary(group: Group, matrix: Matrix) -> Blame:
    pairs = [int(at) for at in group.pairs]
    sure = min(SURE, 1 - 0.2 ** len(pairs))
    blame = _boundary(group, None, sure, len(pairs), len(pairs), pairs, matrix)
    return replace(blame, evidence=_reasons(matrix, pairs))


def _reasons(matrix: Matrix, pairs: Sequence[int]) -> tuple[str, ...]:
    lines = []
    for at in pairs[:SHOWN]:
        cell = matrix.cell_at(at)
        why = next((run.why for run in cell.runs if run.why), "")
        lines.append(f"{cell.a} × {cell.b}: {cell.state.value}{': ' + why if why else ''}")
    return tuple(lines)


def of_failed_alone(at: int, matrix: Matrix) -> Doubt:
    node = matrix.nodes[at]
    runs = matrix.by_node.get(at, ())
    why = next((run.why for run in runs if run.why), "no value")
    return Doubt((node, node), None, f"it gave no value: {why}; run it alone again")


def of_doubt_alone(at: int, effect: float, matrix: Matrix, usual: float) -> Doubt:
    node = matrix.nodes[at]
    value = amount(float(matrix.alone[at]), matrix.metric)
    return Doubt(
        (node, node),
        effect,
        f"it reaches {value}, the others {amount(usual, matrix.metric)}: one run proves nothing, run it alone again",
    )


def of_slow_alone(at: int, effect: float, matrix: Matrix, usual: float) -> Blame:
    node, runs = matrix.nodes[at], int(matrix.alone_runs[at])
    value = amount(float(matrix.alone[at]), matrix.metric)
    why = (
        f"by itself it reaches {value} at best in {runs} runs, the others {amount(usual, matrix.metric)}: "
        f"its GPUs or NVLink, not the network"
    )
    sure = min(SURE, 1 - 0.2**runs)
    return Blame(Kind.NODE, (node,), effect, sure, why, runs, runs, (node, node), alone=True)


def alone_too(blame: Blame, effect: float, matrix: Matrix, at: int, usual: float) -> Blame:
    value = amount(float(matrix.alone[at]), matrix.metric)
    why = (
        f"{blame.why}; by itself it is slow, too ({value}, the others {amount(usual, matrix.metric)}): "
        f"its GPUs or NVLink come before the network"
    )
    return replace(blame, why=why, alone=True)


def of_majority(effect: float, many: int, good: Sequence[str], matrix: Matrix) -> Blame:
    why = (
        f"{many} nodes are slower than the other {len(good)} ({fold(good)}), whose pairs with each other are all faster: "
        f"most of the fleet is affected"
    )
    settle = (good[0], good[1]) if len(good) > 1 else None
    return Blame(Kind.CLUSTER, (), effect, 0.9, why, many, many + len(good), settle)


def of_cluster(level: float, low: float, high: float, runs: int, matrix: Matrix, spread: float) -> Blame:
    middle = (low + high) / 2
    effect = level / middle - 1
    usual = f"{amount(low, matrix.metric)} to {amount(high, matrix.metric)}"
    why = (
        f"the pairs reach {amount(level, matrix.metric)}, others measured {usual} with this instance type at this size: "
        f"no single node, the fleet as a whole"
    )
    edge = low if level < low else high
    gap = abs(float(np.log(level / edge)))
    sure = min(SURE, 1 - 0.5 * float(np.exp(-gap / max(spread, 0.02))) * 0.9)
    first = matrix.cell_at(0) if len(matrix) else None
    return Blame(
        Kind.CLUSTER, (), effect, sure, why, runs, runs, None if first is None else (first.a, first.b)
    )
