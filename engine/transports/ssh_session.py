"""One `sh` on a node: stdout with back-pressure, stderr bounded, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

import asyncssh

FULL = 1_000_000
"""Unread bytes at which the node is told to wait."""

ERRORS_KEPT = 2_000
GRACE_SECONDS = 2.0
"""After sh has exited: how long a child that keeps its output open is listened to."""


class Reply(asyncssh.SSHClientSession[bytes]):
    """Bytes of stdout by `read`; b"" is the end. `lost` is set when the connection broke, `done` by who knows the end is near."""

    def __init__(self, body: bytes) -> None:
        """`body` is the whole of stdin."""
        self._body = body
        self.errors = bytearray()
        self.exit_status: int | None = None
        self.lost: Exception | None = None
        self.done = False
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._paused = self._ended = self._closed = False
        self._wake = asyncio.Event()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._grace: asyncio.TimerHandle | None = None

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """The channel is open, and `sh` about to be asked for: stdin follows at once instead of waiting for the answer."""
        self._channel = chan
        asyncio.get_running_loop().call_soon(self._send)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype is not None:
            self.errors += data[: max(0, ERRORS_KEPT - len(self.errors))]
            return
        self._chunks.append(data)
        self._size += len(data)
        if self._size > FULL and not self._paused and self._channel is not None:
            self._paused = True
            self._channel.pause_reading()
        self._wake.set()

    def eof_received(self) -> bool:
        """True: the channel stays open for the exit status that follows."""
        self._finish()
        return True

    def exit_status_received(self, status: int) -> None:
        self.exit_status = status
        self._grace = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._finish)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._grace = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost, self._closed = exc, True
        self._finish()

    async def read(self) -> bytes:
        while not self._chunks and not self._ended:
            self._wake.clear()
            await self._wake.wait()
        if not self._chunks:
            return b""
        data = self._chunks.popleft() if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        if self._paused and self._channel is not None:
            self._paused = False
            self._channel.resume_reading()
        return data

    def end(self) -> None:
        """Stop listening. A script that has not said it is done is told to end: it cleans up behind itself."""
        if self._grace is not None:
            self._grace.cancel()
        if self._channel is None or self._closed:
            return
        with contextlib.suppress(OSError):
            if not self.done and self.exit_status is None:
                self._channel.terminate()
            self._channel.close()

    def _send(self) -> None:
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.write(self._body)
                self._channel.write_eof()

    def _finish(self) -> None:
        self._ended = True
        self._wake.set()
