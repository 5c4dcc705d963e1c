"""`straggler iam-policy`: what must be allowed for it to work, generated from the closed list of what it may call."""

from __future__ import annotations

import argparse

from straggler.engine.errors import UsageError
from straggler.tui.commands import output

PARTITIONS = ("aws", "aws-us-gov", "aws-cn", "aws-iso", "aws-iso-b", "aws-iso-e", "aws-iso-f", "aws-eusc")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("iam", "rbac"),
        default="iam",
        help="iam: a policy for AWS (default); rbac: for Kubernetes",
    )
    parser.add_argument(
        "--cluster", metavar="ARN", help="hold it to this cluster, its region and its account"
    )
    parser.add_argument(
        "--partition", choices=PARTITIONS, default="aws", help="where the ARNs are (default aws)"
    )


def run(args: argparse.Namespace) -> int:
    import json

    from straggler.engine.aws import arns, policy

    if args.format == "rbac":
        raise UsageError(
            "this version asks nothing of Kubernetes' API, so there is no role to grant; --format iam"
        )
    cluster = arns.cluster_arn(args.cluster) if args.cluster else None
    if args.cluster and cluster is None:
        raise UsageError(
            f"--cluster takes the cluster's ARN here, not {args.cluster!r}: nothing is asked of AWS for a policy"
        )
    output.put(json.dumps(policy.policy(cluster, args.partition), indent=2))
    return 0
