"""HyperPod's answers as plain facts: the cluster, its instance groups, its nodes. Read and kept, not judged.

Fields that the service left out are None or empty, which is never the same as a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from straggler.engine.aws.arns import ClusterArn, cluster_arn, eks_name
from straggler.engine.aws.errors import ServiceFault

Json = Mapping[str, Any]

EKS, SLURM = "eks", "slurm"


@dataclass(frozen=True, slots=True)
class Network:
    security_groups: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()


Zone = tuple[str, str | None]
"""An availability zone by name, which every account has its own of, and by id, which is the same for all."""


@dataclass(frozen=True, slots=True)
class Subnet:
    id: str
    az: str
    az_id: str | None
    block: IPv4Network | None


@dataclass(frozen=True, slots=True)
class Group:
    """An instance group. `types` has more than one entry where the group may be of several. `role`: what Slurm's configuration
    says its nodes are (controller, login, compute). `restricted`: its machines are not the customer's to log in to.
    `network` is its own where it overrides the cluster's."""

    name: str
    types: tuple[str, ...] = ()
    current: int | None = None
    target: int | None = None
    status: str | None = None
    role: str | None = None
    restricted: bool = False
    network: Network | None = None
    deep_health_checks: tuple[str, ...] = ()
    threads_per_core: int | None = None
    execution_role: str | None = None
    image_status: str | None = None
    training_plan_status: str | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """`described`: DescribeCluster was answered; if not, only name and ARN are known. `orchestrator_told`: the API named it; a
    described cluster of which it names none is run by Slurm. Times are Unix seconds.

    `node_recovery` is `Automatic`, `None` (the word) or None (not told); `provisioning` `Continuous` or None.
    """

    name: str
    arn: ClusterArn
    status: str = ""
    described: bool = True
    failure: str = ""
    created: float | None = None
    orchestrator: str | None = None
    orchestrator_told: bool = False
    eks_cluster: str | None = None
    node_recovery: str | None = None
    provisioning: str | None = None
    autoscaling: str | None = None
    network: Network | None = None
    groups: tuple[Group, ...] = ()

    def group(self, name: str) -> Group | None:
        return next((one for one in self.groups if one.name == name), None)

    def network_of(self, group: str) -> Network | None:
        """What the nodes of a group are attached to: the group's own network, else the cluster's."""
        found = self.group(group)
        return (found.network if found else None) or self.network


