"""The simulated fabric: what a pair reaches follows from its faults, and its log is read back as any other."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from straggler.engine.bandwidth.model import Metric, Round, Run, RunState
from straggler.engine.bandwidth.readers import read_runs
from straggler.engine.simcluster import SAYS, SimNode, fabric, nccl_tests
from straggler.engine.simcluster.scenarios import SCENARIOS, build
from straggler.engine.targets.demo import demo_target

CEILING_GBS = 750.0
"""2(n-1)/n of a p5's 400 GB/s line rate, n = 16 ranks."""


def pairs(sims: Mapping[str, SimNode]) -> list[tuple[SimNode, SimNode]]:
    nodes = list(sims.values())
    return [(one, other) for at, one in enumerate(nodes) for other in nodes[at + 1 :]]


def carriers(sims: Mapping[str, SimNode], word: str) -> set[str]:
    return {node.id for node in sims.values() if word in node.faults}


def reached(one: SimNode, other: SimNode, number: int = 1) -> float:
    found = fabric.value(one, other, number)
    assert found is not None
    return found


def circle(sims: Mapping[str, SimNode], count: int) -> list[Round]:
    """Each node alone, then `count` rounds of disjoint pairs."""
    names = list(sims)
    rounds = [Round(0, tuple((name,) for name in names))]
    for number in range(1, count + 1):
        half = len(names) // 2
        rounds.append(Round(number, tuple(zip(names[:half], reversed(names[half:]), strict=False))))
        names = [names[0], names[-1], *names[1:-1]]
    return rounds


def read(sims: Mapping[str, SimNode], rounds: list[Round]) -> dict[str, Run]:
    found = {}
    for name, text in nccl_tests.runs(sims, rounds):
        [found[name]] = read_runs(text.encode(), name)
    return found


def test_a_healthy_pair_of_p5_reaches_what_is_published_for_it() -> None:
    values = [reached(one, other) for one, other in pairs(build("healthy", 16, 3))]
    assert statistics.median(values) == pytest.approx(479, rel=0.01)
    assert 0.01 < statistics.stdev(values) / statistics.mean(values) < 0.03
    assert max(values) < CEILING_GBS


def test_which_node_is_named_first_changes_nothing_and_a_repeat_is_another_draw() -> None:
    one, other = build("healthy", 2, 0).values()
    assert fabric.value(one, other, 1) == fabric.value(other, one, 1)
    assert len({fabric.value(one, other, number) for number in range(1, 20)}) == 19


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_node_is_slow_with_everybody_but_not_alone(seed: int) -> None:
    sims = build("slow-node", 16, seed)
    [slow] = carriers(sims, "slow-node")
    by_pair = {(one.id, other.id): reached(one, other) for one, other in pairs(sims)}
    rest = statistics.median(value for pair, value in by_pair.items() if slow not in pair)
    for pair, value in by_pair.items():
        assert (0.60 < value / rest < 0.82) if slow in pair else (value / rest > 0.9)
    alone = [fabric.alone(node, 0) or 0 for node in sims.values()]
    assert min(alone) > 0.9 * statistics.median(alone)


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_link_is_slow_between_its_two_nodes_only(seed: int) -> None:
    sims = build("slow-link", 16, seed)
    ends = carriers(sims, "slow-link")
    assert len(ends) == 2
    for one, other in pairs(sims):
        assert (reached(one, other) < 0.72 * 479) is ({one.id, other.id} == ends)


def test_pairs_across_zones_are_on_tcp_and_all_others_on_efa() -> None:
    sims = build("cross-az", 16, 2)
    assert len(carriers(sims, "other-az")) == 4
    for one, other in pairs(sims):
        assert (5 < reached(one, other) < 8) if one.az != other.az else (reached(one, other) > 400)


