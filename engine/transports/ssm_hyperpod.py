"""Session Manager to the nodes of a HyperPod cluster: a node that cannot be reached is looked up, for it may be gone by now."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from straggler.engine.aws.errors import AwsError
from straggler.engine.aws.reading import HyperPod
from straggler.engine.errors import TransportError
from straggler.engine.model import Node, Status
from straggler.engine.script import Script
from straggler.engine.transports.ssm import SsmTransport, hyperpod_target


class HyperPodTransport(SsmTransport):
    """`rate`: sessions started a second, for the whole account."""

    def __init__(self, cluster: HyperPod, *, rate: float) -> None:
        arn = cluster.cluster.arn
        targets = {one.id: hyperpod_target(arn.id, one.group, one.id) for one in cluster.members}
        super().__init__(cluster.clients, targets, rate=rate)
        self._cluster = cluster

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        try:
            async with contextlib.aclosing(super().run(node, script)) as stream:  # type: ignore[type-var]
                async for data in stream:
                    yield data
        except TransportError as error:
            if error.status is not Status.UNREACHABLE or error.transient:
                raise
            fate = await self._fate(node)
            raise TransportError(error.status, f"{fate} ({error.why})" if fate else error.why) from error

    async def _fate(self, node: Node) -> str:
        """Nothing where the cluster cannot be asked: why the node was not reached is known anyway."""
        try:
            return await self._cluster.fate(node.id)
        except AwsError:
            return ""
