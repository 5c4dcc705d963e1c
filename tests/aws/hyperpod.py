"""HyperPod clusters of any size for the tests' AWS: what the service says of them, in its own shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import botocore.session

from tests.aws.fake import ACCOUNT, ApiError, Call, FakeAws, Handler

BORN = datetime(2026, 11, 1, 8, 0, tzinfo=timezone.utc)


def partition_of(region: str) -> str:
    for head, partition in (("us-gov-", "aws-us-gov"), ("cn-", "aws-cn"), ("us-iso-", "aws-iso")):
        if region.startswith(head):
            return partition
    return "aws"


@dataclass
class FakeCluster:
    """`about` is laid over DescribeCluster's answer, `groups` are its instance groups by name, `nodes` the listing's entries.

    `details` is laid over the description of single nodes.
    """

    name: str
    region: str = "us-east-1"
    id: str = "abc123def456"
    about: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def arn(self) -> str:
        return f"arn:{partition_of(self.region)}:sagemaker:{self.region}:{ACCOUNT}:cluster/{self.id}"

    @property
    def status(self) -> str:
        return str(self.about.get("ClusterStatus", "InService"))

    def description(self) -> dict[str, Any]:
        told = {
            "ClusterArn": self.arn,
            "ClusterName": self.name,
            "ClusterStatus": "InService",
            "CreationTime": BORN,
            "NodeRecovery": "Automatic",
            "InstanceGroups": list(self.groups.values()),
            **self.about,
        }
        return {key: value for key, value in told.items() if value is not None}

    def summary(self) -> dict[str, Any]:
        return {
            "ClusterArn": self.arn,
            "ClusterName": self.name,
            "CreationTime": BORN,
            "ClusterStatus": self.status,
        }

    def add_group(self, name: str, count: int, kind: str = "ml.p5.48xlarge", **about: Any) -> None:
        """A group with `count` running nodes."""
        self.groups[name] = {
            "InstanceGroupName": name,
            "InstanceType": kind,
            "CurrentCount": count,
            "TargetCount": count,
            "Status": "InService",
            **about,
        }
        first = len(self.nodes)
        for number in range(first, first + count):
            self.nodes.append(
                {
                    "InstanceGroupName": name,
                    "InstanceId": f"i-0{number:016x}",
                    "InstanceType": kind,
                    "LaunchTime": BORN,
                    "InstanceStatus": {"Status": "Running"},
                    "PrivateDnsHostname": f"ip-10-{number // 62500 + 1}-{number // 250 % 250}-{number % 250 + 1}.ec2.internal",
                }
            )


def cluster(name: str = "train", nodes: int = 4, *, controllers: int = 0, **about: Any) -> FakeCluster:
    """A cluster of `nodes` workers; with controllers it is run by Slurm, else by EKS."""
    region = about.pop("region", "us-east-1")
    made = FakeCluster(name, region, about.pop("id", "abc123def456"), about)
    if controllers:
        made.add_group("controller", controllers, "ml.m5.xlarge", SlurmConfig={"NodeType": "Controller"})
        made.add_group("workers", nodes, SlurmConfig={"NodeType": "Compute"})
    else:
        eks = f"arn:{partition_of(region)}:eks:{region}:{ACCOUNT}:cluster/{name}-eks"
        made.about.setdefault("Orchestrator", {"Eks": {"ClusterArn": eks}})
        made.add_group("workers", nodes)
    return made


def network(aws: FakeAws, subnets: Mapping[str, str]) -> dict[str, Any]:
    """A VpcConfig of real subnets of this AWS: zone -> block of addresses."""
    session = botocore.session.Session()
    session.set_credentials("AKIATEST", "secret")
    ec2 = session.create_client("ec2", region_name="us-east-1", endpoint_url=aws.url)
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zone)["Subnet"]["SubnetId"]
        for zone, block in subnets.items()
    ]
    group = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=vpc)["GroupId"]
    aws.calls.clear()
    return {"SecurityGroupIds": [group], "Subnets": made}


def serve(aws: FakeAws, clusters: Sequence[FakeCluster]) -> None:
    """Let this AWS have these clusters and no others."""
    aws.handle(_handlers(clusters))


def _handlers(clusters: Sequence[FakeCluster]) -> Mapping[tuple[str, str], Handler]:
    def wanted(call: Call) -> FakeCluster:
        name = call.params["ClusterName"]
        for one in clusters:
            if one.region == call.region and name in (one.name, one.arn):
                return one
        raise ApiError("ResourceNotFound", f"Cluster with name or ARN {name} not found.")

    def list_clusters(call: Call) -> Mapping[str, Any]:
        part = call.params.get("NameContains", "")
        return _page(
            call,
            "ClusterSummaries",
            [one.summary() for one in clusters if one.region == call.region and part in one.name],
        )

    def list_nodes(call: Call) -> Mapping[str, Any]:
        nodes = wanted(call).nodes
        if not call.params.get("IncludeNodeLogicalIds"):
            nodes = [
                {key: value for key, value in one.items() if key != "NodeLogicalId"}
                for one in nodes
                if one.get("InstanceId")
            ]
        return _page(call, "ClusterNodeSummaries", nodes)

    def describe_node(call: Call) -> Mapping[str, Any]:
        found = wanted(call)
        for at, one in enumerate(found.nodes):
            if one.get("InstanceId") == call.params["NodeId"]:
                base = {key: value for key, value in one.items() if key != "CurrentImageReleaseVersion"}
                place = {"AvailabilityZone": f"{found.region}a", "AvailabilityZoneId": "use1-az1"}
                address = f"10.1.{at // 250}.{at % 250 + 1}"
                own = found.details.get(one["InstanceId"], {})
                return {"NodeDetails": {**base, "Placement": place, "PrivatePrimaryIp": address, **own}}
        raise ApiError("ValidationException", f"Instance with id {call.params['NodeId']} not found")

    return {
        ("sagemaker", "ListClusters"): list_clusters,
        ("sagemaker", "DescribeCluster"): lambda call: wanted(call).description(),
        ("sagemaker", "ListClusterNodes"): list_nodes,
        ("sagemaker", "DescribeClusterNode"): describe_node,
        ("sagemaker", "ListClusterEvents"): lambda call: {"Events": wanted(call).events},
        ("fsx", "DescribeFileSystems"): lambda _: {"FileSystems": []},
        ("fsx", "DescribeVolumes"): lambda _: {"Volumes": []},
        ("fsx", "DescribeDataRepositoryAssociations"): lambda _: {"Associations": []},
    }


def _page(call: Call, key: str, entries: Sequence[Any]) -> dict[str, Any]:
    """The page that the token names; ten entries where no size was asked for, at most a hundred, as the service does."""
    first, size = int(call.params.get("NextToken", "0")), min(100, call.params.get("MaxResults", 10))
    page: dict[str, Any] = {key: list(entries[first : first + size])}
    return page | ({"NextToken": str(first + size)} if first + size < len(entries) else {})
