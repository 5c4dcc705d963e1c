"""One data channel, from the handshake to its end: what the node says in its order, through loss and a dropped socket."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

from straggler.engine.compat import timeout
from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.transports import ssm_wire as wire
from straggler.engine.transports.ssm_dial import Dialer
from straggler.engine.transports.ssm_handshake import answer, answer_challenge
from straggler.engine.transports.ssm_kms import Cipher
from straggler.engine.transports.ssm_sessions import Session, Sessions, tries
from straggler.engine.transports.ssm_stream import Incoming, Outgoing

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

HANDSHAKE_SECONDS = 15
"""Until the node must have begun the session: the agent itself waits as long for its client."""

OPEN_TRIES = 5
OPEN_SECONDS = 20
RESUMES = 5
"""How often a socket is opened, and for how long that is tried; how often one session may lose its socket."""

DAMAGED = 50
"""Messages that may come damaged before the channel is given up."""


class Chunk(NamedTuple):
    """A piece of the command's output: `kind` is OUTPUT, STDERR or EXIT_CODE of the wire."""

    kind: int
    data: bytes


class Channel:
    """`receive` is the whole of it: it also acknowledges, sends again and reconnects, and only while it is awaited."""

    def __init__(self, session: Session, sessions: Sessions, dialer: Dialer) -> None:
        self.session = session
        self.agent = ""
        self.ended: str | None = None
        """Set when the service has closed the channel: its reason, empty for an ordinary end."""
        self.resumed = 0
        self._sessions, self._dialer = sessions, dialer
        self._incoming, self._outgoing = Incoming(), Outgoing()
        self._socket: ClientConnection | None = None
        self._cipher: Cipher | None = None
        self._begin_by: float | None = None
        self._paused = False
        self._damaged = 0

    async def open(self) -> None:
        """Raises TransportError."""
        await self._connect(fresh=True)
        self._begin_by = self._now() + HANDSHAKE_SECONDS

    async def close(self) -> None:
        """End the socket without waiting for the other side."""
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.transport.abort()
            await socket.wait_closed()

    async def receive(self) -> list[Chunk]:
        """The next pieces, in order; an empty list when the channel has ended. Raises TransportError."""
        from websockets.exceptions import ConnectionClosed

        while self.ended is None:
            try:
                data = await self._next()
            except ConnectionClosed:
                data = None
            if data is None:
                await self._reconnect()
            elif chunks := await self._take(data):
                return chunks
        return []

    async def _next(self) -> bytes:
        """The next message; what has to be sent again meanwhile is sent."""
        assert self._socket is not None
        while True:
            wait = None if self._paused else self._outgoing.wait(self._now())
            if self._begin_by is not None:
                left = max(0.0, self._begin_by - self._now())
                wait = left if wait is None else min(left, wait)
            if wait is None:
                return await self._socket.recv(decode=False)
            try:
                async with timeout(wait):
                    return await self._socket.recv(decode=False)
            except TimeoutError:
                await self._overdue()

    async def _overdue(self) -> None:
        now = self._now()
        if self._begin_by is not None and now >= self._begin_by:
            raise TransportError(
                Status.UNREACHABLE,
                f"the node's agent did not begin the session within {HANDSHAKE_SECONDS} s",
                transient=True,
            )
        if self._paused or self._outgoing.wait(now) != 0:
            return
        try:
            data = self._outgoing.again(now)
        except TimeoutError:
            data = None
        if data is None:
            raise TransportError(
                Status.UNREACHABLE, "the node's agent stopped answering in the session", transient=True
            )
        await self._send(data)

    async def _take(self, data: bytes) -> list[Chunk]:
        try:
            message = wire.unpack(data)
            if message.kind == wire.OUTPUT_DATA:
                return await self._take_output(message)
            if message.kind == wire.ACKNOWLEDGE:
                self._outgoing.acknowledged(wire.acknowledged(message), self._now())
            elif message.kind == wire.CHANNEL_CLOSED:
                self.ended = wire.closing_words(message)
            elif message.kind in (wire.PAUSE_PUBLICATION, wire.START_PUBLICATION):
                self._paused = message.kind == wire.PAUSE_PUBLICATION
        except wire.WireError as error:
            # Not acknowledged: the agent will send it again.
            self._damaged += 1
            if self._damaged > DAMAGED:
                raise TransportError(Status.GARBLED, f"the session's messages are damaged: {error}") from None
        return []

    async def _take_output(self, message: wire.Message) -> list[Chunk]:
        self._paused = False
        heard, ready = self._incoming.take(message)
        if heard:
            await self._send(wire.acknowledge(message))
        chunks = []
        for one in ready:
            try:
                chunk = await self._process(one)
            except wire.WireError as error:
                # It had been sent like this: to wait for a better copy would be in vain.
                raise TransportError(
                    Status.GARBLED, f"the node's agent sent what cannot be used: {error}"
                ) from None
            if chunk is not None:
                chunks.append(chunk)
        return chunks

    async def _process(self, message: wire.Message) -> Chunk | None:
        kind = message.payload_type
        if kind in (wire.OUTPUT, wire.STDERR, wire.EXIT_CODE):
            self._begin_by = None
            payload = self._cipher.open(message.payload) if self._cipher else message.payload
            return Chunk(kind, payload)
        if kind == wire.HANDSHAKE_REQUEST:
            await self._shake_hands(message.payload)
        elif kind == wire.CHALLENGE_REQUEST:
            if self._cipher is None:
                raise wire.WireError("a challenge without a key")
            await self._say(answer_challenge(message.payload, self._cipher), wire.CHALLENGE_RESPONSE)
        elif kind == wire.HANDSHAKE_COMPLETE:
            self._begin_by = None
        return None

    async def _shake_hands(self, payload: bytes) -> None:
        async def make_key(key: str, challenge: str) -> tuple[Cipher, bytes]:
            return await self._sessions.data_key(self.session, key, challenge)

        reply = await answer(payload, make_key)
        self.agent, self._cipher = reply.agent, reply.cipher
        self._begin_by = self._now() + HANDSHAKE_SECONDS
        await self._say(reply.payload, wire.HANDSHAKE_RESPONSE)
        if reply.trouble is not None:
            raise reply.trouble

    async def _say(self, payload: bytes, payload_type: int) -> None:
        data = self._outgoing.add(payload, payload_type, self._now())
        if not self._paused:
            await self._send(data)

    async def _send(self, data: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        # A socket that is gone is noticed where it is read; what was not sent is sent again by then.
        if self._socket is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(data)

    async def _reconnect(self) -> None:
        await self.close()
        self.resumed += 1
        if self.resumed > RESUMES:
            raise TransportError(
                Status.TRUNCATED,
                f"the connection to Session Manager broke {self.resumed} times in one session",
                transient=True,
            )
        self._paused = False
        await self._connect(fresh=False)

    async def _connect(self, *, fresh: bool) -> None:
        """Open the socket; every try but the first of a fresh session asks for a new token."""
        async for attempt in tries(attempts=OPEN_TRIES, seconds=OPEN_SECONDS):
            with attempt:
                if not fresh:
                    self.session = await self._sessions.resume(self.session)
                fresh = False
                self._socket = await self._dialer.open(self.session)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
