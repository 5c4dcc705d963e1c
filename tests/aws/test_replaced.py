"""Nodes that go away while they are read: what became of them is said, not only that they do not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.targets.base import Target
from straggler.engine.targets.hyperpod import hyperpod_target
from tests.aws import hyperpod
from tests.aws.fake import FakeAws
from tests.aws.hyperpod import FakeCluster
from tests.ssm.asking import script

OLD, NEW = "i-00000000000000002", "i-0fffffffffffffff2"


@pytest.fixture
def made(aws: FakeAws) -> FakeCluster:
    """Four nodes, none of which the Session Manager knows."""
    made = hyperpod.cluster("train", 4, NodeProvisioningMode="Continuous")
    for number, one in enumerate(made.nodes):
        one["NodeLogicalId"] = f"node-{number}"
    hyperpod.serve(aws, [made])
    aws.fail("ssm", "StartSession", "TargetNotConnected", message="is not connected.")
    return made


def target() -> Target:
    return hyperpod_target("train", rate=1000.0)


def why(read: Target, at: int = 2) -> TransportError:
    """How reading that node ends."""

    async def run() -> None:
        async for _ in read.transport.run(read.nodes[at], script("true")):
            pass

    with pytest.raises(TransportError) as met:
        asyncio.run(run())
    return met.value


def test_a_node_that_was_replaced_names_the_one_in_its_place(made: FakeCluster) -> None:
    read = target()
    made.nodes[2] = made.nodes[2] | {"InstanceId": NEW}
    met = why(read)
    assert met.status is Status.UNREACHABLE
    assert met.why.startswith(f"it was replaced meanwhile: {NEW} is in its place (")
    assert "not connected to Session Manager" in met.why


def test_a_node_whose_successor_has_no_machine_yet_says_so(made: FakeCluster) -> None:
    read = target()
    made.nodes[2] = made.nodes[2] | {"InstanceId": ""}
    assert why(read).why.startswith("it is being replaced: its successor is still being provisioned (")


def test_without_logical_ids_it_is_gone_and_the_new_ones_are_named(made: FakeCluster, aws: FakeAws) -> None:
    made.about["NodeProvisioningMode"] = None
    read = target()
    made.nodes[2] = made.nodes[2] | {"InstanceId": NEW}
    assert why(read).why.startswith(f"the cluster does not list it any more; new in its group: {NEW} (")
    assert not any("IncludeNodeLogicalIds" in one.params for one in aws.asked("ListClusterNodes"))


@pytest.mark.parametrize("status", ["ShuttingDown", "SystemUpdating", "DeepHealthCheckInProgress", "Failure"])
def test_a_node_that_is_not_running_says_what_the_cluster_does_with_it(
    made: FakeCluster, status: str
) -> None:
    read = target()
    made.nodes[2]["InstanceStatus"] = {"Status": status, "Message": "hardware"}
    assert why(read).why.startswith(f"the cluster says it is {status}: hardware (")


def test_a_node_that_runs_only_does_not_answer(made: FakeCluster) -> None:
    assert why(target()).why.startswith("the node is not connected to Session Manager")


def test_a_cluster_that_cannot_be_asked_again_takes_nothing_away(made: FakeCluster, aws: FakeAws) -> None:
    read = target()
    aws.deny("sagemaker", "ListClusterNodes")
    assert why(read).why.startswith("the node is not connected to Session Manager")


def test_the_cluster_is_asked_once_for_many_nodes(made: FakeCluster, aws: FakeAws) -> None:
    read = target()
    aws.calls.clear()

    async def all_of_them() -> list[Any]:
        async def one(at: int) -> None:
            async for _ in read.transport.run(read.nodes[at], script("true")):
                pass

        return await asyncio.gather(*(one(at) for at in range(4)), return_exceptions=True)

    assert all(isinstance(one, TransportError) for one in asyncio.run(all_of_them()))
    assert len(aws.asked("ListClusterNodes")) == 1


def test_nodes_that_wait_for_a_machine_are_counted_not_read(made: FakeCluster) -> None:
    made.nodes.append(made.nodes[3] | {"InstanceId": "", "NodeLogicalId": "node-9"})
    read = target()
    assert len(read.nodes) == 4
    assert "still being provisioned and not read: 1" in read.notes
