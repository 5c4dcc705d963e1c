"""Who is named: straggler and the rules of others over the same simulated fleets. Accuracy first, then time.

    python tests/bench/bench_attribution.py [--smoke] [--fleets N] [--full]

Per cell: share of fleets in which exactly the slow nodes were named (`exact`), nodes accused wrongly per fleet (`false`), and
the rounds used. A cell in which any other rule is significantly better (paired over the same fleets, 95 % interval of the
difference above zero) is marked. What a fleet is made of stands in tests/support/fleets.py, what the others do in others.py.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from straggler.engine.bandwidth.attribution import attribute
from straggler.engine.bandwidth.model import Attribution, Kind, Standing
from straggler.engine.bandwidth.schedule import next_round
from tests.support.fleets import Fleet, matrix
from tests.support.others import ON_RUNS, bisection, suspects_with_passed

OURS, OURS_FIXED = "straggler", "straggler, as planned"


@dataclass(frozen=True)
class Cell:
    nodes: int
    slow: int
    effect: float
    noise: float
    rounds: int | None

    def __str__(self) -> str:
        rounds = "all" if self.rounds is None else self.rounds
        return f"{self.nodes:5} nodes {self.slow:2} at -{self.effect:.0%} noise {self.noise:.0%} rounds {rounds:>3}"

    def fleet(self, number: int) -> Fleet:
        draw = np.random.default_rng([number, self.nodes, self.slow])
        chosen = draw.permutation(self.nodes)[: self.slow]
        return Fleet(
            self.nodes, noise=self.noise, seed=number, nodes={int(one): 1 - self.effect for one in chosen}
        )


def accused(fleet: Fleet, said: Attribution) -> set[int]:
    """Node numbers that were named; a wrong verdict of another kind counts as one wrong node."""
    at = {name: number for number, name in enumerate(fleet.names)}
    return {
        at[one.subjects[0]] if one.kind is Kind.NODE else -1 - number
        for number, one in enumerate(said.verdicts)
    }


REPEATS = 3


def sweep(fleet: Fleet, rounds: int | None) -> tuple[set[int], int]:
    """As `straggler sweep` goes: one planned round, then what the verdict so far asks for, until it is settled or the rounds are
    used up. Repeats of single pairs with nothing beside them take no round of the fleet and do not count as one; all that are
    wanted at a time are run before the next look."""
    planned = fleet.rounds(rounds)
    pairs = [planned.pop(0)]
    values = [fleet.run(pairs[0])]
    alone = [False] * len(pairs[0])
    repeated: Counter[tuple[str, ...]] = Counter()
    used, limit = 1, rounds or fleet.count - 1
    names = fleet.names
    at = {name: number for number, name in enumerate(names)}
    while True:
        done = np.concatenate(pairs)
        said = attribute(matrix(names, done, np.concatenate(values), alone))
        cleared = sum(one is Standing.CLEARED for one in said.standings.values())
        members: Sequence[tuple[str, ...]] = ()
        by_itself = False
        if 2 * cleared < fleet.count and not said.settled and used < limit:
            members = [(names[a], names[b]) for a, b in planned.pop(0).tolist()]
        elif used < limit:
            met = [(names[a], names[b]) for a, b in done.tolist()]
            found = next_round(names, met, said, number=used + 1, repeated=repeated)
            members = found.members if found is not None and not found.alone else ()
        if not members:
            members, by_itself = doubtful(said, repeated), True
        if not members:
            return accused(fleet, said), used
        pairs.append(np.array([[at[one] for one in member] for member in members]))
        values.append(fleet.run(pairs[-1], calm=by_itself))
        alone += [by_itself] * len(members)
        if by_itself:
            repeated.update(members)
        else:
            used += 1


def doubtful(said: Attribution, repeated: Counter[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The pairs that are still to be repeated alone."""
    wanted = dict.fromkeys(tuple(sorted(one.pair)) for one in said.doubts if one.pair[0] != one.pair[1])
    return [one for one in wanted if repeated[one] < REPEATS]


