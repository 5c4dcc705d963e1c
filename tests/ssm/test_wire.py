"""Messages: ours are read by a strict reader that shares no code, and whatever comes is understood or refused."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.transports import ssm_wire as wire
from tests.ssm import fake_wire

payloads = st.binary(max_size=2000)


@given(payloads, st.integers(0, 2**31 - 1), st.integers(0, 2**62))
def test_what_we_pack_is_what_a_strict_service_reads(payload: bytes, kind: int, number: int) -> None:
    name = uuid.uuid4()
    data = wire.pack(wire.INPUT_DATA, payload, payload_type=kind, sequence=number, identity=name)
    read = fake_wire.read(data)
    assert (read.payload, read.payload_type, read.sequence, read.identity) == (
        payload,
        kind,
        number,
        str(name),
    )


@given(payloads, st.integers(0, 2**62), st.sampled_from([0, 1, 2, 3]))
def test_what_an_agent_writes_is_what_we_read(payload: bytes, number: int, flags: int) -> None:
    data, name = fake_wire.written(
        "output_stream_data", payload, payload_type=1, sequence=number, flags=flags
    )
    read = wire.unpack(data)
    assert read.payload == payload
    assert (read.sequence, read.flags, read.identity, read.kind) == (number, flags, name, wire.OUTPUT_DATA)


def test_an_acknowledgement_names_the_message_it_is_for() -> None:
    data, name = fake_wire.written("output_stream_data", b"x", payload_type=1, sequence=7)
    ack = wire.acknowledge(wire.unpack(data))
    assert fake_wire.acknowledged(fake_wire.read(ack)) == (7, name)
    assert wire.acknowledged(wire.unpack(ack)) == 7


@given(payloads.filter(bool), st.data())
def test_a_damaged_payload_is_refused(payload: bytes, data: st.DataObject) -> None:
    whole, _ = fake_wire.written("output_stream_data", payload, payload_type=1)
    at = data.draw(st.integers(wire.HEADER.size, len(whole) - 1))
    with pytest.raises(wire.WireError):
        wire.unpack(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(wire.WireError):
        wire.unpack(whole[:at])


@given(st.binary(max_size=400) | st.binary(min_size=120, max_size=120))
def test_bytes_that_are_no_message_are_refused_and_nothing_worse(data: bytes) -> None:
    try:
        message = wire.unpack(data)
        wire.acknowledged(message)
    except wire.WireError:
        pass
    else:
        pytest.fail("random bytes are no acknowledgement")


@pytest.mark.parametrize(
    "payload", [b"", b"{}", b"[]", b'{"AcknowledgedMessageSequenceNumber":"x"}', b"\xff"]
)
def test_an_acknowledgement_of_nothing_is_refused(payload: bytes) -> None:
    data, _ = fake_wire.written("acknowledge", payload, flags=3)
    with pytest.raises(wire.WireError):
        wire.acknowledged(wire.unpack(data))


def test_publication_messages_are_not_checked() -> None:
    # The public clients take them without a digest or a date.
    bare = (116).to_bytes(4, "big") + b"pause_publication".ljust(32) + bytes(84)
    assert wire.unpack(bare).kind == wire.PAUSE_PUBLICATION


@pytest.mark.parametrize(("payload", "words"), [(b'{"Output":"why"}', "why"), (b"{}", ""), (b"\xff", "")])
def test_a_closed_channel_gives_its_reason_if_it_has_one(payload: bytes, words: str) -> None:
    data, _ = fake_wire.written("channel_closed", payload)
    assert wire.closing_words(wire.unpack(data)) == words
