"""The message format once more, written from the public sources field by field, and strict: it shares nothing with the product."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from dataclasses import dataclass

TYPE, SCHEMA, CREATED, SEQUENCE, FLAGS, IDENTITY, DIGEST, PAYLOAD_TYPE, LENGTH, PAYLOAD = (
    4,
    36,
    40,
    48,
    56,
    64,
    80,
    112,
    116,
    120,
)


@dataclass(frozen=True)
class Read:
    kind: str
    sequence: int
    flags: int
    identity: str
    payload_type: int
    payload: bytes


def number(data: bytes, offset: int, size: int) -> int:
    return int.from_bytes(data[offset : offset + size], "big", signed=True)


def read(data: bytes) -> Read:
    """A client's message; AssertionError for anything a strict service could take offence at."""
    assert isinstance(data, bytes), "all but the first frame are binary"
    assert len(data) >= PAYLOAD, "a whole header"
    assert number(data, 0, 4) == LENGTH, "the header length does not count the payload length"
    raw = data[TYPE:SCHEMA]
    kind = raw.rstrip(b" ").decode("ascii")
    assert raw == kind.encode().ljust(32), "padded with blanks, not NULs"
    assert kind in ("input_stream_data", "acknowledge")
    assert number(data, SCHEMA, 4) == 1
    assert abs(number(data, CREATED, 8) / 1000 - time.time()) < 3600, "milliseconds"
    payload = data[PAYLOAD:]
    assert number(data, LENGTH, 4) == len(payload)
    assert data[DIGEST:PAYLOAD_TYPE] == hashlib.sha256(payload).digest()
    low, high = data[IDENTITY : IDENTITY + 8], data[IDENTITY + 8 : DIGEST]
    name = uuid.UUID(bytes=high + low)
    assert name.version == 4, "the halves of the UUID are swapped"
    flags = number(data, FLAGS, 8)
    if kind == "acknowledge":
        assert (flags, number(data, SEQUENCE, 8), number(data, PAYLOAD_TYPE, 4)) == (3, 0, 0)
    else:
        assert flags == 0
    return Read(kind, number(data, SEQUENCE, 8), flags, str(name), number(data, PAYLOAD_TYPE, 4), payload)


def acknowledged(message: Read) -> tuple[int, str]:
    content = json.loads(message.payload)
    assert set(content) == {
        "AcknowledgedMessageType",
        "AcknowledgedMessageId",
        "AcknowledgedMessageSequenceNumber",
        "IsSequentialMessage",
    }
    assert content["AcknowledgedMessageType"] == "output_stream_data"
    assert content["IsSequentialMessage"] is True
    return content["AcknowledgedMessageSequenceNumber"], content["AcknowledgedMessageId"]


def written(
    kind: str, payload: bytes, *, payload_type: int = 0, sequence: int = 0, flags: int = 0
) -> tuple[bytes, str]:
    """An agent's or the service's message, and its id."""
    name = uuid.uuid4()
    data = b"".join(
        (
            LENGTH.to_bytes(4, "big"),
            kind.encode().ljust(32),
            (1).to_bytes(4, "big"),
            int(time.time() * 1000).to_bytes(8, "big"),
            sequence.to_bytes(8, "big", signed=True),
            flags.to_bytes(8, "big"),
            name.bytes[8:],
            name.bytes[:8],
            hashlib.sha256(payload).digest(),
            payload_type.to_bytes(4, "big"),
            len(payload).to_bytes(4, "big"),
            payload,
        )
    )
    return data, str(name)
