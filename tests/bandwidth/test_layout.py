"""Runs laid out by pair: which size is compared, what stands for a pair, and that nothing is lost or made up."""

from __future__ import annotations

from itertools import pairwise

import pytest

from straggler.engine.bandwidth.layout import build
from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.bandwidth.readers import read_runs


def ok(a: str, b: str, **points: float) -> Run:
    sizes = {int(name.removeprefix("s")): value for name, value in points.items()}
    return Run("", "nccl-tests", (a, b), RunState.OK, points=sizes, collective="all_reduce")


def value(runs: list[Run], a: str = "a", b: str = "b") -> float | None:
    made = build(runs)
    cell = made.cell(made.nodes.index(a), made.nodes.index(b))
    assert cell is not None
    return cell.value


def test_the_largest_size_all_have_is_compared() -> None:
    made = build([ok("a", "b", s8=1, s16=2, s32=3), ok("b", "c", s8=1, s16=2)])
    assert made.size == 16


def test_one_run_that_stopped_early_does_not_set_the_size_of_all() -> None:
    runs = [ok("a", f"n{at}", s8=1, s32=3) for at in range(20)]
    assert build([*runs, ok("b", "c", s8=1)]).size == 32


def test_a_pair_without_that_size_has_no_value_and_is_counted() -> None:
    runs = [ok("a", f"n{at}", s8=1, s32=3) for at in range(20)]
    made = build([*runs, ok("b", "c", s8=1)])
    cell = made.cell(made.nodes.index("b"), made.nodes.index("c"))
    assert cell is not None
    assert cell.value is None
    assert any("do not have the message size" in note for note in made.notes)


def test_the_best_of_several_runs_stands_for_a_pair_in_either_order() -> None:
    assert value([ok("a", "b", s8=3), ok("b", "a", s8=5)]) == 5


def test_of_latencies_the_lowest_is_the_best() -> None:
    runs = [
        Run("", "fi_pingpong", ("a", "b"), RunState.OK, points={8: at}, metric=Metric.LATENCY)
        for at in (20.0, 15.0)
    ]
    assert value(runs) == 15


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.TRUNCATED])
def test_a_run_that_did_not_end_well_is_a_state_and_never_a_zero(state: RunState) -> None:
    made = build([ok("a", "b", s8=3), Run("", "nccl-tests", ("a", "c"), state, "hung", points={8: 1.0})])
    cell = made.cell(0, 2)
    assert cell is not None
    assert (cell.value, cell.state) == (None, state)


def test_more_than_the_wire_carries_is_not_believed() -> None:
    made = build([ok("a", "b", s8=900), ok("a", "c", s8=480)], ceiling=lambda run: 750.0)
    assert made.cell(0, 1).state is RunState.IMPLAUSIBLE  # type: ignore[union-attr]
    assert made.cell(0, 1).value is None  # type: ignore[union-attr]
    assert "900 GB/s is more than the 750 GB/s" in made.cell(0, 1).runs[0].why  # type: ignore[union-attr]


def test_other_collectives_are_left_out_and_said_so() -> None:
    other = Run("", "nccl-tests", ("a", "c"), RunState.OK, points={8: 3.0}, collective="alltoall")
    made = build([ok("a", "b", s8=3), ok("b", "c", s8=3), other])
    assert len(made) == 2
    assert any("alltoall" in note for note in made.notes)


def test_a_log_of_many_hosts_is_no_pair() -> None:
    many = Run("", "nccl-tests", ("a", "b", "c"), RunState.OK, points={8: 3.0}, collective="all_reduce")
    made = build([ok("a", "b", s8=3), many])
    assert len(made) == 1
    assert made.groups == (many,)


def test_a_csv_without_sizes_is_compared_as_it_is() -> None:
    made = build(read_runs(b"a,b,busbw_gbs\nx,y,480\nx,z,240\ny,z,241\n", "pairs.csv"))
    assert [made.cell_at(at).value for at in range(3)] == [480, 240, 241]


def test_other_names_of_a_node_are_the_node() -> None:
    made = build([ok("ip-10-0-0-7", "w2", s8=3)], ["w1", "w2"], names={"ip-10-0-0-7": "w1"})
    assert made.nodes == ("w1", "w2")
    assert made.cell(0, 1) is not None


def test_nodes_keep_the_order_they_are_given_in_and_others_follow_in_natural_order() -> None:
    made = build([ok("n10", "n9", s8=3), ok("z", "a", s8=3)], ["z", "a"])
    assert made.nodes == ("z", "a", "n9", "n10")


def test_a_host_with_and_without_its_domain_is_one_node() -> None:
    runs = [
        Run("1", "nccl-tests", ("n1", "n2"), RunState.OK, points={8: 400.0}),
        Run("2", "nccl-tests", ("n1.ec2.internal", "n3"), RunState.OK, points={8: 410.0}),
    ]
    assert build(runs).nodes == ("n1", "n2", "n3")
    assert build(runs, ("n1.ec2.internal",)).nodes == ("n1.ec2.internal", "n2", "n3")
    assert build(runs, ("n1.ec2.internal", "n1")).nodes == ("n1.ec2.internal", "n1", "n2", "n3")


def test_hosts_of_one_short_name_in_two_domains_and_addresses_stay_apart() -> None:
    names = ("n1", "n1.east", "n1.west", "10", "10.0.0.1")
    runs = [Run("1", "nccl-tests", (a, b), RunState.OK, points={8: 400.0}) for a, b in pairwise(names)]
    assert set(build(runs).nodes) == set(names)
