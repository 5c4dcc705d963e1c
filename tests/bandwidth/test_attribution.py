"""Who is named, and who is not: the verdicts of pairwise bandwidth over fleets whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine.bandwidth import layout
from straggler.engine.bandwidth.attribution import attribute
from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Attribution, Kind, Metric, Run, RunState, Standing
from straggler.engine.model import Placement
from tests.support.fleets import SIZE, Fleet, matrix


def judged(fleet: Fleet, rounds: int | None = 5, expected: tuple[float, float] | None = None) -> Attribution:
    pairs = np.concatenate(fleet.rounds(rounds))
    return attribute(matrix(fleet.names, pairs, fleet.run(pairs)), fleet.placement, expected)


def run(a: str, b: str, value: float | None, source: str = "", why: str = "") -> Run:
    if value is None:
        return Run(source, "nccl-tests", (a, b), RunState.FAILED, why or "timed out")
    return Run(source, "nccl-tests", (a, b), RunState.OK, points={SIZE: value})


def alone(node: str, value: float) -> Run:
    return Run(f"round-00/{node}.txt", "nccl-tests", (node,), RunState.OK, points={SIZE: value})


def said(found: Attribution) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.kind.value, one.subjects) for one in found.verdicts]


def even(names: str, value: float = 480.0) -> list[Run]:
    """Every pair of nodes named by one letter each, alike but for a little noise."""
    draw = np.random.default_rng(7)
    return [
        run(a, b, value * float(np.exp(draw.normal(0, 0.01))))
        for at, a in enumerate(names)
        for b in names[at + 1 :]
    ]


# Nobody.


@pytest.mark.parametrize("rounds", [1, 2, 5, None])
def test_healthy_fleets_accuse_nobody(rounds: int | None) -> None:
    for seed in range(12):
        assert not judged(Fleet(32, seed=seed), rounds).verdicts


def test_one_noisy_run_accuses_nobody_and_is_to_be_repeated_alone() -> None:
    runs = even("abcdef")
    runs[3] = run(*runs[3].hosts, 300.0)
    found = attribute(layout.build(runs))
    assert not found.verdicts
    assert [one.pair for one in found.doubts] == [("a", "e")]
    assert "repeat this pair alone" in found.doubts[0].why
    assert not found.settled


def test_a_repeat_that_is_fine_clears_the_pair() -> None:
    runs = even("abcdef")
    runs[3] = run(*runs[3].hosts, 300.0)
    found = attribute(layout.build([*runs, run("a", "e", 478.0, "alone-001/a__e.txt")]))
    assert not found.verdicts
    assert not found.doubts
    assert found.settled


def test_uneven_noise_with_one_low_pair_makes_no_node_slow() -> None:
    values = {
        "12": 11.83, "13": 12.45, "14": 14.63, "15": 12.02, "16": 13.32, "23": 11.05, "24": 11.1, "25": 6.37,
        "26": 13.53, "34": 12.29, "35": 15.94, "36": 12.33, "45": 11.11, "46": 14.92, "56": 14.71,
    }  # fmt: skip
    found = attribute(layout.build([run(*pair, value) for pair, value in values.items()]))
    assert not found.verdicts
    assert [one.pair for one in found.doubts] == [("2", "5")]


def test_nothing_at_all_accuses_nobody() -> None:
    found = attribute(layout.build([]))
    assert not found.verdicts
    assert found.median is None
    assert not found.settled


def test_a_single_pair_says_nothing_of_its_nodes() -> None:
    found = attribute(layout.build([run("a", "b", 100.0)]))
    assert not found.verdicts


def test_where_every_pair_failed_nobody_is_accused() -> None:
    found = attribute(layout.build([run("a", "b", None), run("a", "c", None), run("b", "c", None)]))
    assert not found.verdicts
    assert len(found.doubts) == 3
    assert any("none of the 3 pairs gave a value" in note for note in found.notes)


# Nodes.


@pytest.mark.parametrize("share", [0.92, 0.85, 0.5, 0.05])
def test_a_slow_node_is_named_with_how_slow_it_is(share: float) -> None:
    for seed in range(8):
        [blame] = judged(Fleet(48, seed=seed, nodes={17: share})).verdicts
        assert (blame.kind, blame.subjects) == (Kind.NODE, ("n0017",))
        assert blame.effect == pytest.approx(share - 1, abs=0.03)
        assert 0.9 <= blame.confidence < 1
        assert blame.slow >= 2
        assert blame.evidence


def test_several_slow_nodes_are_named_and_their_partners_are_not() -> None:
    slow = {3: 0.8, 9: 0.7, 20: 0.85, 31: 0.6}
    for seed in range(8):
        found = judged(Fleet(64, seed=seed, nodes=slow))
        assert {one.subjects for one in found.verdicts} == {(f"n{at:04}",) for at in slow}


def test_the_next_run_of_a_slow_node_is_with_a_node_known_to_be_fine_it_was_not_with() -> None:
    fleet = Fleet(32, seed=4, nodes={5: 0.7})
    pairs = np.concatenate(fleet.rounds(5))
    found = attribute(matrix(fleet.names, pairs, fleet.run(pairs)))
    settle = found.verdicts[0].next_pair
    assert settle is not None
    assert settle[0] == "n0005"
    assert found.standings[settle[1]] is Standing.CLEARED
    met = {tuple(sorted((fleet.names[a], fleet.names[b]))) for a, b in pairs.tolist()}
    assert tuple(sorted(settle)) not in met


def test_of_three_nodes_the_one_in_both_slow_pairs_is_named_and_one_more_run_is_asked_for() -> None:
    found = attribute(layout.build([run("x", "y", 480), run("x", "z", 240), run("y", "z", 241)]))
    assert said(found) == [("node", ("z",))]
    assert [set(one.pair) for one in found.doubts] == [{"z", "x"}] or [
        set(one.pair) for one in found.doubts
    ] == [{"z", "y"}]


def test_a_node_that_fails_with_everybody_is_named_without_a_number() -> None:
    runs = [run(*one.hosts, None, why="NCCL failure") if "d" in one.hosts else one for one in even("abcdef")]
    found = attribute(layout.build(runs))
    assert said(found) == [("node", ("d",))]
    assert found.verdicts[0].effect is None
    assert "NCCL failure" in found.verdicts[0].evidence[0]
    assert not found.doubts


def test_one_failed_pair_is_a_doubt_with_its_reason_and_not_left_out() -> None:
    runs = even("abcdef")
    runs[0] = run("a", "b", None, why="timed out after 240 s")
    found = attribute(layout.build(runs))
    assert not found.verdicts
    [doubt] = found.doubts
    assert doubt.pair == ("a", "b")
    assert doubt.effect is None
    assert "timed out after 240 s" in doubt.why


def test_a_node_slow_by_itself_twice_is_its_own_fault_and_once_is_to_be_run_again() -> None:
    runs = even("abcdef")
    solo = [alone(node, 470.0 if node != "c" else 300.0) for node in "abcdef"]
    once = attribute(layout.build([*runs, *solo]))
    assert not once.verdicts
    assert [one.pair for one in once.doubts] == [("c", "c")]
    twice = attribute(layout.build([*runs, *solo, alone("c", 305.0)]))
    assert said(twice) == [("node", ("c",))]
    assert twice.verdicts[0].alone
    assert "not the network" in twice.verdicts[0].why


def test_a_node_slow_alone_and_with_others_is_told_to_be_a_matter_of_its_gpus() -> None:
    runs = [run(*one.hosts, 300.0) if "c" in one.hosts else one for one in even("abcdef")]
    solo = [alone(node, 470.0 if node != "c" else 300.0) for node in "abcdef"]
    found = attribute(layout.build([*runs, *solo]))
    assert said(found) == [("node", ("c",))]
    assert found.verdicts[0].alone


# Links, boundaries, the fleet.


def test_a_link_is_named_once_repeats_agree() -> None:
    runs = even("abcdefgh")
    at = next(n for n, one in enumerate(runs) if one.hosts == ("b", "g"))
    runs[at] = run("b", "g", 240.0)
    assert not attribute(layout.build(runs)).verdicts
    more = [run("b", "g", 236.0, "alone-001/b__g.txt"), run("g", "b", 243.0, "alone-002/g__b.txt")]
    [blame] = attribute(layout.build([*runs, *more])).verdicts
    assert (blame.kind, blame.subjects, blame.next_pair) == (Kind.LINK, ("b", "g"), ("b", "g"))
    assert blame.effect == pytest.approx(-0.5, abs=0.04)


def test_nodes_in_another_zone_are_not_accused_but_the_way_there_is() -> None:
    for rounds in (2, 5, None):
        fleet = Fleet(16, seed=3, places=["a"] * 12 + ["b"] * 4, across=0.02)
        assert said(judged(fleet, rounds)) == [("boundary", ("az:a", "az:b"))]


def test_a_node_alone_in_its_zone_is_not_the_fault_the_zone_is() -> None:
    fleet = Fleet(16, seed=3, places=["a"] * 15 + ["b"], across=0.5)
    assert said(judged(fleet, 5)) == [("boundary", ("az:a", "az:b"))]


def test_a_zone_and_a_slow_node_are_two_verdicts() -> None:
    fleet = Fleet(32, seed=5, places=["a"] * 16 + ["b"] * 16, across=0.7, nodes={4: 0.5})
    assert said(judged(fleet, None)) == [("boundary", ("az:a", "az:b")), ("node", ("n0004",))]


def test_a_closed_boundary_is_named_where_no_run_gets_across() -> None:
    runs = [
        run(*one.hosts, None) if (one.hosts[0] in "abc") != (one.hosts[1] in "abc") else one
        for one in even("abcdef")
    ]
    places = {node: Placement(az="z1" if node in "abc" else "z2") for node in "abcdef"}
    found = attribute(layout.build(runs), places)
    assert said(found) == [("boundary", ("az:z1", "az:z2"))]
    assert found.verdicts[0].effect is None


def test_every_rack_apart_is_one_verdict_of_the_level() -> None:
    fleet = Fleet(32, seed=2, places=[f"r{at // 8}" for at in range(32)], across=0.7)
    places = {name: Placement(block=place.az) for name, place in fleet.placement.items()}
    pairs = np.concatenate(fleet.rounds())
    found = attribute(matrix(fleet.names, pairs, fleet.run(pairs)), places)
    assert said(found) == [("boundary", ("block:*",))]


def test_a_fleet_slow_as_a_whole_is_seen_by_the_expectation_of_its_type_only() -> None:
    fleet = Fleet(16, seed=1, nodes=dict.fromkeys(range(16), 0.1))
    assert not judged(fleet).verdicts
    [blame] = judged(Fleet(16, seed=1, nodes=dict.fromkeys(range(16), 0.1)), expected=(440.0, 520.0)).verdicts
    assert (blame.kind, blame.subjects) == (Kind.CLUSTER, ())
    assert blame.effect == pytest.approx(-0.9, abs=0.02)


def test_one_round_is_too_little_to_call_the_fleet_slow() -> None:
    fleet = Fleet(16, seed=1, nodes=dict.fromkeys(range(16), 0.1))
    found = judged(fleet, 1, expected=(440.0, 520.0))
    assert not found.verdicts
    assert any("too few runs" in note for note in found.notes)


def test_where_most_are_slow_the_fleet_is_called_slow_and_the_good_ones_are_named() -> None:
    found = judged(Fleet(64, seed=2, nodes=dict.fromkeys(range(45), 0.7)), None)
    assert said(found) == [("cluster", ())]
    assert "n[0045-0063]" in found.verdicts[0].why


# What must not matter.


def test_a_latency_is_slow_where_it_is_high() -> None:
    runs = [
        replace(one, metric=Metric.LATENCY, points={8: 30.0 if "c" in one.hosts else 15.0})
        for one in even("abcdef")
    ]
    [blame] = attribute(layout.build(runs)).verdicts
    assert blame.subjects == ("c",)
    assert blame.effect is not None
    assert blame.effect > 0


def test_the_rule_of_others_is_told_beside_and_decides_nothing() -> None:
    runs = even("abcdefgh")
    runs[0] = run("a", "b", 430.0)
    found = attribute(layout.build(runs))
    assert found.below_mean == (("a", "b"),)
    assert not found.verdicts


@given(st.permutations(range(12)), st.floats(0.001, 1e4))
@settings(max_examples=25, deadline=None)
def test_neither_order_nor_unit_changes_who_is_named(order: list[int], unit: float) -> None:
    fleet = Fleet(12, seed=6, nodes={2: 0.6})
    pairs = np.concatenate(fleet.rounds())
    values = fleet.run(pairs) * unit
    moved = np.array(order)[pairs]
    [blame] = attribute(matrix(fleet.names, moved, values)).verdicts
    assert blame.subjects == (fleet.names[order[2]],)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.one_of(st.none(), st.floats(1e-3, 1e6))),
        max_size=40,
    )
)
@settings(max_examples=150, deadline=None)
def test_whatever_was_run_a_node_is_named_by_two_pairs_or_not_at_all(
    runs: list[tuple[int, int, float | None]],
) -> None:
    made: Matrix = layout.build(run(f"n{a}", f"n{b}", value) for a, b, value in runs if a != b)
    found = attribute(made)
    for blame in found.verdicts:
        assert 0 < blame.confidence < 1
        if blame.kind is Kind.NODE:
            assert blame.slow >= 2
        if blame.kind is Kind.LINK:
            cell = made.cell(*(made.nodes.index(one) for one in blame.subjects))
            assert cell is not None
            assert len(cell.runs) >= 2
    assert set(found.standings) == set(made.nodes)
