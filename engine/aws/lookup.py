"""A cluster that was not found: what the operator may have meant, looked up as far as the credentials allow."""

from __future__ import annotations

import asyncio

from straggler.engine.aws import arns, hyperpod, reading
from straggler.engine.aws.clients import Clients
from straggler.engine.aws.errors import AwsError
from straggler.engine.errors import FatalError

MOST_NAMED = 20
"""Clusters named in the message; beyond that, how many more there are."""

EVERYWHERE_SECONDS = 20.0


async def not_there(clients: Clients, name: str, error: AwsError) -> FatalError:
    """The error to show: which clusters there are, which of them runs on that EKS cluster, where one of that name is."""
    if "ValidationException" in error.code:
        return FatalError(f"--cluster {name!r} is not taken by AWS: {error.said or error.why}")
    where = clients.region
    try:
        here = await reading.clusters(clients)
    except AwsError as second:
        return FatalError(
            f"no HyperPod cluster {name!r} in {where}, and those there are cannot be listed: {second.why}"
        )
    on_eks = await _running_on(clients, name, here)
    if on_eks:
        return FatalError(
            f"{name!r} is the EKS cluster that HyperPod cluster {on_eks} runs on: --cluster {on_eks}"
        )
    listing = _named(here) if here else "there are none"
    elsewhere = await _elsewhere(clients, name) if arns.cluster_arn(name) is None else ""
    return FatalError(f"no HyperPod cluster {name!r} in {where}; {elsewhere or f'in {where}: {listing}'}")


def _named(found: tuple[hyperpod.Listed, ...]) -> str:
    shown = ", ".join(f"{one.name} ({one.status})" for one in found[:MOST_NAMED])
    more = len(found) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


async def _running_on(clients: Clients, eks: str, found: tuple[hyperpod.Listed, ...]) -> str | None:
    """The HyperPod cluster that runs on this EKS cluster."""

    async def runs(one: hyperpod.Listed) -> bool:
        try:
            answer = await clients.call("sagemaker", "DescribeCluster", ClusterName=one.name)
            return hyperpod.cluster(answer).eks_cluster == eks
        except AwsError:
            return False

    looked_at = found[:MOST_NAMED]
    fits = await asyncio.gather(*(runs(one) for one in looked_at))
    return next((one.name for one, fit in zip(looked_at, fits, strict=True) if fit), None)


async def _elsewhere(clients: Clients, name: str) -> str:
    """Other regions of the partition with a cluster of exactly this name; empty where none is seen, or none may be looked at."""

    async def there(region: str) -> str | None:
        try:
            found = await reading.clusters(clients.elsewhere(region), name)
        except AwsError:
            return None
        return region if any(one.name == name for one in found) else None

    regions = await clients.other_regions("sagemaker")
    tasks = [asyncio.ensure_future(there(one)) for one in regions]
    if not tasks:
        return ""
    done, late = await asyncio.wait(tasks, timeout=EVERYWHERE_SECONDS)
    for one in late:
        one.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    found = sorted(region for one in done if (region := one.result()))
    return f"there is one in {' and '.join(found)}: --region {found[0]}" if found else ""
