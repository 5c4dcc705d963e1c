"""From the nodes of a target and the wishes of an operator to a plan, or to one line that says why not."""

from __future__ import annotations

from typing import Any

import pytest

from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans.base import (
    check_names,
    environment,
    folder,
    result,
    size,
    sizes,
    spelled,
)
from straggler.engine.bandwidth.plans.planning import Wishes, make
from straggler.engine.errors import UsageError
from straggler.engine.model import Node, Placement
from tests.support.sweeps import KNOWN, NODES, planned


def test_a_type_without_efa_is_not_told_of_efa() -> None:
    assert environment(KNOWN, 0) == ("NCCL_DEBUG=WARN",)
    assert environment(KNOWN, 4, ["NCCL_DEBUG=INFO", "A=b=c"]) == (
        "FI_PROVIDER=efa",
        "NCCL_DEBUG=INFO",
        "A=b=c",
    )


@pytest.mark.parametrize("text", ["", "A", "1A=b", "A=b\nc", "A =b", "A=\x1b"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        planned("ssh", environment=(text,))
    with pytest.raises(UsageError, match="NAME=VALUE"):
        planned("ssh", mca=(text,))


@pytest.mark.parametrize(
    "wish",
    [
        {"binary": "-x"},
        {"binary": "a\nb"},
        {"mpirun": "\x1b"},
        {"image": "a b"},
        {"image": "é"},
        {"gpus": -1},
    ],
)
def test_what_cannot_stand_in_a_script_is_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make(NODES, Wishes("kubernetes", **{"image": "i", **wish}), KNOWN, {})


@pytest.mark.parametrize(
    "name", ["", "-x", "a b", "a;reboot", "$(id)", "a__b", "../x", "a/b", "a\n", "ü", "[::1]", "a" * 300]
)
def test_a_name_that_cannot_stand_in_a_script_is_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError) as error:
        check_names(["fine-1", name])
    assert repr(name) in str(error.value)


def test_names_as_clusters_have_them_are_taken() -> None:
    check_names(["ip-10-1-2-3.ec2.internal", "hyperpod-i-0123456789abcdef0", "10.77.0.2", "gpu_a-01", "x"])


def test_results_are_named_by_round_and_nodes() -> None:
    assert result(Round(0, (("a",),)), ["a"]) == "round-00/a.txt"
    assert result(Round(3, (("a", "b"),)), ["a", "b"]) == "round-03/a__b.txt"
    assert result(Round(1, (("a", "b"),), alone=True), ["a", "b"]) == "alone-001/a__b.txt"
    assert folder(Round(120, ())) == "round-120"


def test_sizes_are_read_and_written_as_nccl_tests_does() -> None:
    assert sizes("8M:8G") == (8 << 20, 8 << 30)
    assert sizes("1G") == (1 << 30, 1 << 30)
    assert [spelled(size(one)) for one in ("8", "8K", "1536M", "2G", "2048M", "8MiB")] == [
        "8",
        "8K",
        "1536M",
        "2G",
        "2G",
        "8M",
    ]
    for wrong in ("", "x", "8T", "-1", "0", "8G:8M", "8M:", "1.5G"):
        with pytest.raises(UsageError):
            sizes(wrong)


def test_nodes_are_in_the_order_they_are_drawn() -> None:
    assert make(NODES[::-1], Wishes("ssh"), KNOWN, {}).plan.nodes == tuple(node.id for node in NODES)


def test_the_topology_given_wins_over_the_targets_own() -> None:
    plan = make(NODES, Wishes("ssh"), KNOWN, {NODES[3].id: Placement("az0")}).plan
    assert plan.nodes[:3] == (NODES[0].id, NODES[1].id, NODES[3].id)
    assert plan.placement[NODES[3].id] == (("az", "az0"),)


def test_nodes_without_gpus_are_left_out_and_said() -> None:
    planned = make([*NODES, Node("login", instance_type="ml.m5.xlarge")], Wishes("ssh"), KNOWN, {})
    assert "login" not in planned.plan.nodes
    assert "login" in planned.notes[0]


def test_two_types_are_not_mixed() -> None:
    other = [Node("p4-1", instance_type="ml.p4d.24xlarge"), Node("p4-2", instance_type="ml.p4d.24xlarge")]
    with pytest.raises(UsageError, match=r"--instance-type p4d\.24xlarge"):
        make([*NODES, *other], Wishes("ssh"), KNOWN, {})
    plan = make([*NODES, *other], Wishes("ssh", instance_type="ml.p4d.24xlarge"), KNOWN, {}).plan
    assert (plan.nodes, plan.load.efa) == (("p4-1", "p4-2"), 4)


def test_trainium_is_told_which_test_it_has() -> None:
    nodes = [Node(f"t{n}", instance_type="ml.trn1.32xlarge") for n in range(2)]
    with pytest.raises(UsageError, match=r"trn1\.32xlarge .*does not run NCCL.*nccom-test"):
        make(nodes, Wishes("slurm"), KNOWN, {})
    with pytest.raises(UsageError, match="nccom-test"):
        make(NODES, Wishes("slurm", instance_type="trn2.48xlarge"), KNOWN, {})


def test_a_type_nobody_knows_is_not_guessed() -> None:
    nodes = [Node("a"), Node("b")]
    with pytest.raises(UsageError, match="--gpus N"):
        make(nodes, Wishes("ssh"), KNOWN, {})
    load = make(nodes, Wishes("ssh", gpus=2), KNOWN, {}).plan.load
    assert (load.gpus, load.efa, load.environment) == (2, 0, ("NCCL_DEBUG=WARN",))
    assert make(nodes, Wishes("ssh", instance_type="p5en.48xlarge"), KNOWN, {}).plan.load.efa == 16
    with pytest.raises(UsageError, match="no such type"):
        make(nodes, Wishes("ssh", instance_type="p9.big"), KNOWN, {})


def test_only_the_pairs_asked_for_are_planned_in_few_rounds() -> None:
    names = [node.id for node in NODES]
    pairs = ((names[0], names[1]), (names[2], names[3]), (names[0], names[2]))
    plan = make(NODES, Wishes("ssh", pairs=pairs), KNOWN, {}).plan
    assert [len(one.members) for one in plan.rounds] == [4, 2, 1]
    with pytest.raises(UsageError, match="'nobody'"):
        make(NODES, Wishes("ssh", pairs=((names[0], "nobody"),)), KNOWN, {})


def test_one_node_is_too_few() -> None:
    with pytest.raises(UsageError, match="two nodes"):
        make(NODES[:1], Wishes("ssh"), KNOWN, {})


def test_a_run_is_estimated_from_the_line_rate() -> None:
    slow = make(
        [Node(n, instance_type="p4d.24xlarge") for n in "ab"], Wishes("ssh"), KNOWN, {}
    ).plan.load.seconds
    fast = planned("ssh").load.seconds
    assert 10 < fast < 30 < slow < 60
    assert planned("ssh", deadline=5).load.seconds == 5