def test_the_target_says_which_zone_a_node_is_in_and_zones_share_no_switch() -> None:
    target, sims = demo_target("cross-az", 16, 2), build("cross-az", 16, 2)
    assert {node.id: node.placement.az for node in target.nodes} == {
        node.id: node.az for node in sims.values()
    }
    switches: dict[str | None, set[str]] = {}
    for node in target.nodes:
        switches.setdefault(node.placement.az, set()).update(node.placement.layers)
    home, other = switches.values()
    assert not home & other


def test_without_the_efa_provider_every_pair_is_on_tcp_and_the_nodes_say_so_too() -> None:
    sims = build("tcp-fallback", 8, 1)
    assert all(5 < reached(one, other) < 10 for one, other in pairs(sims))
    for node in sims.values():
        assert "fi_getinfo: -61" in SAYS["libfabric"](node).text
    [(_, text)] = nccl_tests.runs(sims, [Round(1, (("worker-001", "worker-002"),))])
    assert text.count("NCCL INFO Using network Socket\n") == 16
    assert text.count("fi_getinfo() call failed: No data available\n") == 16


@pytest.mark.parametrize(
    ("scenario", "differs"),
    [
        ("slow-node", set()),
        ("slow-link", set()),
        ("majority-slow", set()),
        ("cross-az", set()),
        ("tcp-fallback", {"libfabric"}),
    ],
)
def test_a_node_shows_of_its_fault_what_its_own_tools_can_see_and_no_more(
    scenario: str, differs: set[str]
) -> None:
    for node in build(scenario, 8, 1).values():
        whole = replace(node, faults=frozenset())
        assert {name for name, say in SAYS.items() if say(node) != say(whole)} == differs


@pytest.mark.parametrize("seed", range(5))
def test_when_most_nodes_are_slow_the_median_pair_is_slow(seed: int) -> None:
    sims = build("majority-slow", 20, seed)
    assert len(carriers(sims, "majority-slow")) == 14
    values = [reached(one, other) for one, other in pairs(sims)]
    assert statistics.median(values) < 0.8 * 479
    assert max(values) > 0.95 * 479


def test_a_port_that_is_down_costs_its_share_of_the_node() -> None:
    sims = build("efa-down", 8, 1)
    [node] = carriers(sims, "efa-down")
    own = [
        reached(one, other, n) for one, other in pairs(sims) for n in range(9) if node in (one.id, other.id)
    ]
    rest = [
        reached(one, other, n)
        for one, other in pairs(sims)
        for n in range(9)
        if node not in (one.id, other.id)
    ]
    assert statistics.mean(own) / statistics.mean(rest) == pytest.approx(1 - 1 / 32, abs=0.006)


def test_a_slow_wire_shows_less_the_smaller_the_message() -> None:
    sims = build("slow-node", 2, 1)
    slow, well = sorted(sims.values(), key=lambda node: not node.faults)
    fine = SimNode(slow.id, slow.number, seed=slow.seed)
    left = [
        (fabric.value(slow, well, 1, size) or 0) / (fabric.value(fine, well, 1, size) or 1)
        for size in fabric.SIZES
    ]
    assert left[0] > left[3] > left[-1]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_seed_gives_the_same_bytes(scenario: str) -> None:
    first, second = (build(scenario, 8, 5) for _ in range(2))
    rounds = circle(first, 2)
    assert list(nccl_tests.runs(first, rounds)) == list(nccl_tests.runs(second, rounds))
    if scenario != "unreachable-nodes":
        other = build(scenario, 8, 6)
        assert list(nccl_tests.runs(first, rounds)) != list(nccl_tests.runs(other, rounds))


