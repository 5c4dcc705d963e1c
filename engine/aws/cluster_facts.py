"""From the kept text of a cluster's readings to facts. Pure: a replay reads the same text in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from straggler.engine.aws import hyperpod
from straggler.engine.aws.errors import AwsError
from straggler.engine.model import Observation, Status, Unread

STATUS, NODES = "cluster.status", "cluster.nodes"


@dataclass(frozen=True, slots=True)
class Told:
    """What one reading told, or why it did not. `at`: Unix seconds by the operator's clock when it was read."""

    facts: object
    at: float


def told(seen: Observation) -> Told:
    """Never raises: an answer that is not understood is Unread with that reason."""
    return Told(_facts(seen), seen.ended)


def _facts(seen: Observation) -> object:
    if seen.status is not Status.OK:
        return Unread(seen.status, seen.why or seen.status.value)
    parse = _PARSE.get(seen.collector)
    if parse is None:
        return Unread(Status.GARBLED, f"this version does not know the reading {seen.collector}")
    try:
        return parse(_timed(msgspec.json.decode(str(seen.text))))
    except (AwsError, msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError) as error:
        return Unread(Status.GARBLED, f"the answer was not understood: {error}")


_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)")


def _timed(value: Any) -> Any:
    """Times are times again."""
    if isinstance(value, dict):
        return {key: _timed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_timed(one) for one in value]
    if isinstance(value, str) and _TIME.fullmatch(value):
        return msgspec.convert(value, datetime)
    return value


_PARSE: Mapping[str, Callable[[Any], object]] = {STATUS: hyperpod.cluster, NODES: hyperpod.members}
