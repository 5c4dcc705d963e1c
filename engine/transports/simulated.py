"""The demo's way to its nodes: the same frames, from a cluster made of text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from straggler.engine.errors import TransportError
from straggler.engine.frames import encode, encode_done, encode_hello
from straggler.engine.model import Node, Status
from straggler.engine.simcluster import SAYS, SimNode

if TYPE_CHECKING:
    from straggler.engine.script import Script

_ASKED = re.compile(rb"^: straggler-collector ([a-z0-9-]+)$", re.MULTILINE)


class SimulatedTransport:
    """Answers each node's script as that node would; `pace` is the seconds a node takes on average (0: at once)."""

    name = "demo"
    limit = 64

    def __init__(self, nodes: Mapping[str, SimNode], pace: float = 0.0) -> None:
        self._nodes, self._pace = nodes, pace
        # One reply is made up per turn of the event loop: a thousand nodes at once must not keep it from the screen.
        self._turn = asyncio.Lock()

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        sim = self._nodes[node.id]
        asked = [name.decode() for name in _ASKED.findall(script.body)]
        draw = sim.random("transport")
        if "unreachable" in sim.faults:
            await asyncio.sleep(self._pace * 2)
            raise TransportError(Status.UNREACHABLE, "no route to host (10.1.0.0/16, port 22)")
        yield encode_hello(script.nonce, 0, sim.now)
        for index, name in enumerate(asked):
            if self._pace:
                await asyncio.sleep(self._pace * draw.uniform(0.5, 1.5) / max(1, len(asked)))
            async with self._turn:
                reply = SAYS[name](sim)
                data = encode(script.nonce, index, reply.text.encode(), reply.errors.encode(), reply.code)
                await asyncio.sleep(0)
            yield data
        yield encode_done(script.nonce, len(asked))

    async def close(self) -> None:
        """Nothing is kept open."""
