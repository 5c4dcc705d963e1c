"""One line of a journal: JSON that says its kind and time, its number, and a checksum of itself.

`{"kind":…,"at":…,"body":{…},"seq":N,"observations":M,"crc":"…"}`: the numbers come last, so that the tail of a file tells how
much is in it without reading the rest. `crc` is the CRC-32 (hex) of everything before it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec

from straggler.engine.gather import Event, NodeEnded, NodeNoise, NodeStarted
from straggler.engine.model import Observation
from straggler.engine.redact import redact, redact_tree

META, END = "meta", "end"
EVENTS: Mapping[str, type[Event]] = {
    "observation": Observation,
    "node-started": NodeStarted,
    "node-ended": NodeEnded,
    "node-noise": NodeNoise,
}
_KIND = {cls: kind for kind, cls in EVENTS.items()}

Record = Event | Mapping[str, Any]
"""What a journal takes: an event of a gathering, or a mapping with its own `kind`."""

TAIL = re.compile(rb'"seq":(\d{1,15}),"observations":(\d{1,15}),"crc":"([0-9a-f]{8})"\}\n')
_CRC_CHARS = len(b',"crc":"00000000"}')


@dataclass(frozen=True, slots=True)
class Entry:
    """One record as it was written. `at`: Unix seconds when it happened. Unknown kinds keep their mapping as body."""

    kind: str
    at: float
    body: Record
    seq: int


class _Line(msgspec.Struct):
    kind: str
    at: float
    body: msgspec.Raw
    seq: int
    observations: int


def kind_of(record: Record) -> str:
    if isinstance(record, Mapping):
        return str(record.get("kind", "note"))
    return _KIND[type(record)]


def encode(record: Record, at: float, seq: int, observations: int) -> bytes:
    """The line, newline included. Secrets and lone surrogates do not get in, whoever made the record."""
    head = {
        "kind": kind_of(record),
        "at": at,
        "body": _clean(record),
        "seq": seq,
        "observations": observations,
    }
    body = msgspec.json.encode(head)[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def decode(line: bytes) -> Entry | None:
    """The entry, or None for a line that is torn, altered or not ours. Never raises."""
    line = line.rstrip(b"\n")
    body, crc = line[:-_CRC_CHARS], line[-_CRC_CHARS:]
    if crc != b',"crc":"%08x"}' % zlib.crc32(body):
        return None
    try:
        read = msgspec.json.decode(line, type=_Line)
        return Entry(read.kind, read.at, _body(read), read.seq)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _body(line: _Line) -> Record:
    """Known kinds as their type; what a newer version wrote differently stays a mapping, kept and not judged."""
    if cls := EVENTS.get(line.kind):
        try:
            event: Event = msgspec.json.decode(line.body, type=cls)
            return event
        except msgspec.ValidationError:
            pass
    return msgspec.json.decode(line.body, type=dict[str, Any])


def _clean(record: Record) -> Any:
    if is_dataclass(record):
        return {one.name: _scalar(getattr(record, one.name)) for one in fields(record)}
    return redact_tree(plain(record), _scalar)


def _scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return str(redact(value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()))
    return value


def plain(value: Any) -> Any:
    """The value in what JSON knows: dataclasses and mappings as dicts, sets and tuples as lists, the rest as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, Enum):
        return plain(value.value)
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
