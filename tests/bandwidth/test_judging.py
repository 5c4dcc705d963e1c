"""Runs beside what their instance type should reach: also where a file does not say all of what was run."""

from __future__ import annotations

from itertools import combinations

from straggler.engine import knowledge
from straggler.engine.bandwidth import judging
from straggler.engine.bandwidth.model import Kind
from straggler.engine.bandwidth.readers import read_runs
from straggler.engine.model import Finding, Level
from straggler.engine.rules.pairs import pair_findings

GIB = 2**30


def pairs(value: float, size: int | None = 8 * GIB) -> bytes:
    head = "a,b,busbw_gbs" + ("" if size is None else ",size_bytes") + "\n"
    tail = "" if size is None else f",{size}"
    nodes = [f"node{at:02}" for at in range(8)]
    return (head + "".join(f"{a},{b},{value}{tail}\n" for a, b in combinations(nodes, 2))).encode()


def test_a_csv_of_a_fleet_on_tcp_is_called_slow_by_its_type() -> None:
    view = judging.view(read_runs(pairs(14.4), "pairs.csv"), knowledge.load(), instance_type="ml.p5.48xlarge")
    [blame] = view.attribution.verdicts
    assert blame.kind is Kind.CLUSTER
    assert blame.effect is not None
    assert blame.effect < -0.9
    assert any("all_reduce" in note for note in view.attribution.notes)


def test_a_csv_of_a_healthy_fleet_is_not() -> None:
    view = judging.view(
        read_runs(pairs(478.0), "pairs.csv"), knowledge.load(), instance_type="ml.p5.48xlarge"
    )
    assert not view.attribution.verdicts
    assert view.expected.low is not None


def test_without_a_type_or_a_size_there_is_nothing_to_hold_it_against() -> None:
    known = knowledge.load()
    for data, kind in (
        (pairs(14.4), None),
        (pairs(14.4, None), "p5.48xlarge"),
        (pairs(14.4), "no-such-type"),
    ):
        view = judging.view(read_runs(data, "pairs.csv"), known, instance_type=kind)
        assert not view.attribution.verdicts
        assert view.expected.low is None


def test_more_than_the_wire_carries_is_implausible_and_judged_by_nobody() -> None:
    view = judging.view(read_runs(pairs(900.0), "pairs.csv"), knowledge.load(), instance_type="p5.48xlarge")
    assert {one.state.value for one in view.matrix.cells()} == {"implausible"}
    assert view.attribution.median is None
    assert not view.attribution.verdicts


def findings(data: bytes, kind: str | None = "p5.48xlarge") -> dict[str, Finding]:
    known = knowledge.load()
    view = judging.view(read_runs(data, "pairs.csv"), known, instance_type=kind)
    return {one.id: one for one in pair_findings(view, [], known)}


def test_good_news_says_that_the_type_is_met_only_where_it_is() -> None:
    assert "as fast as their type should be" in findings(pairs(478.0))["bandwidth.even"].title
    # Short of it by too little for a verdict: that is told, and is not the good news that it is met.
    near = findings(pairs(429.0))
    assert "below what their type should reach" in near["bandwidth.even"].title
    assert "bandwidth.not-covered" in near
    assert "type" not in findings(pairs(478.0), None)["bandwidth.even"].title


def test_messages_too_small_to_judge_by_are_no_pass() -> None:
    small = findings(pairs(0.02, 1024))
    assert "bandwidth.too-small" in small
    assert small["bandwidth.even"].level is Level.INFO
