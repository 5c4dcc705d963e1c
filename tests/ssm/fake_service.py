"""Session Manager on loopback: the control plane as an object, the data channels as a WebSocket server, an agent behind each."""

# ruff: noqa: N802, N803 - operations and parameters have the names of the API
from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import secrets
import ssl
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from straggler.engine.aws.errors import Asked, translate
from tests.ssm import fake_wire as wire
from tests.ssm.fake_agent import Agent, Answer
from tests.ssm.faults import Faults

CANARY = "canary7d1c9a"
"""In every token and address: must be seen nowhere."""

KNOWN_DOCUMENTS = {
    "AWS-StartNonInteractiveCommand": {"command", "separateOutputStream"},
    "AmazonEKS-ExecuteNonInteractiveCommand": {"command"},
    "AWS-StartInteractiveCommand": {"command"},
    "SSM-SessionManagerRunShell": set(),
}


def refusal(code: str, message: str = "", operation: str = "StartSession", status: int = 400) -> Exception:
    """What the guarded clients raise when the service answers so."""
    answer: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    prefix = "kms" if operation == "GenerateDataKey" else "ssm"
    return translate(ClientError(answer, operation), Asked(f"{prefix}:{operation}", "us-east-1"))


@dataclass
class Told:
    """One started session, as the service sees it."""

    id: str
    target: str
    document: str
    token: str
    agent: Agent
    opened: int = 0
    terminated: bool = False
    closed: bool = False
    work: asyncio.Task[None] | None = None


