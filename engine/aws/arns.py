"""What the operator may type for a cluster: its name, its ARN in any partition; and what is none of that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from straggler.engine.errors import UsageError

# Shapes as in the service's own model (ClusterNameOrArn) and https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
# (2026-12-01).
_CLUSTER_ARN = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):sagemaker:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):cluster/(?P<id>[a-z0-9]{12})"
)
_EKS_ARN = re.compile(r"arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/(?P<name>[A-Za-z0-9_-]+)")
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_REGION = re.compile(r"[a-z]{2,4}(-[a-z0-9]+)+-[0-9]{1,2}")


@dataclass(frozen=True, slots=True)
class ClusterArn:
    """`id` is the last part: twelve characters, which Session Manager and the log group use, not the name."""

    text: str
    partition: str
    region: str
    account: str
    id: str


def cluster_arn(text: str) -> ClusterArn | None:
    """The parts of a HyperPod cluster's ARN; None for anything else."""
    found = _CLUSTER_ARN.fullmatch(text)
    if found is None:
        return None
    return ClusterArn(text, found["partition"], found["region"], found["account"], found["id"])


def eks_name(text: str) -> str | None:
    """The name in the ARN of an EKS cluster; None for anything else."""
    found = _EKS_ARN.fullmatch(text)
    return found["name"] if found else None


def settle(text: str, region: str | None) -> tuple[str, str | None]:
    """The cluster as the API takes it, and the region it says. Raises UsageError for what cannot be a HyperPod cluster."""
    if region is not None and not _REGION.fullmatch(region):
        raise UsageError(f"--region {region!r} is no AWS region; it looks like us-east-1 or us-gov-west-1")
    if arn := cluster_arn(text):
        if region is not None and region != arn.region:
            raise UsageError(f"the ARN is in {arn.region}, --region says {region}: leave --region out")
        return text, arn.region
    if name := eks_name(text):
        raise UsageError(
            f"that is the ARN of an EKS cluster; --cluster takes the HyperPod cluster that runs on {name} "
            "(straggler lists them when --cluster is left out)"
        )
    if text.startswith("arn:"):
        raise UsageError(
            "--cluster: that ARN is of no HyperPod cluster; it looks like arn:aws:sagemaker:REGION:ACCOUNT:cluster/ID"
        )
    if not _NAME.fullmatch(text):
        raise UsageError(f"--cluster {text!r} is no cluster name: letters, digits and hyphens, at most 63")
    return text, region