@dataclass(frozen=True, slots=True)
class Member:
    """A node as the listing shows it. `logical_id` stays when the machine behind it is replaced."""

    id: str
    group: str
    instance_type: str | None = None
    status: str | None = None
    message: str = ""
    launched: float | None = None
    updated: float | None = None
    logical_id: str | None = None
    dns_name: str | None = None
    ultraserver: str | None = None
    image_status: str | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """What only the description of a single node has."""

    id: str
    az: str | None = None
    az_id: str | None = None
    address: str | None = None
    dns_name: str | None = None
    ultraserver: str | None = None
    capacity: str | None = None
    network: Network | None = None
    labels: tuple[tuple[str, str], ...] = ()
    status: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A cluster as ListClusters shows it."""

    name: str
    arn: str
    status: str
    created: float | None = None


def cluster(answer: Json) -> Cluster:
    """Raises ServiceFault for an answer without an ARN of a cluster: nothing further could be asked with it."""
    arn = cluster_arn(str(answer.get("ClusterArn", "")))
    if arn is None:
        raise ServiceFault("sagemaker:DescribeCluster gave no cluster ARN")
    told = answer.get("Orchestrator") or {}
    eks = (told.get("Eks") or {}).get("ClusterArn")
    return Cluster(
        name=str(answer.get("ClusterName") or arn.id),
        arn=arn,
        status=str(answer.get("ClusterStatus") or ""),
        failure=str(answer.get("FailureMessage") or ""),
        created=_seconds(answer.get("CreationTime")),
        orchestrator=EKS if "Eks" in told else SLURM,
        orchestrator_told="Eks" in told or "Slurm" in told,
        eks_cluster=eks_name(eks or ""),
        node_recovery=answer.get("NodeRecovery"),
        provisioning=answer.get("NodeProvisioningMode"),
        autoscaling=(answer.get("AutoScaling") or {}).get("Mode"),
        network=_network(answer.get("VpcConfig")),
        groups=(
            *(_group(one, restricted=False) for one in answer.get("InstanceGroups") or ()),
            *(_group(one, restricted=True) for one in answer.get("RestrictedInstanceGroups") or ()),
        ),
    )


def _group(answer: Json, *, restricted: bool) -> Group:
    role = (answer.get("SlurmConfig") or {}).get("NodeType")
    return Group(
        name=str(answer.get("InstanceGroupName") or ""),
        types=_types(answer),
        current=answer.get("CurrentCount"),
        target=answer.get("TargetCount"),
        status=answer.get("Status"),
        role=role.lower() if isinstance(role, str) else None,
        restricted=restricted,
        network=_network(answer.get("OverrideVpcConfig")),
        deep_health_checks=tuple(answer.get("OnStartDeepHealthChecks") or ()),
        threads_per_core=answer.get("ThreadsPerCore"),
        execution_role=answer.get("ExecutionRole"),
        image_status=answer.get("ImageVersionStatus"),
        training_plan_status=answer.get("TrainingPlanStatus"),
    )


def _types(answer: Json) -> tuple[str, ...]:
    """All the types a group has or may have: one as a rule, several in a flexible group."""
    wanted = answer.get("InstanceRequirements") or {}
    several = [one.get("InstanceType") for one in answer.get("InstanceTypeDetails") or ()]
    found = [answer.get("InstanceType"), *several]
    found += [*(wanted.get("CurrentInstanceTypes") or ()), *(wanted.get("DesiredInstanceTypes") or ())]
    return tuple(dict.fromkeys(one for one in found if one))


def members(answer: Json) -> tuple[Member, ...]:
    """The nodes of one page."""
    return tuple(_member(one) for one in answer.get("ClusterNodeSummaries") or ())


def _member(answer: Json) -> Member:
    state = answer.get("InstanceStatus") or {}
    return Member(
        id=str(answer.get("InstanceId") or ""),
        group=str(answer.get("InstanceGroupName") or ""),
        instance_type=answer.get("InstanceType"),
        status=state.get("Status"),
        message=str(state.get("Message") or ""),
        launched=_seconds(answer.get("LaunchTime")),
        updated=_seconds(answer.get("LastSoftwareUpdateTime")),
        logical_id=answer.get("NodeLogicalId"),
        dns_name=answer.get("PrivateDnsHostname"),
        ultraserver=(answer.get("UltraServerInfo") or {}).get("Id"),
        image_status=answer.get("ImageVersionStatus"),
    )


def detail(answer: Json) -> Detail:
    found = answer.get("NodeDetails") or {}
    place, state = found.get("Placement") or {}, found.get("InstanceStatus") or {}
    labels = (found.get("KubernetesConfig") or {}).get("CurrentLabels") or {}
    return Detail(
        id=str(found.get("InstanceId") or ""),
        az=place.get("AvailabilityZone"),
        az_id=place.get("AvailabilityZoneId"),
        address=found.get("PrivatePrimaryIp"),
        dns_name=found.get("PrivateDnsHostname"),
        ultraserver=(found.get("UltraServerInfo") or {}).get("Id"),
        capacity=found.get("CapacityType"),
        network=_network(found.get("OverrideVpcConfig")),
        labels=tuple(sorted(labels.items())),
        status=state.get("Status"),
        message=str(state.get("Message") or ""),
    )


def listed(answer: Json) -> tuple[Listed, ...]:
    """The clusters of one page of ListClusters."""
    return tuple(
        Listed(
            str(one.get("ClusterName") or ""),
            str(one.get("ClusterArn") or ""),
            str(one.get("ClusterStatus") or ""),
            _seconds(one.get("CreationTime")),
        )
        for one in answer.get("ClusterSummaries") or ()
    )


def subnets(answer: Json) -> tuple[Subnet, ...]:
    """The subnets of one page of DescribeSubnets."""
    return tuple(
        Subnet(
            one["SubnetId"],
            one["AvailabilityZone"],
            one.get("AvailabilityZoneId"),
            _block(one.get("CidrBlock")),
        )
        for one in answer.get("Subnets") or ()
        if one.get("SubnetId") and one.get("AvailabilityZone")
    )


def _block(text: str | None) -> IPv4Network | None:
    try:
        return IPv4Network(text) if text else None
    except ValueError:
        return None


_DNS_ADDRESS = re.compile(r"ip-([0-9]{1,3})-([0-9]{1,3})-([0-9]{1,3})-([0-9]{1,3})(\..*)?")


def address_in(dns_name: str | None) -> str | None:
    """The IPv4 address that AWS's own host names spell (`ip-10-1-2-3.ec2.internal`)."""
    found = _DNS_ADDRESS.fullmatch(dns_name or "")
    if found is None or any(int(one) > 255 for one in found.groups()[:4]):
        return None
    return ".".join(str(int(one)) for one in found.groups()[:4])


def log_group(found: Cluster) -> str:
    return f"/aws/sagemaker/Clusters/{found.name}/{found.arn.id}"


def _network(answer: Json | None) -> Network | None:
    if not answer:
        return None
    return Network(tuple(answer.get("SecurityGroupIds") or ()), tuple(answer.get("Subnets") or ()))


def _seconds(value: object) -> float | None:
    return value.timestamp() if isinstance(value, datetime) else None


def zone_by_subnets(network: Network, known: Mapping[str, Subnet], address: str | None) -> Zone | None:
    """The zone of a node that is attached to one of these subnets: the one they share, else that of the subnet its address is in.

    A subnet stands in exactly one zone, and no two of a network overlap. None where a subnet is not known.
    """
    found = [known.get(one) for one in network.subnets]
    told = [one for one in found if one is not None]
    if not told or len(told) < len(found):
        return None
    if len({one.az for one in told}) == 1:
        return told[0].az, told[0].az_id
    where = IPv4Address(address) if address else None
    return next(((one.az, one.az_id) for one in told if where and one.block and where in one.block), None)
