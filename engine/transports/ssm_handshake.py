"""The first words of a session: what the agent asks of its client, and what this client answers.

The agent names the kind of session and, where the account encrypts sessions, a KMS key; it waits 15 s for the answer
(public agent, read 2026-12-01). What cannot be done is answered as failed, so that the agent does not wait in vain.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.transports.ssm_errors import words
from straggler.engine.transports.ssm_kms import Cipher
from straggler.engine.transports.ssm_wire import UNREADABLE, WireError

CLIENT_VERSION = "1.2.707.0"
"""The plugin version this client is like: since 1.2.312.0 the agent keeps stderr and the exit code apart."""

SESSION_TYPES = frozenset({"Standard_Stream", "InteractiveCommands", "NonInteractiveCommands"})

DONE, FAILED, UNSUPPORTED = 1, 2, 3

KeyMaker = Callable[[str, str], Awaitable[tuple[Cipher, bytes]]]
"""From the KMS key's id and the agent's challenge to the cipher and the encrypted data key. Raises TransportError."""


class _Action(msgspec.Struct):
    ActionType: str
    ActionParameters: Any = None


class _Request(msgspec.Struct):
    AgentVersion: str = ""
    RequestedClientActions: list[_Action] = []


class _SessionType(msgspec.Struct):
    SessionType: str


class _Encryption(msgspec.Struct):
    KMSKeyId: str
    Challenge: str = ""


class _Challenge(msgspec.Struct):
    Challenge: str


@dataclass
class Answer:
    """The response as bytes. `trouble`: why this session cannot be used, once the agent has been told."""

    payload: bytes = b""
    agent: str = ""
    cipher: Cipher | None = None
    trouble: TransportError | None = None
    actions: list[dict[str, object]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, kind: str, status: int, result: object = None, error: str = "") -> None:
        self.actions.append(
            {"ActionType": kind, "ActionStatus": status, "ActionResult": result, "Error": error}
        )
        if error:
            self.errors.append(error)


async def answer(payload: bytes, make_key: KeyMaker) -> Answer:
    """Do what the agent asks. Raises WireError for a request that is none."""
    try:
        request = msgspec.json.decode(payload, type=_Request)
    except UNREADABLE as error:
        raise WireError("a handshake that cannot be read") from error
    reply = Answer(agent=words(request.AgentVersion))
    for action in request.RequestedClientActions:
        if action.ActionType == "SessionType":
            _session_type(reply, action)
        elif action.ActionType == "KMSEncryption":
            await _encryption(reply, action, make_key)
        else:
            kind = words(action.ActionType)
            reply.add(action.ActionType, UNSUPPORTED, error=f"Unsupported action {kind}")
            reply.trouble = reply.trouble or TransportError(
                Status.FAILED, f"the node's agent asks for {kind}, which this program does not know"
            )
    content = {
        "ClientVersion": CLIENT_VERSION,
        "ProcessedClientActions": reply.actions,
        "Errors": reply.errors or None,
    }
    reply.payload = msgspec.json.encode(content)
    return reply


def _session_type(reply: Answer, action: _Action) -> None:
    try:
        kind = msgspec.convert(action.ActionParameters, _SessionType).SessionType
    except UNREADABLE:
        kind = ""
    if kind in SESSION_TYPES:
        reply.add(action.ActionType, DONE)
        return
    reply.add(action.ActionType, FAILED, error=f"Unknown session type {words(kind)}")
    reply.trouble = TransportError(
        Status.FAILED, f"the session document starts a session of type {words(kind)!r}, not a command"
    )


async def _encryption(reply: Answer, action: _Action, make_key: KeyMaker) -> None:
    try:
        asked = msgspec.convert(action.ActionParameters, _Encryption)
    except UNREADABLE as error:
        raise WireError("an encryption request that cannot be read") from error
    try:
        reply.cipher, blob = await make_key(asked.KMSKeyId, asked.Challenge)
    except TransportError as error:
        reply.add(action.ActionType, FAILED, error="the data key could not be made")
        reply.trouble = error
        return
    result = {
        "KMSCipherTextKey": base64.b64encode(blob).decode(),
        "KMSCipherTextHash": None,
        "ChallengeAcknowledgement": bool(asked.Challenge),
    }
    reply.add(action.ActionType, DONE, result)


def answer_challenge(payload: bytes, cipher: Cipher) -> bytes:
    """The agent's random bytes, opened with its half of the key and sealed with ours. Raises WireError."""
    try:
        sealed = base64.b64decode(msgspec.json.decode(payload, type=_Challenge).Challenge, validate=True)
    except (*UNREADABLE, binascii.Error) as error:
        raise WireError("a challenge that cannot be read") from error
    again = cipher.seal(cipher.open(sealed))
    return msgspec.json.encode({"Challenge": base64.b64encode(again).decode()})
