"""How a command reaches a node. A transport carries one composed script and gives back the bytes; it judges nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from straggler.engine.model import Node

if TYPE_CHECKING:
    from straggler.engine.script import Script


class Transport(Protocol):
    """One way to nodes.

    `run` sends the script to `sh` on the node and yields its output as it arrives; it ends when the node has nothing more
    to say. It raises TransportError (with the status everything unanswered gets) and is cancelled by closing the iterator.
    `close` ends kept connections. `limit` is how many nodes may be talked to at once.
    """

    name: str
    limit: int

    def run(self, node: Node, script: Script) -> AsyncIterator[bytes]: ...

    async def close(self) -> None: ...


@runtime_checkable
class Queued(Protocol):
    """A transport whose `run` may have to wait for its turn first, where a service limits how often a session may begin.

    It yields b"" when the node's own time begins; what comes before is not counted as the node's silence.
    """

    queued: bool


@runtime_checkable
class Telling(Protocol):
    """A transport that has something to say of the way itself, when all has been read: lines for the operator."""

    @property
    def told(self) -> tuple[str, ...]: ...