def judge(cell: Cell, number: int) -> dict[str, tuple[set[int], int]]:
    """What every rule says of one fleet, and the rounds it took."""
    fleet = cell.fleet(number)
    pairs = np.concatenate(fleet.rounds(cell.rounds))
    values = fleet.run(pairs)
    many = cell.rounds or cell.nodes - 1
    said = {name: (rule(pairs, values, cell.nodes), many) for name, rule in ON_RUNS.items()}
    said[OURS_FIXED] = accused(fleet, attribute(matrix(fleet.names, pairs, values))), many
    said[OURS] = sweep(cell.fleet(number), cell.rounds)
    said["suspect with passed"] = suspects_with_passed(cell.fleet(number), many)
    said["bisection"] = bisection(cell.fleet(number), many)
    return said


def run(cell: Cell, fleets: int) -> bool:
    """Print one cell; False where another rule is significantly better than ours."""
    truth = [set(cell.fleet(number).nodes) for number in range(fleets)]
    said = [judge(cell, number) for number in range(fleets)]
    exact = {
        name: np.array([one[name][0] == true for one, true in zip(said, truth, strict=True)])
        for name in said[0]
    }
    print(f"\n{cell}")
    ok = True
    for name, hits in sorted(exact.items(), key=lambda item: -item[1].mean()):
        wrong = np.mean([len(one[name][0] - true) for one, true in zip(said, truth, strict=True)])
        used = np.mean([one[name][1] for one in said])
        gap = hits.astype(float) - exact[OURS]
        edge = 1.96 * gap.std() / np.sqrt(fleets)
        mark = ""
        if name not in (OURS, OURS_FIXED) and gap.mean() - edge > 0:
            ok, mark = False, "  BETTER THAN OURS"
        print(
            f"  {name:24} exact {hits.mean():6.1%} ±{1.96 * hits.std() / np.sqrt(fleets):5.1%}"
            f"  false {wrong:6.3f}  rounds {used:5.1f}{mark}"
        )
    return ok


def healthy(fleets: int) -> int:
    """Accusations over healthy fleets of 64 nodes at 2 % noise, 5 rounds, both ways of running them."""
    cell = Cell(64, 0, 0.0, 0.02, 5)
    false = 0
    for number in range(fleets):
        fleet = cell.fleet(number)
        pairs = np.concatenate(fleet.rounds(5))
        false += len(accused(fleet, attribute(matrix(fleet.names, pairs, fleet.run(pairs)))))
        false += len(sweep(cell.fleet(number), 5)[0])
    print(f"\n{fleets} healthy fleets of 64 nodes, 2 % noise, 5 rounds: {false} false accusations")
    return false


def others(fleets: int) -> None:
    """What no rule over nodes can say: a link, a boundary, a fleet slow in its greater part. Exact is the very verdict, alone."""
    print(f"\nlinks, boundaries, most of the fleet slow ({fleets} fleets each, 2 % noise)")
    for name, make, rounds, expected in OTHER_CAUSES:
        exact = false = wrong = 0
        for number in range(fleets):
            fleet, truth = make(number)
            pairs = np.concatenate(fleet.rounds(rounds))
            values = fleet.run(pairs)
            alone = np.zeros(len(pairs), dtype=bool)
            for _ in range(3):
                said = attribute(matrix(fleet.names, pairs, values, list(alone)), fleet.placement, expected)
                again = doubtful(said, Counter())
                if not again or expected is not None:
                    break
                at = {one: number for number, one in enumerate(fleet.names)}
                more = np.array([[at[one] for one in pair] for pair in again])
                pairs, values = (
                    np.concatenate([pairs, more]),
                    np.concatenate([values, fleet.run(more, calm=True)]),
                )
                alone = np.concatenate([alone, np.ones(len(more), dtype=bool)])
            found = {(one.kind, one.subjects) for one in said.verdicts}
            exact += found == truth
            false += len(found - truth)
            wrong += len(ON_RUNS["10 % below median"](pairs, values, fleet.count))
        print(
            f"  {name:42} exact {exact / fleets:6.1%}  false {false / fleets:6.3f}"
            f"   (nodes that '10 % below median' accuses: {wrong / fleets:.1f})"
        )


Truth = set[tuple[Kind, tuple[str, ...]]]


def one_link(number: int) -> tuple[Fleet, Truth]:
    fleet = Fleet(32, seed=number, links={(3, 9): 0.6})
    return fleet, {(Kind.LINK, ("n0003", "n0009"))}


