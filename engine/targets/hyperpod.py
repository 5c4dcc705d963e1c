"""A HyperPod cluster as a target: its nodes from AWS's APIs, each reached through Session Manager."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from straggler.engine.aws import arns, hyperpod, lookup, preflight, reading
from straggler.engine.aws.clients import PATIENCE_SECONDS, Clients, open_clients
from straggler.engine.aws.cluster_readings import readings
from straggler.engine.aws.credentials import local_programs
from straggler.engine.aws.errors import NotFound, Refused
from straggler.engine.aws.reading import HyperPod
from straggler.engine.errors import FatalError, UsageError
from straggler.engine.model import Node, Placement
from straggler.engine.targets.base import Target


@dataclass(frozen=True, slots=True)
class Scope:
    """Which of the cluster's nodes. `nodes`: ids or any of their names. `sample`: this many, spread over the groups."""

    nodes: tuple[str, ...] = ()
    sample: int | None = None


def hyperpod_target(
    cluster: str,
    *,
    region: str | None = None,
    profile: str | None = None,
    orchestrator: str | None = None,
    scope: Scope | None = None,
    rate: float,
    ask: bool = True,
) -> Target:
    """The target for `--cluster NAME_OR_ARN`. Blocks while it is read; no event loop may be running in this thread.

    `rate`: sessions started a second. `ask`: an MFA code may be asked for on the terminal.
    Raises UsageError, or FatalError with the way out.
    """
    name, where = arns.settle(cluster, region)
    clients = open_clients(where, profile, ask=ask)
    try:
        target = asyncio.run(_target(clients, name, orchestrator, scope or Scope(), rate))
    except BaseException:
        clients.close()
        raise
    clients.patience = PATIENCE_SECONDS
    return target


async def _target(clients: Clients, name: str, orchestrator: str | None, scope: Scope, rate: float) -> Target:
    try:
        pod = await reading.read(clients, name)
    except (NotFound, Refused) as error:
        raise await lookup.not_there(clients, name, error) from error
    _agree(pod.cluster, orchestrator)
    if not pod.members:
        raise FatalError(_no_nodes(pod.cluster))
    chosen = choose(pod.members, scope)
    pod.preflight, _ = await asyncio.gather(preflight.check(pod), pod.place(chosen))
    return _as_target(pod, chosen, rate)


def _notes(pod: HyperPod) -> tuple[str, ...]:
    """What the operator should know before the nodes are read."""
    lines = []
    if not pod.cluster.described:
        lines.append(
            "without sagemaker:DescribeCluster: unknown: status, groups, network and orchestrator of the cluster"
        )
    if pod.cluster.status == "Deleting":
        lines.append(f"cluster {pod.cluster.name} is being deleted; what is left of it is read")
    if pod.awaited:
        lines.append(f"still being provisioned and not read: {len(pod.awaited)}")
    if pod.unplaced:
        lines.append(pod.unplaced)
    return (*lines, *(preflight.costs(pod.preflight, {}) if pod.preflight else ()))


def _agree(cluster: hyperpod.Cluster, wanted: str | None) -> None:
    """Raises UsageError for an --orchestrator that the API contradicts."""
    if wanted is None or wanted == (cluster.orchestrator or wanted):
        return
    on = f"EKS ({cluster.eks_cluster})" if cluster.orchestrator == hyperpod.EKS else "Slurm"
    raise UsageError(f"cluster {cluster.name} runs on {on}, not on {wanted}: leave --orchestrator out")


def _no_nodes(cluster: hyperpod.Cluster) -> str:
    why = f": {cluster.failure}" if cluster.failure else ""
    if cluster.status == "Deleting":
        return f"cluster {cluster.name} is being deleted and has no nodes left{why}"
    wanted = sum(one.target or 0 for one in cluster.groups)
    groups = f"{len(cluster.groups)} instance groups want {wanted}"
    return (
        f"cluster {cluster.name} ({cluster.status}) has no nodes, its {groups}{why}; "
        f"aws sagemaker describe-cluster --cluster-name {cluster.name} --region {cluster.arn.region} shows the groups"
    )


def choose(members: Sequence[hyperpod.Member], scope: Scope) -> tuple[hyperpod.Member, ...]:
    """The nodes of the scope, in the listing's order. Raises UsageError for a node that is not in the cluster."""
    if scope.nodes:
        by_name = {name: one for one in members for name in (one.id, *names(one))}
        unknown = [one for one in scope.nodes if one not in by_name]
        if unknown:
            near = difflib.get_close_matches(unknown[0], by_name, n=1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"it has {len(members)} nodes, such as {members[0].id}"
            )
            raise UsageError(f"node {unknown[0]!r} is not in the cluster; {hint}")
        wanted = {by_name[one].id for one in scope.nodes}
        return tuple(one for one in members if one.id in wanted)
    if scope.sample is not None and scope.sample < len(members):
        return _spread(members, scope.sample)
    return tuple(members)


def _spread(members: Sequence[hyperpod.Member], count: int) -> tuple[hyperpod.Member, ...]:
    """`count` nodes, from every group in turn; within a group evenly, so that the whole rack row is touched."""
    groups: dict[str, list[hyperpod.Member]] = {}
    for one in members:
        groups.setdefault(one.group, []).append(one)
    shares = dict.fromkeys(groups, 0)
    left = count
    while left:
        for name, group in groups.items():
            if left and shares[name] < len(group):
                shares[name] += 1
                left -= 1
    chosen = {
        group[at * len(group) // shares[name]].id
        for name, group in groups.items()
        for at in range(shares[name])
    }
    return tuple(one for one in members if one.id in chosen)


def names(member: hyperpod.Member, address: str | None = None) -> tuple[str, ...]:
    """What else a node answers to: its logical id, its private DNS name, the short form that Slurm uses, its address."""
    short = (member.dns_name or "").partition(".")[0]
    found = (member.logical_id, short, member.dns_name, address or hyperpod.address_in(member.dns_name))
    return tuple(dict.fromkeys(one for one in found if one))


def _as_target(pod: HyperPod, chosen: Sequence[hyperpod.Member], rate: float) -> Target:
    from straggler.engine.transports.ssm_hyperpod import HyperPodTransport

    cluster = pod.cluster
    spec: dict[str, str | int] = {"cluster": cluster.arn.text, "region": cluster.arn.region}
    if cluster.orchestrator:
        spec["orchestrator"] = cluster.orchestrator
    many = len(pod.members)
    kind = f", {cluster.orchestrator}" if cluster.orchestrator else ""
    count = f"{many} nodes" if len(chosen) == many else f"{len(chosen)} of {many} nodes"
    return Target(
        kind="hyperpod",
        title=f"HyperPod {cluster.name} in {cluster.arn.region} ({count}{kind})",
        nodes=tuple(_node(pod, one) for one in chosen),
        transport=HyperPodTransport(pod, rate=rate),
        spec=spec,
        starts=local_programs(pod.clients.session),
        notes=_notes(pod),
        hyperpod=pod,
        readings=readings(pod),
    )


def _node(pod: HyperPod, member: hyperpod.Member) -> Node:
    told = pod.details.get(member.id)
    zone = pod.zone(member)
    return Node(
        member.id,
        names=names(member, told.address if told else None),
        group=member.group,
        instance_type=member.instance_type,
        placement=Placement(
            az=zone[0] if zone else None,
            ultraserver=member.ultraserver or (told.ultraserver if told else None),
        ),
    )
