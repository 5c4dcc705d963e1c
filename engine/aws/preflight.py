"""What these credentials may do here, tried before the work: each operation by its cheapest real call, nothing changed by any.

A denial costs what could have been read with it, and is said as that. It is never a result of a check.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from straggler.engine.aws import hyperpod
from straggler.engine.aws.errors import AwsError, CredentialsExpired, Denied, NotFound, Refused
from straggler.engine.aws.operations import OPERATIONS, Operation
from straggler.engine.aws.reading import CONTINUOUS, HyperPod

SECONDS = 10.0
"""How long all tries together may take; what has not answered by then is unknown."""

Key = tuple[str, str]
"""Service and operation."""


class State(Enum):
    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Permission:
    """One operation as it was met. `why`: what was refused, or why it could not be tried."""

    operation: Operation
    state: State
    why: str = ""

    @property
    def key(self) -> Key:
        return self.operation.service, self.operation.name


@dataclass(frozen=True, slots=True)
class Preflight:
    """Who asks, from which account, where, and what is open to them."""

    arn: str
    account: str
    region: str
    permissions: tuple[Permission, ...] = ()

    def state(self, service: str, operation: str) -> Permission | None:
        return next((one for one in self.permissions if one.key == (service, operation)), None)

    @property
    def denied(self) -> tuple[Permission, ...]:
        return tuple(one for one in self.permissions if one.state is State.DENIED)


@dataclass(frozen=True, slots=True)
class _Untried:
    why: str


@dataclass(frozen=True, slots=True)
class _Try:
    """A call that reads as little as the service allows."""

    params: Mapping[str, Any] = field(default_factory=dict)


async def check(pod: HyperPod, within: float = SECONDS) -> Preflight:
    """Try everything at once. Raises CredentialsExpired; any other trouble is a state of the operation it met."""
    identity = await pod.clients.identity()
    tries = _tries(pod)
    wanted = [one for one in OPERATIONS if (one.service, one.name) in tries]
    tasks = [asyncio.ensure_future(_permission(pod, one, tries[one.service, one.name])) for one in wanted]
    _, late = await asyncio.wait(tasks, timeout=within)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    found = [
        Permission(one, State.UNKNOWN, f"no answer within {within:.0f} s") if task in late else task.result()
        for one, task in zip(wanted, tasks, strict=True)
    ]
    return Preflight(
        str(identity.get("Arn", "")), str(identity.get("Account", "")), pod.clients.region, tuple(found)
    )


async def _permission(pod: HyperPod, operation: Operation, how: _Try | _Untried) -> Permission:
    if isinstance(how, _Untried):
        return Permission(operation, State.UNKNOWN, how.why)
    try:
        await pod.clients.call(operation.service, operation.name, **how.params)
    except CredentialsExpired:
        raise
    except Denied as error:
        return Permission(operation, State.DENIED, error.why)
    except (NotFound, Refused):
        # The service looked at the request before it found nothing, or nothing to do (EC2's dry run): it was allowed to.
        return Permission(operation, State.ALLOWED)
    except AwsError as error:
        return Permission(operation, State.UNKNOWN, error.why)
    return Permission(operation, State.ALLOWED)


_DRY_RUN_NEEDS: Mapping[str, Mapping[str, str]] = {
    "DescribeVpcAttribute": {"VpcId": "vpc-00000000", "Attribute": "enableDnsSupport"}
}
_ONE = _Try({"MaxResults": 1})


def _tries(pod: HyperPod) -> dict[Key, _Try | _Untried]:
    """How each operation is tried on this cluster. What was already called to get here is not called again."""
    cluster = pod.cluster
    name, group = cluster.arn.text, hyperpod.log_group(cluster)
    node = pod.members[0].id if pod.members else ""
    now = int(time.time())
    span = {"StartTime": now - 600, "EndTime": now}
    metric = {"Namespace": "AWS/FSx", "MetricName": "DataReadBytes"}
    query = {"Id": "m", "MetricStat": {"Metric": metric, "Period": 300, "Stat": "Sum"}}
    tries: dict[Key, _Try | _Untried] = {
        ("sagemaker", "DescribeClusterNode"): _Try({"ClusterName": name, "NodeId": node})
        if node
        else _Untried("the cluster has no node to describe"),
        ("sagemaker", "ListClusterEvents"): _Try({"ClusterName": name, "MaxResults": 1})
        if cluster.provisioning == CONTINUOUS
        else _Untried("events are kept under continuous provisioning only, which this cluster does not use"),
        ("sagemaker", "DescribeClusterEvent"): _Untried("tried with the first event"),
        ("fsx", "DescribeFileSystems"): _ONE,
        ("fsx", "DescribeVolumes"): _ONE,
        ("fsx", "DescribeDataRepositoryAssociations"): _ONE,
        ("cloudwatch", "GetMetricData"): _Try({"MetricDataQueries": [query], **span}),
        ("cloudwatch", "GetMetricStatistics"): _Try({**metric, **span, "Period": 300, "Statistics": ["Sum"]}),
        ("cloudwatch", "ListMetrics"): _Try({"Namespace": "AWS/FSx", "MetricName": "DataReadBytes"}),
        ("logs", "DescribeLogGroups"): _Try({"logGroupNamePrefix": group, "limit": 1}),
        ("logs", "DescribeLogStreams"): _Try({"logGroupName": group, "limit": 1}),
        ("logs", "FilterLogEvents"): _Try(
            {"logGroupName": group, "limit": 1, "startTime": (now - 60) * 1000}
        ),
        ("logs", "GetLogEvents"): _Try({"logGroupName": group, "logStreamName": "none", "limit": 1}),
        ("eks", "DescribeCluster"): _Try({"name": cluster.eks_cluster})
        if cluster.eks_cluster
        else _Untried("no EKS cluster is behind this one"),
        ("ssm", "StartSession"): _Untried("tried with the first node"),
        ("ssm", "ResumeSession"): _Untried("tried when a connection drops"),
        ("ssm", "TerminateSession"): _Untried("tried with the first node"),
        ("kms", "GenerateDataKey"): _Untried("tried when the account encrypts sessions"),
    }
    # EC2 answers a dry run with whether it would have been allowed.
    for one in OPERATIONS:
        if one.service == "ec2":
            tries["ec2", one.name] = _Try({"DryRun": True, **_DRY_RUN_NEEDS.get(one.name, {})})
    return tries


def costs(found: Preflight, needed: Mapping[Key, Sequence[str]]) -> tuple[str, ...]:
    """One line for each denial: what is lost with it. `needed`: operation -> the checks that cannot do without it."""
    lines = []
    for one in found.denied:
        checks = needed.get(one.key, ())
        lost = (
            f"{len(checks)} check{'s' if len(checks) > 1 else ''} unknown ({', '.join(checks)})"
            if checks
            else ""
        )
        lines.append(f"without {one.operation.action}: {lost or 'unknown: ' + one.operation.use}")
    return tuple(lines)


def told(found: Preflight) -> str:
    """Who asks, in one line."""
    return f"asking AWS as {found.arn} (account {found.account}, {found.region})"