@dataclass
class FakeService:
    """`plans`: faults by target ("": all). `refusals`: by operation, what its next calls raise, in turn."""

    plans: Mapping[str, Faults] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    answer: Answer | None = None
    rate: float = 0.0
    """StartSession calls a second above which the service throttles; 0: never."""
    latency: float = 0.0
    tick: float = 0.1
    """How often an agent looks for what to send again."""
    allowed: frozenset[str] = frozenset(KNOWN_DOCUMENTS)
    missing: frozenset[str] = frozenset()
    refusals: dict[str, list[Exception | None]] = field(default_factory=lambda: defaultdict(list))
    sessions: dict[str, Told] = field(default_factory=dict)
    port: int = 0
    tls: ssl.SSLContext | None = None
    starts: list[float] = field(default_factory=list)
    throttled: int = 0
    trouble: list[BaseException] = field(default_factory=list)
    keys: dict[str, tuple[bytes, dict[str, str]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    on_start: Callable[[Told], None] | None = None
    open_now: int = 0
    most_open: int = 0

    # The control plane.

    async def call(self, service: str, operation: str, **parameters: Any) -> Mapping[str, Any]:
        self.asked.append((operation, parameters))
        await asyncio.sleep(self.latency)
        if self.refusals[operation] and (error := self.refusals[operation].pop(0)) is not None:
            raise error
        assert (service, operation) in {
            ("ssm", "StartSession"),
            ("ssm", "ResumeSession"),
            ("ssm", "TerminateSession"),
            ("kms", "GenerateDataKey"),
        }
        answer: Mapping[str, Any] = getattr(self, f"_{operation}")(**parameters)
        return answer

    def _StartSession(
        self,
        Target: str,
        DocumentName: str,
        Parameters: Mapping[str, list[str]],
        Reason: str,
    ) -> Mapping[str, Any]:
        assert 1 <= len(Target) <= 400
        assert 1 <= len(Reason) <= 256
        now = time.monotonic()
        if self.rate:
            recent = [at for at in self.starts if now - at < 1]
            if len(recent) >= self.rate:
                self.throttled += 1
                raise refusal("ThrottlingException", "Rate exceeded")
        self.starts.append(now)
        if DocumentName in self.missing:
            raise refusal("InvalidDocument", f"Document {DocumentName} does not exist.")
        if DocumentName not in self.allowed:
            raise refusal(
                "AccessDeniedException",
                "User: arn:aws:iam::123456789012:user/op is not authorized to perform: ssm:StartSession on resource:"
                f" arn:aws:ssm:us-east-1::document/{DocumentName}",
            )
        assert set(Parameters) <= KNOWN_DOCUMENTS[DocumentName]
        for values in Parameters.values():
            assert all(1 <= len(one) <= 65_535 for one in values)
        name = f"op-{uuid.uuid4().hex[:17]}"
        told = Told(
            name,
            Target,
            DocumentName,
            f"AAEAA{CANARY}{secrets.token_hex(8)}",
            Agent(
                name,
                Parameters.get("command", [""])[0],
                DocumentName,
                Parameters.get("separateOutputStream") == ["true"],
                self.plans.get(Target) or self.plans.get("", Faults()),
                self.env,
                answer=self.answer,
                tick=self.tick,
            ),
        )
        told.agent.data_key = lambda blob, challenge: self._decrypt(told, blob, challenge)
        self.sessions[name] = told
        if self.on_start is not None:
            self.on_start(told)
        return self._way(told)

    def _way(self, told: Told) -> Mapping[str, Any]:
        scheme = "wss" if self.tls else "ws"
        url = f"{scheme}://127.0.0.1:{self.port}/v1/data-channel/{told.id}?role=publish_subscribe&c={CANARY}"
        return {"SessionId": told.id, "TokenValue": told.token, "StreamUrl": url}

    def _ResumeSession(self, SessionId: str) -> Mapping[str, Any]:
        told = self.sessions[SessionId]
        if told.closed or told.agent.faults.lose_session:
            raise refusal("DoesNotExistException", "Session does not exist", "ResumeSession")
        told.token = f"AAEAA{CANARY}{secrets.token_hex(8)}"
        return self._way(told)

    def _TerminateSession(self, SessionId: str) -> Mapping[str, Any]:
        told = self.sessions[SessionId]
        told.terminated = True
        told.agent.kill()
        if told.work is not None:
            told.work.cancel()
        return {"SessionId": SessionId}

    def _GenerateDataKey(
        self,
        KeyId: str,
        NumberOfBytes: int,
        EncryptionContext: dict[str, str],
    ) -> Mapping[str, Any]:
        assert NumberOfBytes == 64
        key, blob = secrets.token_bytes(64), secrets.token_bytes(100)
        self.keys[base64.b64encode(blob).decode()] = (key, EncryptionContext)
        return {"Plaintext": key, "CiphertextBlob": blob, "KeyId": KeyId}

    def _decrypt(self, told: Told, blob: str, challenge: str) -> bytes:
        key, context = self.keys[blob]
        wanted = {"aws:ssm:SessionId": told.id, "aws:ssm:TargetId": told.target}
        assert context == wanted | ({"aws:ssm:RandomChallenge": challenge} if challenge else {})
        return key

    # The data channels.

    async def _channel(self, socket: ServerConnection) -> None:
        try:
            await self._attend(socket)
        except ConnectionClosed:
            pass
        except BaseException as error:
            self.trouble.append(error)
            raise

    async def _attend(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        path, _, query = socket.request.path.partition("?")
        assert query.startswith("role=publish_subscribe")
        told = self.sessions[path.removeprefix("/v1/data-channel/")]
        first = await asyncio.wait_for(socket.recv(), 10)
        assert isinstance(first, str), "the first frame is text"
        hello = json.loads(first)
        assert set(hello) == {"MessageSchemaVersion", "RequestId", "TokenValue", "ClientId", "ClientVersion"}
        assert hello["MessageSchemaVersion"] == "1.0"
        assert hello["TokenValue"] == told.token, "a token is good for one connection"
        for key in ("RequestId", "ClientId"):
            uuid.UUID(hello[key])
        told.token, told.opened = secrets.token_hex(8), told.opened + 1
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            await self._serve(socket, told)
        finally:
            self.open_now -= 1

    async def _serve(self, socket: ServerConnection, told: Told) -> None:
        agent = told.agent
        out: asyncio.Queue[bytes | None] = asyncio.Queue()
        send = agent.send = out.put_nowait
        agent.hang_up = socket.transport.abort
        if agent.faults.reason:
            await socket.send(_closed(told, agent.faults.reason))
            told.closed = True
            return
        if told.work is None:
            told.work = asyncio.ensure_future(agent.work())
            told.work.add_done_callback(self._worked)
        told.work.add_done_callback(lambda _: out.put_nowait(None))
        writing = asyncio.ensure_future(self._write(socket, told, out))
        try:
            async for data in socket:
                assert isinstance(data, bytes), "all frames but the first are binary"
                agent.hear(data)
        finally:
            if agent.send is send:
                agent.send = agent.hang_up = None
            writing.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                await writing

    async def _write(self, socket: ServerConnection, told: Told, out: asyncio.Queue[bytes | None]) -> None:
        while (data := await out.get()) is not None:
            await socket.send(data)
        told.closed = True
        await socket.send(_closed(told, ""))
        await socket.close()

    def _worked(self, work: asyncio.Task[None]) -> None:
        if not work.cancelled() and (error := work.exception()) is not None:
            self.trouble.append(error)

    # For the tests.

    @property
    def started(self) -> set[str]:
        return set(self.sessions)

    @property
    def left(self) -> set[str]:
        """Sessions that were started and never terminated."""
        return {one.id for one in self.sessions.values() if not one.terminated}

    async def settle(self) -> None:
        for told in self.sessions.values():
            if told.work is not None and not told.terminated:
                told.work.cancel()
        await asyncio.gather(
            *(one.work for one in self.sessions.values() if one.work), return_exceptions=True
        )


def _closed(told: Told, output: str) -> bytes:
    content = {
        "MessageId": str(uuid.uuid4()),
        "CreatedDate": str(int(time.time() * 1000)),
        "DestinationId": told.target,
        "SessionId": told.id,
        "MessageType": "channel_closed",
        "SchemaVersion": 1,
        "Output": output,
    }
    return wire.written("channel_closed", json.dumps(content).encode())[0]


@contextlib.asynccontextmanager
async def running(service: FakeService) -> AsyncIterator[FakeService]:
    """The service on a free port. What a strict service would have complained of fails the test."""
    where = ("127.0.0.1", 0)
    async with serve(
        service._channel, *where, ssl=service.tls, compression=None, ping_interval=None
    ) as server:
        service.port = next(iter(server.sockets)).getsockname()[1]
        try:
            yield service
        finally:
            await service.settle()
    for error in service.trouble:
        raise error
