"""Nodes by Session Manager: one session each, the script as its one parameter, our own data channel; no plugin, no AWS CLI."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

from straggler.engine.model import Node
from straggler.engine.script import Script
from straggler.engine.transports import ssm_wire as wire
from straggler.engine.transports.ssm_bucket import TokenBucket
from straggler.engine.transports.ssm_channel import Channel
from straggler.engine.transports.ssm_command import DOCUMENTS, Renamer
from straggler.engine.transports.ssm_dial import Dialer
from straggler.engine.transports.ssm_errors import explain_end, words
from straggler.engine.transports.ssm_sessions import AwsCalls, Sessions

ERRORS_KEPT = 4096
"""Bytes of stderr kept to explain a script that never ran."""

_NAMED = 4


class SsmTransport:
    """`targets` maps node ids to what StartSession takes (`hyperpod_target`, or an instance id).

    `rate`: sessions started a second. `urgency`: lower goes first; without it, the order the nodes are asked in.
    """

    name = "ssm"
    queued = True

    def __init__(
        self,
        calls: AwsCalls,
        targets: Mapping[str, str],
        *,
        rate: float,
        limit: int = 128,
        urgency: Callable[[Node], float] | None = None,
    ) -> None:
        self.limit = limit
        self.bucket = TokenBucket(rate)
        self._targets = targets
        self._urgency = urgency or (lambda node: 0.0)
        self._sessions = Sessions(calls, self.bucket)
        self._dialer = Dialer()

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        session = await self._sessions.start(self._targets[node.id], script, self._urgency(node))
        try:
            yield b""
            channel = Channel(session, self._sessions, self._dialer)
            try:
                await channel.open()
                async with contextlib.aclosing(_converse(channel, script)) as stream:
                    async for data in stream:
                        yield data
            finally:
                await channel.close()
        finally:
            await self._sessions.end(session)

    async def close(self) -> None:
        """Wait, for a bounded time, until every session has been ended."""
        await self._sessions.close()

    @property
    def left_open(self) -> tuple[str, ...]:
        """Ids of sessions that could not be ended; they end by themselves when idle for long."""
        return tuple(self._sessions.left_open)

    @property
    def told(self) -> tuple[str, ...]:
        """What the operator should know of the way taken: a document that could not be used, sessions that are still open."""
        refused, left = self._sessions.refused, self.left_open
        used = next((one.name for one in DOCUMENTS if one.name not in refused), None)
        lines = [f"{name} could not be used, {used} was: {why}" for name, why in refused.items() if used]
        if left:
            named = ", ".join(words(one) for one in left[:_NAMED]) + (", ..." if len(left) > _NAMED else "")
            lines.append(
                f"{len(left)} sessions could not be ended, and end by themselves when idle: {named};"
                " aws ssm terminate-session --session-id ID ends one at once"
            )
        return tuple(lines)


def hyperpod_target(cluster_id: str, group: str, instance: str) -> str:
    """The target of a HyperPod node. `cluster_id` is the last part of the cluster's ARN, not its name."""
    return f"sagemaker-cluster:{cluster_id}_{group}-{instance}"


async def _converse(channel: Channel, script: Script) -> AsyncGenerator[bytes, None]:
    """What the script says; TransportError when it never said anything, or when less came than was sent."""
    renamer = Renamer(script.nonce)
    head, errors, code = b"", b"", None
    while chunks := await channel.receive():
        for chunk in chunks:
            if chunk.kind == wire.OUTPUT:
                head = head if len(head) > ERRORS_KEPT else head + chunk.data
                if data := renamer.feed(chunk.data):
                    yield data
            elif chunk.kind == wire.STDERR:
                errors = errors if len(errors) > ERRORS_KEPT else errors + chunk.data
            else:
                code = _exit_code(chunk.data)
    if not renamer.begun:
        said = (errors + b"\n" + head).decode("utf-8", "replace")
        raise explain_end(f"{channel.ended or ''}\n{said}", code)


def _exit_code(data: bytes) -> int | None:
    word = data.removeprefix(b"EXIT_CODE:").strip()
    return int(word) if word.removeprefix(b"-").isdigit() and len(word) < 8 else None
