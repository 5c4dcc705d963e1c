"""A node that lies: whatever its agent sends, the answer is output or an error of that node, never a failure of ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine.errors import TransportError
from straggler.engine.transports.ssm_bucket import TokenBucket
from straggler.engine.transports.ssm_channel import DAMAGED, Channel, Chunk
from straggler.engine.transports.ssm_command import DOCUMENTS
from straggler.engine.transports.ssm_dial import Dialer
from straggler.engine.transports.ssm_sessions import Secret, Session, Sessions
from tests.ssm import fake_wire
from tests.ssm.fake_service import FakeService


class Mute:
    """A socket that takes everything and says nothing."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.sent.append(data)


def channel() -> tuple[Channel, Mute]:
    session = Session("s", "t", DOCUMENTS[0], Secret("u"), Secret("t"))
    made = Channel(session, Sessions(FakeService(), TokenBucket(1)), Dialer())
    socket = Mute()
    made._socket = socket  # type: ignore[assignment]
    return made, socket


def told(messages: list[bytes]) -> list[Chunk]:
    """What a channel makes of these messages; TransportError where it has had enough."""

    async def take() -> list[Chunk]:
        made, _ = channel()
        chunks = []
        for one in messages:
            chunks += await made._take(one)
        return chunks

    return asyncio.run(take())


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["SessionType", "KMSEncryption"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["RequestedClientActions", "ActionType", "ActionParameters", "SessionType", "KMSKeyId"]
            )
            | st.sampled_from(["Challenge", "AgentVersion", "Output", "AcknowledgedMessageSequenceNumber"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
payloads = st.binary(max_size=200) | anything.map(lambda one: json.dumps(one).encode())
kinds = st.sampled_from(
    ["output_stream_data", "acknowledge", "channel_closed", "pause_publication", "input_stream_data", "x"]
)


@given(
    st.lists(st.tuples(kinds, payloads, st.integers(0, 14), st.integers(-3, 6) | st.just(2**62)), max_size=12)
)
@settings(max_examples=200, deadline=None)
def test_no_message_breaks_more_than_its_own_session(messages: list[tuple[str, bytes, int, int]]) -> None:
    made = [
        fake_wire.written(kind, payload, payload_type=payload_type, sequence=number)[0]
        for kind, payload, payload_type, number in messages
    ]
    with contextlib.suppress(TransportError):
        told(made)


@pytest.mark.parametrize("kind", ["output_stream_data", "acknowledge", "channel_closed"])
def test_brackets_without_end_are_no_message(kind: str) -> None:
    deep = b'{"RequestedClientActions":[{"ActionType":"x","ActionParameters":' + b"[" * 100_000
    data, _ = fake_wire.written(kind, deep, payload_type=5)
    if kind == "output_stream_data":
        with pytest.raises(TransportError):
            told([data])
    else:
        assert told([data]) == []


def test_damaged_messages_are_not_acknowledged_and_too_many_end_the_session() -> None:
    data, _ = fake_wire.written("output_stream_data", b"x", payload_type=1)
    broken = data[:-1] + b"y"

    async def take() -> None:
        made, socket = channel()
        for _ in range(DAMAGED):
            assert await made._take(broken) == []
        assert socket.sent == []
        with pytest.raises(TransportError, match="damaged"):
            await made._take(broken)

    asyncio.run(take())


def test_a_challenge_without_a_key_is_refused() -> None:
    data, _ = fake_wire.written("output_stream_data", b'{"Challenge":"AAAA"}', payload_type=8)
    with pytest.raises(TransportError, match="cannot be used"):
        told([data])


@pytest.mark.parametrize(
    "code", [b"EXIT_CODE: 3", b"EXIT_CODE: -1", b"EXIT_CODE: " + b"9" * 5000, b"", b"\xff"]
)
def test_an_exit_code_is_a_number_or_nothing(code: bytes) -> None:
    from straggler.engine.transports.ssm import _exit_code

    assert _exit_code(code) in (3, -1, None)


def test_nothing_heavy_is_loaded_before_the_first_session() -> None:
    heavy = ("websockets", "cryptography", "botocore", "boto3", "stamina")
    code = (
        f"import sys, straggler.engine.transports.ssm;print([one for one in {heavy!r} if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
