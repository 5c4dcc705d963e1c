"""The binary messages of a Session Manager data channel: packing, and unpacking what may be damaged or hostile.

The layout (big-endian) is that of the public clients: github.com/aws/session-manager-plugin and
github.com/aws/amazon-ssm-agent, read 2026-12-01. The header's own length field does not count the payload length behind it.
"""

from __future__ import annotations

import hashlib
import struct
import time
import uuid
from typing import NamedTuple

import msgspec

HEADER = struct.Struct(">I32sIQqQ16s32sII")
HEADER_LENGTH = 116
"""What the length field says: everything before the payload length."""

OUTPUT_DATA = "output_stream_data"
INPUT_DATA = "input_stream_data"
ACKNOWLEDGE = "acknowledge"
CHANNEL_CLOSED = "channel_closed"
START_PUBLICATION = "start_publication"
PAUSE_PUBLICATION = "pause_publication"

OUTPUT = 1
HANDSHAKE_REQUEST = 5
HANDSHAKE_RESPONSE = 6
HANDSHAKE_COMPLETE = 7
CHALLENGE_REQUEST = 8
CHALLENGE_RESPONSE = 9
FLAG = 10
STDERR = 11
EXIT_CODE = 12

SYN = 1
ACK_FLAGS = 3
"""Acknowledgements are streams of one message: the first and the last of their kind."""


UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What reading JSON of others may raise; the last for brackets within brackets without end."""


class WireError(ValueError):
    """Bytes that are no message, or not the message that was sent. Says nothing of their content."""


class Message(NamedTuple):
    """`identity` is the message's UUID in text; `created` is in Unix milliseconds."""

    kind: str
    payload: bytes
    payload_type: int
    sequence: int
    flags: int
    identity: str
    created: int
    schema: int


def pack(
    kind: str,
    payload: bytes = b"",
    *,
    payload_type: int = 0,
    sequence: int = 0,
    flags: int = 0,
    identity: uuid.UUID | None = None,
) -> bytes:
    """One message as bytes. The two halves of the UUID stand in the reverse order."""
    name = (identity or uuid.uuid4()).bytes
    head = HEADER.pack(
        HEADER_LENGTH,
        kind.encode("ascii").ljust(32),
        1,
        int(time.time() * 1000),
        sequence,
        flags,
        name[8:] + name[:8],
        hashlib.sha256(payload).digest(),
        payload_type,
        len(payload),
    )
    return head + payload


def unpack(data: bytes) -> Message:
    """Raises WireError for bytes that are cut, altered or no message at all."""
    if len(data) < HEADER.size:
        raise WireError("shorter than a header")
    length, kind, schema, created, sequence, flags, halves, digest, payload_type, size = HEADER.unpack_from(
        data
    )
    # A longer header than today's would still be followed by the payload.
    if not HEADER_LENGTH <= length <= len(data) - 4:
        raise WireError("a header of impossible length")
    name = kind.strip(b"\0 ").decode("ascii", "replace")
    payload = data[length + 4 :]
    if name not in (START_PUBLICATION, PAUSE_PUBLICATION):
        if not name or not created:
            raise WireError("a header without a type or a date")
        if len(payload) != size or (payload and hashlib.sha256(payload).digest() != digest):
            raise WireError("the payload is not what the header says")
    identity = str(uuid.UUID(bytes=halves[8:] + halves[:8]))
    return Message(name, payload, payload_type, sequence, flags, identity, created, schema)


class _Acknowledged(msgspec.Struct):
    # The names are those of the protocol.
    AcknowledgedMessageType: str
    AcknowledgedMessageId: str
    AcknowledgedMessageSequenceNumber: int
    IsSequentialMessage: bool = True


_encode = msgspec.json.Encoder().encode
_acknowledged = msgspec.json.Decoder(_Acknowledged).decode


def acknowledge(message: Message) -> bytes:
    """The acknowledgement of one stream message."""
    content = _Acknowledged(message.kind, message.identity, message.sequence)
    return pack(ACKNOWLEDGE, _encode(content), flags=ACK_FLAGS)


def acknowledged(message: Message) -> int:
    """The sequence number that an acknowledgement is for. Raises WireError."""
    try:
        return _acknowledged(message.payload).AcknowledgedMessageSequenceNumber
    except UNREADABLE as error:
        raise WireError("an acknowledgement of nothing") from error


class _Closed(msgspec.Struct):
    Output: str = ""


def closing_words(message: Message) -> str:
    """What a `channel_closed` gives as its reason; empty for an ordinary end."""
    try:
        return msgspec.json.decode(message.payload, type=_Closed).Output
    except UNREADABLE:
        return ""
