"""Fleets for the matrix: runs as tools would give them, laid out by hand, with the verdicts a picture of them needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from types import MappingProxyType

import numpy as np

from straggler.engine.bandwidth.matrix import STATES, Matrix
from straggler.engine.bandwidth.model import (
    Attribution,
    Blame,
    Doubt,
    Kind,
    Metric,
    Run,
    RunState,
    Standing,
)
from straggler.engine.bandwidth.view import Expected, MatrixView
from straggler.engine.model import Placement

GIB = 1 << 30
SIZE = 8 * GIB
P5 = Expected(440.0, 490.0, 750.0, "p5 pairs", "https://example.org/p5")


def names(count: int, lead: str = "worker-") -> tuple[str, ...]:
    return tuple(f"{lead}{at:03}" for at in range(1, count + 1))


def run(a: str, b: str, value: float | None, state: RunState = RunState.OK, why: str = "") -> Run:
    points = {} if value is None else {SIZE: value, GIB: 0.9 * value}
    return Run(
        f"{a}__{b}.log", "nccl-tests", (a, b), state, why, points=points, collective="all_reduce", ranks=16
    )


def alone(node: str, value: float | None, state: RunState = RunState.OK) -> Run:
    return Run(
        f"{node}.log",
        "nccl-tests",
        (node,),
        state,
        "" if value else "exit status 3",
        points={} if value is None else {SIZE: value},
    )


def matrix(
    nodes: tuple[str, ...],
    value: Callable[[int, int], float | RunState | None],
    pairs: Iterable[tuple[int, int]] | None = None,
    own: Callable[[int], float | RunState | None] | None = None,
    *,
    metric: Metric = Metric.BUSBW,
    collective: str | None = "all_reduce",
    notes: tuple[str, ...] = (),
    more: dict[tuple[int, int], tuple[Run, ...]] | None = None,
) -> Matrix:
    """`value` of two node numbers: a number, a state, or None for a complete run without that size."""
    chosen = sorted(combinations(range(len(nodes)), 2) if pairs is None else pairs)
    values, states, detail = [], [], {}
    for a, b in chosen:
        got = value(a, b)
        state = got if isinstance(got, RunState) else RunState.OK
        number = None if isinstance(got, RunState) else got
        values.append(np.nan if number is None else number)
        states.append(STATES.index(state))
        why = {RunState.FAILED: "exit status 3", RunState.TRUNCATED: "no closing line"}.get(state, "")
        detail[a, b] = (run(nodes[a], nodes[b], number, state, why),)
    for key, runs in (more or {}).items():
        detail[key] = (*detail.get(key, ()), *runs)
    scores = [own(at) if own else None for at in range(len(nodes))]
    self_states = [STATES.index(one) if isinstance(one, RunState) else 0 for one in scores]
    self_values = [np.nan if one is None or isinstance(one, RunState) else one for one in scores]
    return Matrix(
        nodes,
        SIZE,
        metric,
        np.array([a for a, _ in chosen], np.int32),
        np.array([b for _, b in chosen], np.int32),
        np.array(values, np.float64),
        np.array(states, np.uint8),
        np.array([len(detail[pair]) for pair in chosen], np.int32),
        np.array(self_values, np.float64),
        np.array(self_states, np.uint8),
        np.array([one is not None for one in scores], np.int32),
        SIZE if own else None,
        collective,
        MappingProxyType(detail),
        MappingProxyType(
            {
                at: (
                    alone(
                        nodes[at],
                        None if isinstance(one, RunState) else one,
                        one if isinstance(one, RunState) else RunState.OK,
                    ),
                )
                for at, one in enumerate(scores)
                if one is not None
            }
        ),
        notes=notes,
    )


def noise(count: int, seed: int = 1, share: float = 0.01) -> np.ndarray:  # type: ignore[type-arg]
    return 1 + share * np.random.default_rng(seed).standard_normal((count, count))


def attributed(
    one: Matrix,
    verdicts: tuple[Blame, ...] = (),
    doubts: tuple[Doubt, ...] = (),
    *,
    standings: dict[str, Standing] | None = None,
    settled: bool = True,
    notes: tuple[str, ...] = (),
) -> Attribution:
    good = one.value[~np.isnan(one.value)]
    mean = float(good.mean()) if len(good) else None
    accused = {name for blame in verdicts if blame.kind is Kind.NODE for name in blame.subjects}
    scores = {
        name: (
            float(np.nanmedian(mine)) / float(np.median(good))
            if len(mine) and not np.isnan(mine).all()
            else None
        )
        for at, name in enumerate(one.nodes)
        for mine in [one.value[(one.a == at) | (one.b == at)]]
    }
    stand = {name: Standing.CULPRIT if name in accused else Standing.CLEARED for name in one.nodes}
    low = ()
    if mean is not None and not one.metric.lower_is_better:
        low = tuple(
            (one.nodes[int(one.a[at])], one.nodes[int(one.b[at])])
            for at in np.flatnonzero(one.value < 0.95 * mean)
        )
    middle = float(np.median(good)) if len(good) else None
    slow = next((b.effect for b in verdicts if b.kind is Kind.CLUSTER and b.effect is not None), 0.0)
    return Attribution(
        verdicts,
        doubts,
        middle,
        mean,
        scores,
        stand | (standings or {}),
        low,
        notes,
        settled,
        None if middle is None else middle / (1 + slow),
    )


def view(
    one: Matrix, found: Attribution, placements: dict[str, Placement] | None = None, revision: int = 1
) -> MatrixView:
    return MatrixView(one, found, P5, placements or {}, revision, below_mean=0.05)


def az_of(count: int) -> dict[str, Placement]:
    """Two thirds in az1, the rest in az2; four nodes share a last layer."""
    return {
        name: Placement(
            f"use1-az{1 + (at >= 2 * count // 3)}", ("nn-1", f"nn-2-{at // 8}", f"nn-3-{at // 4}")
        )
        for at, name in enumerate(names(count))
    }


def healthy(count: int = 24) -> MatrixView:
    wave = noise(count)
    one = matrix(names(count), lambda a, b: 471 * wave[a, b], own=lambda at: 480 * wave[at, at])
    return view(one, attributed(one), az_of(count))


def slow_node(count: int = 24) -> MatrixView:
    wave = noise(count)
    bad = 10
    one = matrix(
        names(count),
        lambda a, b: (325 if bad in (a, b) else 471) * wave[a, b],
        own=lambda at: 480 * wave[at, at],
    )
    blame = Blame(
        Kind.NODE,
        (one.nodes[bad],),
        -0.31,
        0.97,
        "its best pairs stay below what every other node reaches with the same partners",
        count - 1,
        count - 1,
        (one.nodes[bad], one.nodes[3]),
        evidence=(
            f"{one.nodes[bad]} x {one.nodes[3]}: 322 GB/s; the other pairs of {one.nodes[3]} reach 474",
        ),
    )
    return view(one, attributed(one, (blame,)), az_of(count))


def slow_link(count: int = 24) -> MatrixView:
    wave = noise(count)
    one = matrix(names(count), lambda a, b: (240 if (a, b) == (2, 18) else 471) * wave[a, b])
    blame = Blame(
        Kind.LINK,
        (one.nodes[2], one.nodes[18]),
        -0.49,
        0.93,
        "both nodes do well with all others",
        1,
        1,
        (one.nodes[2], one.nodes[18]),
    )
    return view(one, attributed(one, (blame,)), az_of(count))


def cross_az(count: int = 24) -> MatrixView:
    wave = noise(count)
    cut = 2 * count // 3
    one = matrix(names(count), lambda a, b: (370 if (a < cut) != (b < cut) else 471) * wave[a, b])
    many = cut * (count - cut)
    blame = Blame(
        Kind.BOUNDARY,
        ("az:use1-az1", "az:use1-az2"),
        -0.21,
        0.99,
        "pairs within each zone are fine, pairs between them are not",
        many,
        many,
        (one.nodes[0], one.nodes[-1]),
    )
    return view(one, attributed(one, (blame,)), az_of(count))


def majority_slow(count: int = 24) -> MatrixView:
    wave = noise(count)
    one = matrix(names(count), lambda a, b: (471 if a < 4 and b < 4 else 290) * wave[a, b])
    blame = Blame(
        Kind.CLUSTER,
        (),
        -0.34,
        0.95,
        "most pairs stay below what this type reaches",
        len(one) - 6,
        len(one),
        None,
    )
    return view(one, attributed(one, (blame,)), az_of(count))


def failed_pairs(count: int = 24) -> MatrixView:
    wave = noise(count)

    def value(a: int, b: int) -> float | RunState | None:
        if b == 20:
            return RunState.FAILED
        if a == 20:
            return RunState.FAILED
        if (a, b) == (1, 5):
            return RunState.TRUNCATED
        if (a, b) == (2, 7):
            return RunState.IMPLAUSIBLE
        return None if (a, b) == (3, 4) else float(471 * wave[a, b])

    one = matrix(
        names(count),
        value,
        own=lambda at: RunState.FAILED if at == 20 else 480.0,
        notes=("2 files are no output of a bandwidth tool: readme.md, plot.png",),
    )
    blame = Blame(
        Kind.NODE,
        (one.nodes[20],),
        None,
        0.99,
        "no run with it was ever complete",
        count - 1,
        count - 1,
        (one.nodes[20], one.nodes[20]),
        alone=True,
    )
    doubt = Doubt((one.nodes[1], one.nodes[5]), None, "truncated: no closing line; repeat this pair alone")
    return view(one, attributed(one, (blame,), (doubt,), settled=False), az_of(count))


def partial(count: int = 24) -> MatrixView:
    """Two rounds of the circle: every node has met two others."""
    wave = noise(count)
    pairs = {tuple(sorted((at, count - 1 - at))) for at in range(count // 2)}
    pairs |= {
        tuple(sorted(((at + 1) % (count - 1) if at else count - 1, (count - 1 - at) % (count - 1))))
        for at in range(count // 2)
    }
    chosen = [(a, b) for a, b in pairs if a != b]
    one = matrix(names(count), lambda a, b: (330 if 10 in (a, b) else 471) * wave[a, b], chosen)
    doubt = Doubt(
        (one.nodes[10], one.nodes[13]), -0.3, "one run at −30 % proves nothing: repeat this pair alone"
    )
    stand = {one.nodes[10]: Standing.SUSPECT, one.nodes[13]: Standing.SUSPECT}
    return view(one, attributed(one, (), (doubt,), standings=stand, settled=False), az_of(count))


FLEETS: dict[str, Callable[[], MatrixView]] = {
    "healthy": healthy,
    "slow-node": slow_node,
    "slow-link": slow_link,
    "cross-az": cross_az,
    "majority-slow": majority_slow,
    "failed-pairs": failed_pairs,
    "partial": partial,
}
