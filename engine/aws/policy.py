"""The least privilege, as an IAM policy, generated from the closed list: nothing else is sent, so nothing else need be allowed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from straggler.engine.aws.arns import ClusterArn
from straggler.engine.aws.operations import OPERATIONS, Resource


def policy(cluster: ClusterArn | None = None, partition: str = "aws") -> dict[str, Any]:
    """For every cluster of whoever holds it, or for one: then in its partition, region and account only."""
    values = {"partition": partition, "region": "*", "account": "*", "cluster": "*", "name": "*"}
    if cluster is not None:
        values |= {"partition": cluster.partition, "region": cluster.region}
        values |= {"account": cluster.account, "cluster": cluster.id}
    granted: dict[str, list[Resource]] = defaultdict(list)
    for one in OPERATIONS:
        for action, resource in one.actions:
            granted[action].append(resource)
    # Actions on the same resources under the same conditions share a statement.
    alike: dict[tuple[Resource, ...], list[str]] = defaultdict(list)
    for action, resources in granted.items():
        for conditional in (False, True):
            if part := tuple(one for one in resources if bool(one.condition) is conditional):
                alike[part].append(action)
    return {
        "Version": "2012-10-17",
        "Statement": [_statement(resources, actions, values) for resources, actions in alike.items()],
    }


def _statement(
    resources: tuple[Resource, ...], actions: list[str], values: Mapping[str, str]
) -> dict[str, Any]:
    arns = sorted({one.arn.format_map(values) for one in resources})
    made: dict[str, Any] = {
        "Effect": "Allow",
        "Action": sorted(set(actions)),
        "Resource": arns[0] if len(arns) == 1 else arns,
    }
    if condition := resources[0].condition:
        operator, key, value = condition
        made["Condition"] = {operator: {key: value}}
    return made
