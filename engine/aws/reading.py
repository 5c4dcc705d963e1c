"""A HyperPod cluster as the API tells it: read once, kept, and asked for by whoever needs it (target, collectors, preflight)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from straggler.engine.aws import arns, hyperpod
from straggler.engine.aws.clients import Clients
from straggler.engine.aws.errors import AwsError, Denied

if TYPE_CHECKING:
    from straggler.engine.aws.preflight import Preflight

PAGE = 100
"""Nodes and clusters a page: the most the service gives."""

PLACING_SECONDS = 10.0
"""How long a start waits for the zones of nodes; those not told by then have none, which is said."""


@dataclass
class HyperPod:
    """One cluster and the clients it is read with. `unplaced`: why nodes have no zone, empty when all that could be told was."""

    clients: Clients
    cluster: hyperpod.Cluster
    members: tuple[hyperpod.Member, ...]
    subnets: dict[str, hyperpod.Subnet] = field(default_factory=dict)
    details: dict[str, hyperpod.Detail] = field(default_factory=dict)
    unplaced: str = ""
    preflight: Preflight | None = None

    async def detail(self, node: str) -> hyperpod.Detail:
        """The description of one node; asked for once. Raises AwsError."""
        if node not in self.details:
            answer = await self.clients.call(
                "sagemaker", "DescribeClusterNode", ClusterName=self.cluster.arn.text, NodeId=node
            )
            self.details[node] = hyperpod.detail(answer)
        return self.details[node]

    def zone(self, member: hyperpod.Member) -> hyperpod.Zone | None:
        """From the node's description, else from the subnets it can be in."""
        told = self.details.get(member.id)
        if told is not None and told.az:
            return told.az, told.az_id
        network = self.cluster.network_of(member.group)
        if network is None:
            return None
        return hyperpod.zone_by_subnets(network, self.subnets, hyperpod.address_in(member.dns_name))

    async def place(self, among: Iterable[hyperpod.Member], within: float = PLACING_SECONDS) -> None:
        """Learn the zones: one call for the subnets, then a description of each node whose zone they do not tell."""
        try:
            await self._read_subnets()
        except AwsError as error:
            self.unplaced = error.why
        open_ones = [one for one in among if self.zone(one) is None]
        if not open_ones:
            self.unplaced = ""
            return
        tasks = [asyncio.ensure_future(self.detail(one.id)) for one in open_ones]
        done, late = await asyncio.wait(tasks, timeout=within)
        for one in late:
            one.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        failed = [met for one in done if (met := one.exception()) is not None]
        for met in failed:
            if not isinstance(met, AwsError):
                raise met
        missing = sum(self.zone(one) is None for one in open_ones)
        reason = f": {failed[0]}" if failed else f" within {within:.0f} s" if late else ""
        self.unplaced = f"the zone of {missing} nodes was not told{reason}" if missing else ""

    async def _read_subnets(self) -> None:
        networks = [self.cluster.network, *(one.network for one in self.cluster.groups)]
        wanted = sorted({subnet for one in networks if one for subnet in one.subnets})
        if not wanted:
            return
        async for page in self.clients.pages(
            "ec2", "DescribeSubnets", Filters=[{"Name": "subnet-id", "Values": wanted}]
        ):
            self.subnets |= {one.id: one for one in hyperpod.subnets(page)}


async def read(clients: Clients, cluster: str) -> HyperPod:
    """The cluster of a name or an ARN, with all its nodes. Raises AwsError.

    Where only its description is denied, its nodes can still be read: by the ARN given, or the one in the listing.
    """
    try:
        answer = await clients.call("sagemaker", "DescribeCluster", ClusterName=cluster)
        about = hyperpod.cluster(answer)
    except Denied as error:
        arn = arns.cluster_arn(cluster) or await _arn_in_listing(clients, cluster, error)
        about = hyperpod.Cluster(cluster if cluster != arn.text else arn.id, arn, described=False)
    return HyperPod(clients, about, await members(clients, cluster))


async def _arn_in_listing(clients: Clients, name: str, denied: Denied) -> arns.ClusterArn:
    """Raises `denied` when the listing does not help."""
    try:
        found = await clusters(clients, name)
    except AwsError:
        raise denied from None
    arn = next((arns.cluster_arn(one.arn) for one in found if one.name == name), None)
    if arn is None:
        raise denied
    return arn


async def members(clients: Clients, cluster: str) -> tuple[hyperpod.Member, ...]:
    """Every node, all pages. Raises AwsError: half a list would hide nodes."""
    found: list[hyperpod.Member] = []
    async for page in clients.pages("sagemaker", "ListClusterNodes", ClusterName=cluster, MaxResults=PAGE):
        found += hyperpod.members(page)
    return tuple(found)


async def clusters(clients: Clients, containing: str | None = None) -> tuple[hyperpod.Listed, ...]:
    """The clusters of the region, those whose name contains a word if one is given. Raises AwsError."""
    asked = {"NameContains": containing} if containing else {}
    found: list[hyperpod.Listed] = []
    async for page in clients.pages("sagemaker", "ListClusters", MaxResults=PAGE, **asked):
        found += hyperpod.listed(page)
    return tuple(found)
