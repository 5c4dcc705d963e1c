"""The readings of a HyperPod cluster as a whole: what the API answers now, kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from straggler.engine.aws.cluster_facts import NODES, STATUS
from straggler.engine.aws.reading import CONTINUOUS, PAGE, HyperPod
from straggler.engine.readings import Reading


def readings(pod: HyperPod) -> tuple[Reading, ...]:
    async def status() -> str:
        return _json(await pod.clients.call("sagemaker", "DescribeCluster", ClusterName=pod.cluster.arn.text))

    async def nodes() -> str:
        more = {"IncludeNodeLogicalIds": True} if pod.cluster.provisioning == CONTINUOUS else {}
        found: list[Any] = []
        async for page in pod.clients.pages(
            "sagemaker", "ListClusterNodes", ClusterName=pod.cluster.arn.text, MaxResults=PAGE, **more
        ):
            found += page.get("ClusterNodeSummaries") or ()
        return _json({"ClusterNodeSummaries": found})

    return (
        Reading(STATUS, "the cluster's status and settings", ("sagemaker:DescribeCluster",), status),
        Reading(NODES, "what the cluster says of its nodes", ("sagemaker:ListClusterNodes",), nodes),
    )


def _json(answer: Mapping[str, Any]) -> str:
    """The answer without what is only about the call; times as ISO 8601."""
    told = {key: value for key, value in answer.items() if key != "ResponseMetadata"}
    return msgspec.json.encode(told, enc_hook=str).decode()
