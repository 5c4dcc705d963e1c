"""A HyperPod cluster as the API tells it: read once, kept, and asked for by whoever needs it (target, collectors, preflight)."""

from __future__ import annotations

import asyncio
import time
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

CONTINUOUS = "Continuous"
FRESH_SECONDS = 20.0
"""Age up to which a listing still tells what became of a node."""

PLACING_SECONDS = 10.0
"""How long a start waits for the zones of nodes; those not told by then have none, which is said."""


_PROVISIONING = "it is being replaced: its successor is still being provisioned"


@dataclass
class HyperPod:
    """One cluster and the clients it is read with. `members` are its machines, `awaited` its nodes that have none yet.

    `unplaced`: why nodes have no zone, empty when all that could be told was.
    """

    clients: Clients
    cluster: hyperpod.Cluster
    members: tuple[hyperpod.Member, ...]
    awaited: tuple[hyperpod.Member, ...] = ()
    subnets: dict[str, hyperpod.Subnet] = field(default_factory=dict)
    details: dict[str, hyperpod.Detail] = field(default_factory=dict)
    unplaced: str = ""
    preflight: Preflight | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _again: tuple[float, tuple[hyperpod.Member, ...]] | None = None

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

    async def fate(self, node: str) -> str:
        """What the cluster says by now of a node that does not answer: one phrase, empty when it says that it runs.

        Raises AwsError.
        """
        now = await self._now()
        before = next((one for one in self.members if one.id == node), None)
        found = next((one for one in now if one.id == node), None)
        if found is not None:
            said = f": {found.message}" if found.message else ""
            return "" if found.status == "Running" else f"the cluster says it is {found.status}{said}"
        if before is not None and before.logical_id:
            heir = next((one for one in now if one.logical_id == before.logical_id), None)
            if heir is not None:
                return f"it was replaced meanwhile: {heir.id} is in its place" if heir.id else _PROVISIONING
        known = {one.id for one in self.members}
        new = [
            one.id for one in now if before is not None and one.group == before.group and one.id not in known
        ]
        return "the cluster does not list it any more" + (
            f"; new in its group: {', '.join(new[:3])}" if new else ""
        )

    async def _now(self) -> tuple[hyperpod.Member, ...]:
        """The listing as it is now; read again at most every few seconds, however many nodes are asked about."""
        if self._again is None or time.monotonic() - self._again[0] > FRESH_SECONDS:
            async with self._turn:
                if self._again is None or time.monotonic() - self._again[0] > FRESH_SECONDS:
                    logical = self.cluster.provisioning == CONTINUOUS
                    found = await members(self.clients, self.cluster.arn.text, logical=logical)
                    self._again = time.monotonic(), found
        return self._again[1]

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
    listed = await members(clients, cluster, logical=about.provisioning == CONTINUOUS)
    return HyperPod(
        clients, about, tuple(one for one in listed if one.id), tuple(one for one in listed if not one.id)
    )


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


async def members(clients: Clients, cluster: str, *, logical: bool = False) -> tuple[hyperpod.Member, ...]:
    """Every node, all pages. Raises AwsError: half a list would hide nodes.

    `logical`: with the id that outlives a machine, and with nodes that have no machine yet; only continuous provisioning has it.
    """
    found: list[hyperpod.Member] = []
    more = {"IncludeNodeLogicalIds": True} if logical else {}
    async for page in clients.pages(
        "sagemaker", "ListClusterNodes", ClusterName=cluster, MaxResults=PAGE, **more
    ):
        found += hyperpod.members(page)
    return tuple(found)


async def clusters(clients: Clients, containing: str | None = None) -> tuple[hyperpod.Listed, ...]:
    """The clusters of the region, those whose name contains a word if one is given. Raises AwsError."""
    asked = {"NameContains": containing} if containing else {}
    found: list[hyperpod.Listed] = []
    async for page in clients.pages("sagemaker", "ListClusters", MaxResults=PAGE, **asked):
        found += hyperpod.listed(page)
    return tuple(found)