def one_zone(number: int) -> tuple[Fleet, Truth]:
    fleet = Fleet(64, seed=number, places=["a"] * 40 + ["b"] * 24, across=0.85)
    return fleet, {(Kind.BOUNDARY, ("az:a", "az:b"))}


def a_zone_and_a_node(number: int) -> tuple[Fleet, Truth]:
    fleet = Fleet(64, seed=number, places=["a"] * 40 + ["b"] * 24, across=0.85, nodes={50: 0.6})
    return fleet, {(Kind.BOUNDARY, ("az:a", "az:b")), (Kind.NODE, ("n0050",))}


def most_slow(number: int) -> tuple[Fleet, Truth]:
    return Fleet(64, seed=number, nodes=dict.fromkeys(range(45), 0.7)), {(Kind.CLUSTER, ())}


def all_slow(number: int) -> tuple[Fleet, Truth]:
    return Fleet(64, seed=number, nodes=dict.fromkeys(range(64), 0.1)), {(Kind.CLUSTER, ())}


OTHER_CAUSES: tuple[
    tuple[str, Callable[[int], tuple[Fleet, Truth]], int | None, tuple[float, float] | None], ...
] = (
    ("one link at -40 %, all rounds and repeats", one_link, None, None),
    ("between two zones -15 %, 2 rounds", one_zone, 2, None),
    ("between two zones -15 %, 5 rounds", one_zone, 5, None),
    ("two zones and a node at -40 %, 10 rounds", a_zone_and_a_node, 10, None),
    ("45 of 64 nodes at -30 %, 5 rounds", most_slow, 5, None),
    ("45 of 64 nodes at -30 %, type known", most_slow, 5, (440.0, 500.0)),
    ("all nodes at -90 %, type known", all_slow, 5, (440.0, 500.0)),
)


def large() -> None:
    """Time to judge every pair of 1,024 nodes."""
    fleet = Fleet(1024, noise=0.02, seed=1, nodes={at * 97: 0.8 for at in range(10)})
    pairs = np.concatenate(fleet.rounds())
    one = matrix(fleet.names, pairs, fleet.run(pairs))
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        said = attribute(one)
        took.append(time.perf_counter() - begun)
    named = sum(one.kind is Kind.NODE for one in said.verdicts)
    print(f"\n1,024 nodes, {len(one):,} pairs: {min(took):.2f} s (aim 1), {named} of 10 slow nodes named")


def cells(full: bool) -> list[Cell]:
    if not full:
        return [
            Cell(*one)
            for one in (
                (16, 1, 0.2, 0.02, 5), (16, 3, 0.3, 0.06, 3), (16, 1, 0.08, 0.01, None), (64, 1, 0.15, 0.02, 5),
                (64, 1, 0.5, 0.02, 1), (64, 3, 0.2, 0.03, 2), (64, 10, 0.3, 0.03, 2), (64, 10, 0.5, 0.03, 5),
                (64, 10, 0.08, 0.04, 10), (64, 1, 0.08, 0.06, 5), (64, 3, 0.15, 0.06, 10), (64, 1, 0.15, 0.02, None),
                (256, 10, 0.12, 0.03, 5), (1024, 10, 0.2, 0.02, 5),
            )
        ]  # fmt: skip
    return [
        Cell(*one)
        for one in itertools.product(
            (16, 64, 256), (1, 3, 10), (0.08, 0.15, 0.3, 0.5), (0.01, 0.03, 0.06), (1, 2, 5, 10)
        )
        if one[1] * 3 <= one[0]
    ]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--smoke", action="store_true")
    options.add_argument("--full", action="store_true")
    options.add_argument("--fleets", type=int, default=100)
    args = options.parse_args()
    fleets = 4 if args.smoke else args.fleets
    # Large fleets take their time; a tenth of them says as much of rates near one.
    behind = [
        cell
        for cell in cells(args.full)
        if not run(cell, max(4, fleets // 10) if cell.nodes > 256 else fleets)
    ]
    others(2 if args.smoke else args.fleets)
    false = healthy(20 if args.smoke else 1000)
    if not args.smoke:
        large()
    print(f"\ncells in which another rule is significantly better: {len(behind)}")
    for cell in behind:
        print(f"  {cell}")
    if args.smoke and false:
        sys.exit(1)


if __name__ == "__main__":
    main()