def test_the_table_has_the_columns_and_widths_of_the_tool() -> None:
    [(name, text)] = nccl_tests.runs(build("healthy", 2, 1), [Round(1, (("worker-001", "worker-002"),))])
    assert name == "round-01/worker-001__worker-002.txt"
    lines = text.split("\n")
    assert lines[0].startswith("# nccl-tests version 2.19.6 nccl-headers=22605")
    assert re.search(
        r"\n#  Rank  8 Group  0 Pid [ 0-9]{6} on worker-002 device  0 \[0000:53:00\] NVIDIA H100 80GB HBM3\n",
        text,
    )
    rows = [line for line in lines if re.match(r" +[0-9]+ +[0-9]+ +float", line)]
    assert [int(row.split()[0]) for row in rows] == [8 * 2**20 << at for at in range(11)]
    row = re.compile(
        r"[ 0-9]{12}  [ 0-9]{12}     float     sum      -1(  [ 0-9.]{7}(  [ 0-9.]{6}){2}       0){2}"
    )
    assert all(row.fullmatch(line) for line in rows)
    heading = next(line for line in lines if line.startswith("#       size"))
    assert heading == (
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong "
    )
    assert text.endswith("#\n# Collective test concluded: all_reduce_perf\n#\n\n")


def test_a_number_has_the_decimals_its_column_has_room_for() -> None:
    [(_, slow)] = nccl_tests.runs(build("tcp-fallback", 2, 1), [Round(1, (("worker-001", "worker-002"),))])
    times = [line.split()[5] for line in slow.splitlines() if " float " in line]
    assert [len(time.partition(".")[2]) for time in (times[0], times[4], times[-1])] == [2, 1, 0]


@pytest.mark.parametrize(
    "scenario", ["healthy", "slow-node", "slow-link", "cross-az", "tcp-fallback", "majority-slow"]
)
def test_every_run_is_read_back_as_it_was(scenario: str) -> None:
    sims = build(scenario, 8, 4)
    for name, run in read(sims, circle(sims, 7)).items():
        at, names = int(name[6:8]), name[9:-4].split("__")
        one, other = sims[names[0]], sims[names[-1]]
        value = fabric.alone(one, at) if at == 0 else fabric.value(one, other, at)
        assert (run.state, run.hosts, run.metric) == (RunState.OK, tuple(names), Metric.BUSBW)
        assert run.points[fabric.TOP] == pytest.approx(value, abs=0.006)
        assert tuple(run.points) == fabric.SIZES


def test_a_run_with_a_lost_gpu_fails_by_name_and_the_others_do_not() -> None:
    sims = build("xid-79", 8, 1)
    [lost] = carriers(sims, "xid-79")
    for name, run in read(sims, circle(sims, 3)).items():
        if lost in run.hosts:
            assert run.state is RunState.FAILED, name
            assert "unhandled cuda error" in run.why, name
        else:
            assert run.state is RunState.OK, name


def test_a_run_with_an_unreachable_node_is_that_pairs_failure() -> None:
    sims = build("unreachable-nodes", 8, 1)
    away = carriers(sims, "unreachable")
    found = read(sims, circle(sims, 3))
    assert {name for name, run in found.items() if run.state is not RunState.OK} == {
        name for name in found if away & set(name[9:-4].split("__"))
    }
    for name, run in found.items():
        assert run.hosts == tuple(name[9:-4].split("__"))


def test_a_run_over_three_nodes_is_refused_and_an_unknown_node_is_no_node() -> None:
    sims = build("healthy", 4, 0)
    with pytest.raises(ValueError, match="not 3"):
        list(nccl_tests.runs(sims, [Round(1, (tuple(sims)[:3],))]))
    with pytest.raises(KeyError):
        list(nccl_tests.runs(sims, [Round(1, (("worker-001", "worker-9"),))]))


def test_a_log_is_made_when_it_is_asked_for() -> None:
    sims = build("slow-node", 1024, 0)

    def rounds() -> Iterator[Round]:
        yield from circle(sims, 1)[1:]
        raise AssertionError("nobody asked for a second round")

    logs = nccl_tests.runs(sims, rounds())
    made = [next(logs)[0] for _ in range(512)]
    assert made[0] == "round-01/worker-0001__worker-1024.txt"
