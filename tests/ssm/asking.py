"""Test side of the transport: a node to ask, scripts that are more than a line and less than a node's whole."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from straggler.engine.model import Node
from straggler.engine.script import Script
from straggler.engine.transports.ssm import SsmTransport
from tests.ssm.fake_service import FakeService, running

NODE = Node("i-0123456789abcdef0")
TARGET = "sagemaker-cluster:abc123def456_workers-i-0123456789abcdef0"
NONCE = "0123456789abcdef"


def script(body: str) -> Script:
    """`body` under a script's first line. It may use $S_NONCE, as frames do."""
    return Script(NONCE, f"S_NONCE={NONCE} S_MARK=x\n{body}\n".encode())


def saying(text: str) -> Script:
    """A script that prints the text, which holds no single quote, under two frame marks of its own."""
    return script(
        f"printf '\\n@@straggler %s hello 1 0 1\\n' \"$S_NONCE\"; printf '%s' '{text}';"
        " printf '\\n@@straggler %s done 0\\n' \"$S_NONCE\""
    )


def said(text: str) -> bytes:
    """What comes of `saying`."""
    return f"\n@@straggler {NONCE} hello 1 0 1\n{text}\n@@straggler {NONCE} done 0\n".encode()


@dataclass
class Asked:
    """What came, and how it ended. `done`: the last frame came."""

    data: bytes = b""
    error: Exception | None = None

    @property
    def done(self) -> bool:
        return self.data.endswith(f"@@straggler {NONCE} done 0\n".encode())


async def ask(transport: SsmTransport, script: Script, node: Node = NODE) -> Asked:
    """Everything the node says, to the end of the session."""
    asked = Asked()
    try:
        async with contextlib.aclosing(transport.run(node, script)) as stream:  # type: ignore[type-var]
            async for data in stream:
                asked.data += data
    except Exception as error:  # noqa: BLE001 - looked at by the test
        asked.error = error
    return asked


@contextlib.asynccontextmanager
async def fleet(
    service: FakeService, *, rate: float = 1000, nodes: int = 1, limit: int = 128
) -> AsyncIterator[SsmTransport]:
    """The service and a transport to it; afterwards no session may be left open."""
    async with running(service):
        names = [NODE.id] if nodes == 1 else [f"node-{number}" for number in range(nodes)]
        targets = {name: TARGET if nodes == 1 else f"i-{name}" for name in names}
        transport = SsmTransport(service, targets, rate=rate, limit=limit)
        try:
            yield transport
        finally:
            await transport.close()
    assert service.left - set(transport.left_open) == set(), "every started session is ended"
