"""What may be done here is tried before the work; a denial is a cost in words, never a result of a check."""

from __future__ import annotations

from pathlib import Path

import pytest

from straggler.engine.aws import errors, preflight, reading
from straggler.engine.aws.clients import open_clients
from straggler.engine.aws.operations import OPERATIONS, Kind
from straggler.engine.aws.preflight import Preflight, State
from tests.aws import hyperpod
from tests.aws.fake import FakeAws
from tests.aws.program import straggler


async def found(aws: FakeAws, **about: str) -> Preflight:
    hyperpod.serve(aws, [hyperpod.cluster("train", 2, **about)])
    pod = await reading.read(open_clients(), "train")
    return await preflight.check(pod)


def states(found: Preflight) -> dict[str, State]:
    return {one.operation.action: one.state for one in found.permissions}


async def test_everything_that_can_be_tried_is_tried_and_nothing_else_is_called(aws: FakeAws) -> None:
    told = await found(aws, NodeProvisioningMode="Continuous")
    assert told.account == "123456789012"
    assert told.arn.startswith("arn:aws:sts::")
    assert told.region == "us-east-1"
    unknown = {action for action, state in states(told).items() if state is not State.ALLOWED}
    # Sessions cannot be tried without making one, an event not without having one.
    sessions = {"ssm:StartSession", "ssm:ResumeSession", "ssm:TerminateSession", "kms:GenerateDataKey"}
    assert unknown == sessions | {"sagemaker:DescribeClusterEvent"}
    assert not {one for one in aws.operations() if one[0] in ("ssm", "kms")}
    assert preflight.costs(told, {}) == ()


async def test_every_operation_that_a_check_may_need_has_a_state(aws: FakeAws) -> None:
    told = {one.key for one in (await found(aws)).permissions}
    before = {("sts", "GetCallerIdentity")}
    before |= {("sagemaker", name) for name in ("ListClusters", "DescribeCluster", "ListClusterNodes")}
    assert told | before == {
        (one.service, one.name) for one in OPERATIONS if one.kind is not Kind.CREDENTIALS
    }


@pytest.mark.parametrize(
    ("service", "operation"),
    [
        ("ec2", "DescribeSecurityGroups"),
        ("ec2", "DescribeVpcAttribute"),
        ("fsx", "DescribeFileSystems"),
        ("cloudwatch", "GetMetricData"),
        ("logs", "FilterLogEvents"),
        ("eks", "DescribeCluster"),
        ("sagemaker", "DescribeClusterNode"),
    ],
)
async def test_each_denial_is_named_with_what_it_costs(aws: FakeAws, service: str, operation: str) -> None:
    aws.deny(service, operation)
    told = await found(aws)
    assert [one.key for one in told.denied] == [(service, operation)]
    [line] = preflight.costs(told, {(service, operation): ["sg.self-reference", "sg.egress", "sg.other"]})
    assert line == f"without {service}:{operation}: 3 checks unknown (sg.self-reference, sg.egress, sg.other)"
    [line] = preflight.costs(told, {})
    assert line.startswith(f"without {service}:{operation}: unknown: ")


async def test_what_is_not_there_was_allowed_to_be_looked_for(aws: FakeAws) -> None:
    """No log group, no stream, no such EKS cluster: the answer was about the thing, not about who asks."""
    told = states(await found(aws))
    assert {told["logs:FilterLogEvents"], told["logs:GetLogEvents"], told["eks:DescribeCluster"]} == {
        State.ALLOWED
    }


async def test_events_are_not_asked_for_where_the_service_keeps_none(aws: FakeAws) -> None:
    told = (await found(aws)).state("sagemaker", "ListClusterEvents")
    assert told is not None
    assert told.state is State.UNKNOWN
    assert "continuous provisioning only" in told.why
    assert not aws.asked("ListClusterEvents")


async def test_a_service_that_fails_is_unknown_not_denied(aws: FakeAws) -> None:
    aws.fail("fsx", "DescribeFileSystems", "InternalServerError", http=500)
    aws.fail("logs", "*", "ServiceUnavailableException", http=503)
    told = states(await found(aws))
    assert told["fsx:DescribeFileSystems"] is told["logs:DescribeLogGroups"] is State.UNKNOWN
    assert told["ec2:DescribeSubnets"] is State.ALLOWED


async def test_a_service_that_does_not_answer_holds_nothing_up_for_long(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 2)])
    pod = await reading.read(open_clients(), "train")
    await preflight.check(pod)
    aws.fail("fsx", "DescribeFileSystems", seconds=6)
    told = (await preflight.check(pod, within=2.0)).state("fsx", "DescribeFileSystems")
    assert told is not None
    assert (told.state, told.why) == (State.UNKNOWN, "no answer within 2 s")


async def test_credentials_that_expire_meanwhile_are_no_denial(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 2)])
    pod = await reading.read(open_clients(), "train")
    aws.expired.add("AKIATEST")
    with pytest.raises(errors.CredentialsExpired):
        await preflight.check(pod)


def test_the_program_says_what_is_denied_before_it_reads_the_nodes(aws: FakeAws, tmp_path: Path) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 2)])
    aws.deny("ec2", "DescribeSecurityGroups")
    aws.fail("ssm", "StartSession", "TargetNotConnected", message="not connected")
    done = straggler(tmp_path, aws, "check", "--cluster", "train")
    assert (
        "straggler: without ec2:DescribeSecurityGroups: unknown: whether nodes may talk EFA to each other\n"
        in done.errors
    )
    assert "DescribeSecurityGroups" not in done.out
    assert done.status == 1
    assert "the node is not connected to Session Manager" in done.line
