"""Nodes by SSH: one kept connection each, opened at first contact, and `sh` on it with the script on stdin.

No terminal, no agent or X11 forwarding, no environment, no compression is asked for; the only command ever sent is `sh`.
`run` carries what only reads (gate.py); `talk` carries load, which only the load gate can compose (load_gate.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import asyncssh

from straggler.engine.compat import timeout
from straggler.engine.errors import TransportError
from straggler.engine.model import Node, Status
from straggler.engine.nodesets import HostSpec
from straggler.engine.script import Script
from straggler.engine.transports.ssh_dial import Dialer
from straggler.engine.transports.ssh_errors import explain, words
from straggler.engine.transports.ssh_session import Reply

if TYPE_CHECKING:
    from straggler.engine.load_gate import Order
    from straggler.engine.transports.ssh_load import LoadTalk

R = TypeVar("R", bound=Reply)

# What asyncssh would log is told by TransportError; a log line on stderr would tear a screen apart.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())

REUSE_SECONDS = 8
"""How long a kept connection may take to open a session before it is taken for dead and opened anew."""

FILES_SPARED = 128
FILES_PER_CONNECTION = 3
"""Descriptors left to the rest of the program, and those one connection may need (socket, agent, proxy)."""


@dataclass
class _Line:
    """The connection to one node. The lock lets one caller open it while the others wait for the result."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: asyncssh.SSHClientConnection | None = None
    users: int = 0


class SshTransport:
    """`specs` maps node ids to hosts. `keep`: how many idle connections are kept (default: what the open-file limit allows)."""

    name = "ssh"
    limit = 64

    def __init__(self, specs: Mapping[str, HostSpec], dialer: Dialer, *, keep: int | None = None) -> None:
        self._specs, self._dialer = specs, dialer
        self._lines: dict[str, _Line] = {}
        self._keep = keep_limit() if keep is None else keep

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        line = self._lines.setdefault(node.id, _Line())
        line.users += 1
        try:
            reply = await self._start(line, self._specs[node.id], lambda: Reply(script.body))
            try:
                async with contextlib.aclosing(self._converse(reply, script)) as stream:
                    async for data in stream:
                        yield data
            finally:
                reply.end()
        finally:
            line.users -= 1
            self._let_go(node.id, line)

    @contextlib.asynccontextmanager
    async def talk(self, node: Node, order: Order) -> AsyncIterator[LoadTalk]:
        """A session that stays open both ways, for an order the operator has confirmed. Raises TransportError, FatalError."""
        from straggler.engine.load_gate import compose
        from straggler.engine.transports.ssh_load import LoadTalk

        script = compose(order)
        line = self._lines.setdefault(node.id, _Line())
        line.users += 1
        try:
            talk = await self._start(line, self._specs[node.id], lambda: LoadTalk(script))
            try:
                yield talk
            finally:
                talk.end()
        finally:
            line.users -= 1
            self._let_go(node.id, line)

    async def close(self) -> None:
        """End every kept connection, those of jump hosts last."""
        lines, self._lines = list(self._lines.values()), {}
        held = [line.connection for line in lines if line.connection is not None]
        for connection in held:
            connection.close()
        with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
            async with timeout(2):
                await asyncio.gather(*(one.wait_closed() for one in held), return_exceptions=True)
        for connection in held:
            connection.abort()
        await self._dialer.close()

    async def _start(self, line: _Line, spec: HostSpec, make: Callable[[], R]) -> R:
        """A session with `sh` in it, on the kept connection or, where that turns out to be dead, on a new one."""
        connection = line.connection
        if connection is not None and not connection.is_closed():
            try:
                async with timeout(REUSE_SECONDS):
                    return await _shell(connection, make)
            except (asyncssh.Error, OSError, asyncio.TimeoutError, TimeoutError):
                if line.connection is connection:
                    line.connection = None
                connection.abort()
        async with line.lock:
            if line.connection is None or line.connection.is_closed():
                line.connection = await self._dialer.open(spec)
            connection = line.connection
        try:
            return await _shell(connection, make)
        except asyncssh.ChannelOpenError as error:
            raise TransportError(
                Status.UNREACHABLE,
                f"the node opens no session (sshd MaxSessions?): {words(error.reason)}",
                transient=True,
            ) from error
        except (asyncssh.Error, OSError) as error:
            raise explain(error, self._dialer.way(spec)) from error

    async def _converse(self, reply: Reply, script: Script) -> AsyncGenerator[bytes, None]:
        hello = script.nonce.encode()
        done = hello + b" done"
        head, tail, begun = b"", b"", False
        while data := await reply.read():
            window = tail + data
            begun = begun or hello in window
            reply.done = reply.done or done in window
            tail = window[-len(done) :]
            head = head if len(head) > 2000 else head + data
            yield data
        if not begun:
            raise _never_ran(reply, head)
        if reply.lost is not None:
            raise TransportError(
                Status.TRUNCATED, "the connection was lost in the middle of the reply", transient=True
            )

    def _let_go(self, name: str, line: _Line) -> None:
        """Keep the connection for the next run, unless as many as this process may hold are kept already."""
        kept = sum(one.connection is not None for one in self._lines.values())
        if line.users == 0 and line.connection is not None and kept > self._keep:
            line.connection.close()
            self._lines.pop(name, None)


async def _shell(connection: asyncssh.SSHClientConnection, make: Callable[[], R]) -> R:
    reply = make()
    await connection.create_session(
        lambda: reply, "sh", env=None, send_env=None, request_pty=False, x11_forwarding=False, encoding=None
    )
    return reply


def _never_ran(reply: Reply, head: bytes) -> TransportError:
    """The session ended and our script has not said a word: what it was that spoke instead."""
    said = words((head + b"\n" + bytes(reply.errors)).decode("utf-8", "replace"))
    quoted = f": {said}" if said else ""
    if reply.lost is not None:
        return TransportError(
            Status.UNREACHABLE, f"the connection was lost before the node answered{quoted}", transient=True
        )
    if reply.exit_status in (126, 127):
        return TransportError(Status.TOOL_MISSING, f"the node has no sh that could run the script{quoted}")
    if reply.exit_status is None:
        return TransportError(
            Status.TRUNCATED, f"the node ended the session before the script ran{quoted}", transient=True
        )
    return TransportError(
        Status.DENIED,
        f"the login shell did not run the script (exit {reply.exit_status}){quoted}; give this user a shell",
    )


def keep_limit(files: int | None = None) -> int:
    """Connections that may be kept with the soft limit on open files."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if files is None else files
    if soft == resource.RLIM_INFINITY:
        soft = 65_536
    return max(1, (soft - FILES_SPARED) // FILES_PER_CONNECTION)
