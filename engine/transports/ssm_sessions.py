"""Sessions as the control plane knows them: started within the rate, resumed, and ended whatever happens.

TokenValue and StreamUrl open a shell on the node for whoever has them: they are kept in `Secret` and shown nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from straggler.engine.aws.errors import AwsError, Throttled
from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.script import Script
from straggler.engine.transports.ssm_bucket import TokenBucket
from straggler.engine.transports.ssm_command import DOCUMENTS, Document, parameters
from straggler.engine.transports.ssm_errors import (
    SESSION_OVER,
    document_refused,
    explain,
    explain_kms,
)
from straggler.engine.transports.ssm_kms import KEY_BYTES, Cipher, context
from straggler.engine.transports.ssm_wire import WireError

if TYPE_CHECKING:
    from stamina import Attempt

THROTTLED_TRIES = 6
"""How often one session is asked for while the service throttles; each refusal makes all of them slower."""

ENDING_SECONDS = 5
"""What the ending of a session may hold up whoever used it; it goes on in the background until `close`."""

CLOSING_SECONDS = 10
"""What `close` waits for sessions that are still being ended."""

REASON = "straggler: read-only diagnosis"
"""Shown in the account's session history."""


class AwsCalls(Protocol):
    """The few calls made here, and what they raise: AwsError."""

    async def call(self, service: str, operation: str, **parameters: Any) -> Mapping[str, Any]: ...


class Secret:
    """A text that no repr, log or traceback shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "<secret>"

    def reveal(self) -> str:
        return self._value


@dataclass(frozen=True, slots=True)
class Session:
    """One started session."""

    id: str
    target: str
    document: Document
    url: Secret
    token: Secret


class Sessions:
    """All sessions of one run. `left_open`: ids of those that could not be ended, for the operator to end."""

    def __init__(self, calls: AwsCalls, bucket: TokenBucket) -> None:
        self.bucket = bucket
        self.left_open: list[str] = []
        self.refused: dict[str, str] = {}
        """Documents that cannot be used here, with the reason."""
        self._calls = calls
        self._ending: set[asyncio.Task[None]] = set()

    async def start(self, target: str, script: Script, urgency: float = 0.0) -> Session:
        """A session on `target` that runs the script, once its turn has come. Raises TransportError."""
        tries = 0
        while True:
            document = self._document()
            wanted = parameters(document, script)
            # Whoever had to ask again goes before those who have not asked yet.
            await self.bucket.take(urgency if not tries else float("-inf"))
            try:
                return await self._start(target, document, wanted)
            except AwsError as error:
                met = explain(error)
                if isinstance(error, Throttled):
                    tries += 1
                    self.bucket.refused()
                    if tries < THROTTLED_TRIES:
                        continue
                elif document_refused(error, document.name):
                    self.refused[document.name] = met.why
                    continue
            raise met

    def _document(self) -> Document:
        for one in DOCUMENTS:
            if one.name not in self.refused:
                return one
        first = DOCUMENTS[0].name
        raise TransportError(Status.DENIED, f"{first} cannot be used here: {self.refused[first]}")

    async def _start(self, target: str, document: Document, wanted: Mapping[str, list[str]]) -> Session:
        call = asyncio.ensure_future(
            self._calls.call(
                "ssm",
                "StartSession",
                Target=target,
                DocumentName=document.name,
                Parameters=wanted,
                Reason=REASON,
            )
        )
        try:
            answer = await asyncio.shield(call)
        except asyncio.CancelledError:
            # The service may have started it by now.
            self._background(self._end_late(call))
            raise
        return self._session(answer, target, document)

    def _session(self, answer: Mapping[str, Any], target: str, document: Document) -> Session:
        found = [answer.get(key) for key in ("SessionId", "StreamUrl", "TokenValue")]
        if not all(isinstance(one, str) and one for one in found):
            if isinstance(found[0], str) and found[0]:
                self._background(self._end(found[0]))
            raise TransportError(
                Status.UNREACHABLE, "Systems Manager answered without a way to the session", transient=True
            )
        return Session(str(found[0]), target, document, Secret(str(found[1])), Secret(str(found[2])))

    async def resume(self, session: Session) -> Session:
        """The same session with a new token. Raises TransportError, which is final when the session is over."""
        try:
            answer = await self._calls.call("ssm", "ResumeSession", SessionId=session.id)
        except AwsError as error:
            raise explain(error) from error
        if not answer.get("TokenValue"):
            raise TransportError(Status.TRUNCATED, SESSION_OVER, transient=True)
        known = {"StreamUrl": session.url.reveal(), **answer, "SessionId": session.id}
        return self._session(known, session.target, session.document)

    async def data_key(self, session: Session, key: str, challenge: str) -> tuple[Cipher, bytes]:
        """The cipher of an encrypted session and the data key as only KMS can read it. Raises TransportError."""
        try:
            made = await self._calls.call(
                "kms",
                "GenerateDataKey",
                KeyId=key,
                NumberOfBytes=KEY_BYTES,
                EncryptionContext=context(session.id, session.target, challenge),
            )
            return Cipher(bytes(made["Plaintext"])), bytes(made["CiphertextBlob"])
        except AwsError as error:
            raise explain_kms(error, key) from error
        except (KeyError, TypeError, WireError):
            met = TransportError(Status.FAILED, "KMS answered without a usable data key")
        # Outside of `except`: what was wrong with a key is nobody's to see.
        raise met

    async def end(self, session: Session) -> None:
        """End it at the service. Returns after ENDING_SECONDS at the latest; cancelling this does not stop the ending."""
        await asyncio.wait({self._background(self._end(session.id))}, timeout=ENDING_SECONDS)

    async def close(self) -> None:
        """Wait for what is still being ended. What is not, is in `left_open`."""
        if not self._ending:
            return
        _, late = await asyncio.wait(set(self._ending), timeout=CLOSING_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _end_late(self, call: asyncio.Future[Mapping[str, Any]]) -> None:
        try:
            answer = await call
        except AwsError:
            return
        if isinstance(answer.get("SessionId"), str):
            await self._end(answer["SessionId"])

    async def _end(self, session: str) -> None:
        try:
            async for attempt in tries(attempts=4, seconds=CLOSING_SECONDS):
                with attempt:
                    await self._terminate(session)
        except (TransportError, asyncio.CancelledError):
            self.left_open.append(session)

    async def _terminate(self, session: str) -> None:
        try:
            await self._calls.call("ssm", "TerminateSession", SessionId=session)
        except AwsError as error:
            raise explain(error) from error


def _again(error: Exception) -> bool:
    # TRUNCATED: that session is over, only another one may do better.
    return isinstance(error, TransportError) and error.transient and error.status is not Status.TRUNCATED


def tries(*, attempts: int, seconds: float) -> AsyncIterator[Attempt]:
    """Tries with growing pauses while what fails is transient."""
    import stamina

    # Its log of retries would reach the operator's screen.
    stamina.instrumentation.set_on_retry_hooks(())
    return aiter(
        stamina.retry_context(on=_again, attempts=attempts, timeout=seconds, wait_initial=0.1, wait_max=5)
    )
