"""What the cluster says of itself and its nodes becomes findings; what may not be asked is unknown, and a replay says the same."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from straggler.engine import knowledge, readings
from straggler.engine.diagnosis import Diagnosis
from straggler.engine.judge import Report
from straggler.engine.model import Finding, Level, Observation, Status, Window
from straggler.engine.session import describe
from straggler.engine.targets.hyperpod import hyperpod_target
from straggler.engine.targets.replay import Replay, replay_session
from straggler.engine.triage import plan
from tests.aws import hyperpod
from tests.aws.fake import FakeAws
from tests.aws.hyperpod import FakeCluster

KNOWN = knowledge.load()
NOW = datetime.now(timezone.utc)


@pytest.fixture
def made(aws: FakeAws) -> FakeCluster:
    made = hyperpod.cluster("train", 3)
    hyperpod.serve(aws, [made])
    return made


def opened() -> Diagnosis:
    return Diagnosis(
        hyperpod_target("train", rate=1000.0),
        plan("everything", KNOWN),
        KNOWN,
        Window(0, NOW.timestamp()),
    )


def ask(one: Diagnosis) -> Report:
    async def all_of_them() -> None:
        for reading in one.target.readings:
            await readings.take(reading, one.take)
        await one.settle()

    asyncio.run(all_of_them())
    return one.report()


def said(report: Report) -> dict[str, Finding]:
    return {one.id: one for one in report.findings if one.id.startswith("cluster.")}


def test_a_sound_cluster_accuses_nobody(made: FakeCluster) -> None:
    found = said(ask(opened()))
    assert {name: one.level for name, one in found.items()} == {
        "cluster.in-service": Level.PASS,
        "cluster.nodes-run": Level.PASS,
    }


def test_a_failed_cluster_gives_its_own_words(made: FakeCluster) -> None:
    made.about |= {"ClusterStatus": "Failed", "FailureMessage": "no capacity for p5"}
    found = said(ask(opened()))["cluster.failed"]
    assert found.level is Level.FAIL
    assert found.details == (("cluster", "Failed: no capacity for p5"),)


@pytest.mark.parametrize("status", ["Creating", "Updating", "SystemUpdating"])
def test_a_cluster_in_passing_is_no_fault(made: FakeCluster, status: str) -> None:
    made.about["ClusterStatus"] = status
    assert said(ask(opened()))["cluster.changing"].level is Level.INFO


@pytest.mark.parametrize(("status", "urgency"), [("RollingBack", "P2"), ("Deleting", "P1")])
def test_a_rollback_or_an_end_is_worth_a_word(made: FakeCluster, status: str, urgency: str) -> None:
    made.about["ClusterStatus"] = status
    found = said(ask(opened()))["cluster.changing"]
    assert (found.level, found.priority) == (Level.WARN, urgency)


def test_an_old_failure_of_a_cluster_in_service_does_not_block(made: FakeCluster) -> None:
    made.about["FailureMessage"] = "an update failed"
    found = said(ask(opened()))["cluster.failed"]
    assert (found.level, found.priority) == (Level.WARN, "P2")


@pytest.mark.parametrize("status", ["SystemUpdating", "ShuttingDown", "DeepHealthCheckInProgress", "Pending"])
def test_a_node_in_passing_is_no_fault(made: FakeCluster, status: str) -> None:
    made.nodes[1] |= {"InstanceStatus": {"Status": status}, "LaunchTime": NOW - timedelta(minutes=20)}
    found = said(ask(opened()))
    assert found["cluster.node-changing"].level is Level.INFO
    assert found["cluster.node-changing"].subjects == (made.nodes[1]["InstanceId"],)
    assert not any(one.level.is_fault for one in found.values())


@pytest.mark.parametrize("status", ["DeepHealthCheckInProgress", "Pending"])
def test_a_node_that_never_arrives_is_one(made: FakeCluster, status: str) -> None:
    made.nodes[1] |= {"InstanceStatus": {"Status": status}, "LaunchTime": NOW - timedelta(hours=9)}
    found = said(ask(opened()))["cluster.node-stuck"]
    assert found.level is Level.WARN
    # The program counts from its own now, a little after the test's.
    assert re.search(r"\b54[0-5] min since", found.details[0][1])


@pytest.mark.parametrize("status", ["Failure", "NotFound"])
def test_a_failed_node_is_named_with_its_message(made: FakeCluster, status: str) -> None:
    made.nodes[2]["InstanceStatus"] = {"Status": status, "Message": "health check"}
    found = said(ask(opened()))["cluster.node-failed"]
    assert found.subjects == (made.nodes[2]["InstanceId"],)
    assert found.details[0][1] == f"{status}: health check"


def test_recovery_that_is_off_is_told_not_accused(made: FakeCluster) -> None:
    made.about["NodeRecovery"] = "None"
    assert said(ask(opened()))["cluster.recovery-off"].level is Level.INFO


def test_a_mixed_group_names_the_types(made: FakeCluster) -> None:
    made.nodes[0]["InstanceType"] = "ml.p4d.24xlarge"
    found = said(ask(opened()))["cluster.mixed-types"]
    assert [kind for _, kind in found.details] == ["ml.p4d.24xlarge", "ml.p5.48xlarge"]


@pytest.mark.parametrize(
    ("operation", "reading", "cost", "silent"),
    [
        ("DescribeCluster", "cluster.status", "whether the cluster failed", "cluster.in-service"),
        ("ListClusterNodes", "cluster.nodes", "which nodes failed", "cluster.nodes-run"),
    ],
)
def test_what_is_denied_is_unknown_and_says_what_it_costs(
    made: FakeCluster, aws: FakeAws, operation: str, reading: str, cost: str, silent: str
) -> None:
    one = opened()
    aws.deny("sagemaker", operation)
    report = ask(one)
    found = said(report)
    assert found["cluster.not-read"].level is Level.UNKNOWN
    assert found["cluster.not-read"].reference == "remedies/coverage.md#denied"
    assert f"sagemaker:{operation}" in found["cluster.not-read"].details[0][1]
    assert cost in found["cluster.not-read"].details[0][1]
    assert silent not in found
    assert [(gap.collector, gap.status) for gap in report.uncovered] == [(reading, Status.DENIED)]


def test_an_answer_that_is_not_understood_is_unknown(made: FakeCluster) -> None:
    one = opened()
    ask(one)

    async def garbled() -> str:
        return '{"ClusterArn": 7, "InstanceGroups": 3}'

    broken = readings.Reading("cluster.status", "", (), garbled)
    asyncio.run(readings.take(broken, one.take))
    assert said(one.report())["cluster.not-read"].unread is Status.GARBLED


def test_a_run_asks_beside_the_nodes_and_a_replay_says_the_same(
    made: FakeCluster, aws: FakeAws, tmp_path: Path
) -> None:
    made.nodes[2]["InstanceStatus"] = {"Status": "Failure", "Message": "gone"}
    aws.fail("ssm", "StartSession", "TargetNotConnected", message="is not connected.")
    one = opened()

    async def run() -> None:
        await one.run()
        await one.settle()

    with one.journaled(tmp_path) as journal:
        asyncio.run(run())
        name = journal.id
        live = said(one.report())
    asked = len(aws.calls)
    again = Replay(replay_session(name, tmp_path))
    told = Diagnosis(again.target, one.plan, KNOWN, one.window)

    async def play() -> None:
        async for event in again.events():
            told.keep(event)

    asyncio.run(play())
    assert said(told.report()) == live
    assert "cluster.node-failed" in live
    assert len(aws.calls) == asked


def test_an_outcome_of_the_cluster_is_no_node(made: FakeCluster) -> None:
    one = opened()
    heard: list[object] = []
    one.listeners.append(heard.append)
    ask(one)
    assert all(isinstance(event, Observation) and readings.of_cluster(event) for event in heard)
    assert "cluster" not in one.seen
    assert describe(one.target, "everything", one.window)
