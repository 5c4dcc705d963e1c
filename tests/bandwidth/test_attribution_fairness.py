"""Fleets that tempt to a wrong accusation: few nodes, heavy disturbance, a rack that is slow inside, half of two kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from straggler.engine.bandwidth import few, layout
from straggler.engine.bandwidth.attribution import attribute
from straggler.engine.bandwidth.model import Attribution, Kind, Run, RunState, Standing
from straggler.engine.model import Placement

SIZE = 1 << 30
Draw = Callable[[np.random.Generator], float]


def name(number: int) -> str:
    return f"n{number:02d}"


def calm(spread: float = 0.02) -> Draw:
    return lambda draw: float(np.exp(draw.normal(0, spread)))


def disturbed(share: float) -> Draw:
    """So many runs lose up to half of their bandwidth, whoever takes part."""
    even = calm()
    return lambda draw: even(draw) * (draw.uniform(0.5, 1) if draw.random() < share else 1.0)


def rounds(count: int, many: int | None, seed: int) -> list[tuple[int, int]]:
    """Pairs by the circle method, the nodes shuffled."""
    order = [int(one) for one in np.random.default_rng(seed).permutation(count)]
    order += [-1] * (count % 2)
    found: list[tuple[int, int]] = []
    for _ in range(len(order) - 1 if many is None else many):
        half = len(order) // 2
        ends = zip(order[:half], reversed(order[half:]), strict=True)
        found += [(min(two), max(two)) for two in ends if -1 not in two]
        order = [order[0], order[-1], *order[1:-1]]
    return found


def judged(
    count: int,
    many: int | None,
    seed: int,
    *,
    reach: Callable[[int, int], float] = lambda one, other: 1.0,
    draw: Draw | None = None,
    repeats: int = 1,
    placement: Mapping[str, Placement] | None = None,
) -> Attribution:
    chance = np.random.default_rng(seed + 500)
    draw = draw or calm()
    runs = [
        Run(
            f"{a}-{b}-{again}.txt", "nccl-tests", (name(a), name(b)), RunState.OK,
            points={SIZE: 480 * reach(a, b) * draw(chance)},
        )
        for a, b in rounds(count, many, seed)
        for again in range(repeats)
    ]  # fmt: skip
    return attribute(layout.build(runs), placement or {})


def slow(nodes: Mapping[int, float]) -> Callable[[int, int], float]:
    return lambda a, b: min(nodes.get(a, 1.0), nodes.get(b, 1.0))


def said(found: Attribution) -> set[tuple[str, ...]]:
    return {(one.kind.value, *one.subjects) for one in found.verdicts}


# Few nodes.


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_a_handful_of_uneven_pairs_accuses_nobody(count: int, repeats: int) -> None:
    accused = [
        seed for seed in range(40) if judged(count, None, seed, draw=calm(0.06), repeats=repeats).verdicts
    ]
    assert len(accused) <= 1


@pytest.mark.parametrize("count", [4, 5, 8])
def test_a_node_that_is_plainly_slow_is_named_among_few(count: int) -> None:
    named = [said(judged(count, None, seed, reach=slow({1: 0.7}))) for seed in range(10)]
    assert named.count({("node", "n01")}) >= 9


def test_close_values_of_few_runs_say_little_and_of_many_runs_all_they_can() -> None:
    near = np.array([0.0, 0.001, -0.001])
    assert few.most_gain(near - 0.08, near, 0.005) < few.most_gain(near - 0.4, near, 0.005)
    assert few.most_gain(near, near, 0.005) == 0
    assert few.most_gain(near, near[:0], 0.005) == 0
    assert few.most_gain(near - 0.08, np.zeros(few.MANY), 0.005) == float("inf")


# Fleets in which runs are often disturbed.


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("many", [3, 5, None])
def test_disturbed_runs_that_meet_in_a_node_do_not_make_it_slow(share: float, many: int | None) -> None:
    accused = [seed for seed in range(10) if judged(32, many, seed, draw=disturbed(share)).verdicts]
    assert not accused


def test_two_disturbed_runs_of_one_pair_are_no_slow_link_where_many_runs_are_disturbed() -> None:
    accused = [seed for seed in range(8) if judged(24, None, seed, draw=disturbed(0.05), repeats=2).verdicts]
    assert not accused


def test_a_slow_node_is_still_named_where_every_fifth_run_is_disturbed() -> None:
    found = judged(32, None, 3, reach=slow({7: 0.7}), draw=disturbed(0.2))
    assert said(found) == {("node", "n07")}


def test_no_link_is_slow_whose_node_is_slow_with_everybody() -> None:
    for seed in range(6):
        found = judged(3, None, seed, reach=slow({0: 0.85}), repeats=3)
        assert not [one for one in found.verdicts if one.kind is Kind.LINK]


# The way to a rack, or the rack.

RACKS = {name(at): Placement("az1", ("top", f"rack{at // 8}")) for at in range(32)}


def test_a_rack_slow_inside_as_well_is_its_nodes_and_not_the_way_to_it() -> None:
    found = judged(32, None, 1, reach=slow(dict.fromkeys(range(8), 0.8)), placement=RACKS)
    assert said(found) == {("node", name(at)) for at in range(8)}
    assert any("also among themselves" in note for note in found.notes)


def test_the_one_healthy_node_of_a_slow_rack_is_not_accused_with_it() -> None:
    found = judged(32, None, 1, reach=slow(dict.fromkeys(range(7), 0.8)), placement=RACKS)
    assert said(found) == {("node", name(at)) for at in range(7)}


def test_the_way_to_a_rack_is_named_where_pairs_inside_are_fine() -> None:
    found = judged(32, None, 1, reach=lambda a, b: 0.7 if (a < 8) != (b < 8) else 1.0, placement=RACKS)
    assert said(found) == {("boundary", "layer-2:rack0", "layer-2:*")}
    assert found.verdicts[0].confidence > 0.95


def test_without_a_pair_inside_a_rack_the_verdict_says_so_and_asks_for_one() -> None:
    pairs = [(a, b) for a in range(8) for b in range(8, 32) if (a + b) % 4 == 0]
    pairs += [(a, b) for a in range(8, 32) for b in range(a + 1, 32) if (a + b) % 4 == 0]
    draw = np.random.default_rng(5)
    runs = [
        Run(f"{a}-{b}", "nccl-tests", (name(a), name(b)), RunState.OK,
            points={SIZE: (380 if a < 8 else 480) * calm()(draw)})
        for a, b in pairs
    ]  # fmt: skip
    [blame] = attribute(layout.build(runs), RACKS).verdicts
    assert blame.subjects == ("layer-2:rack0", "layer-2:*")
    assert "no pair inside layer-2:rack0 was run" in blame.why
    assert blame.confidence <= 0.9
    assert blame.next_pair == ("n00", "n01")


def test_one_side_of_a_boundary_is_no_better_part_of_the_fleet() -> None:
    zones = {name(at): Placement(f"az{at // 16}") for at in range(32)}
    for seed in range(12):
        found = judged(32, 5, seed, reach=lambda a, b: 0.75 if (a < 16) != (b < 16) else 1.0, placement=zones)
        assert said(found) == {("boundary", "az:az0", "az:az1")}


# Whom a node met.


def test_a_node_that_met_only_slow_ones_is_not_accused() -> None:
    for seed in range(20):
        found = judged(32, 2, seed, reach=slow(dict.fromkeys(range(4), 0.8)))
        assert {one[1] for one in said(found)} <= {name(at) for at in range(4)}


# Two kinds of node.


@pytest.mark.parametrize("many", [16, 17, 18])
def test_half_of_the_fleet_slow_is_never_nobody_and_settled(many: int) -> None:
    found = judged(32, None, 2, reach=slow(dict.fromkeys(range(many), 0.85)))
    assert found.verdicts
    good = {name(at) for at in range(many, 32)}
    assert all(found.standings[one] is Standing.CLEARED for one in good)


# Nothing to compare with.


def pair(a: str, b: str, value: float = 400.0) -> Run:
    return Run(f"{a}__{b}.txt", "nccl-tests", (a, b), RunState.OK, points={SIZE: value})


def test_a_single_pair_clears_nobody_unless_it_is_known_what_it_should_reach() -> None:
    matrix = layout.build([pair("a", "b")])
    alone = attribute(matrix)
    assert set(alone.standings.values()) == {Standing.UNDECIDED}
    assert not alone.settled
    assert set(attribute(matrix, {}, (390, 480)).standings.values()) == {Standing.CLEARED}
    assert set(attribute(matrix, {}, (450, 480)).standings.values()) == {Standing.UNDECIDED}


def test_a_node_that_became_slow_on_the_way_is_one_doubt_and_not_three_pairs() -> None:
    met = [(f"n{a:02d}", f"n{b:02d}") for a in range(16) for b in range(a + 1, 16) if (b - a) % 3 == 1]
    mine = [two for two in met if "n05" in two]
    chance = np.random.default_rng(3)
    late = set(mine[len(mine) // 2 :])
    runs = [pair(a, b, (330 if (a, b) in late else 450) * calm()(chance)) for a, b in met]
    found = attribute(layout.build(runs))
    assert not found.verdicts
    assert [one.pair[0] for one in found.doubts] == ["n05"]
    assert "in between" in found.doubts[0].why
    assert found.standings["n05"] is Standing.SUSPECT
