"""The socket under an SSH connection: what is written in one turn of the event loop leaves in one piece.

asyncssh writes every packet by itself, each behind an empty one. Sent singly they cost the node, and us, a wake-up each:
joining them halves the packets of a run on a kept connection (tests/bench/bench_fanout.py).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncssh


class Wire:
    """Hands a connected socket to asyncssh in the place where it takes a tunnel."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    async def create_connection(
        self, factory: Callable[[], asyncssh.SSHClientConnection], _host: str, _port: int
    ) -> tuple[asyncio.Transport, asyncssh.SSHClientConnection]:
        connection = factory()
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: _Between(connection), sock=self._sock
        )
        return transport, connection


class _Between(asyncio.Protocol):
    """Passes everything on to the connection, and gives it the joining transport."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(_Joined(transport))

    def data_received(self, data: bytes) -> None:
        self._connection.data_received(data)

    def eof_received(self) -> None:
        self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()


class _Joined(asyncio.Transport):
    """A transport that sends once per turn of the event loop."""

    def __init__(self, transport: Any) -> None:
        super().__init__()
        self._transport = transport
        self._parts: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(bytes(data))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._flush()
        self._transport.abort()

    def is_closing(self) -> bool:
        return bool(self._transport.is_closing())

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def _flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            if not self._transport.is_closing():
                self._transport.write(data)
