"""What is read of the cluster as a whole, beside its nodes: each reading ends in one observation, kept and journaled like theirs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from straggler.engine.aws.errors import AwsError
from straggler.engine.gather import Event
from straggler.engine.model import Observation, Status, Vantage
from straggler.engine.redact import redact

CLUSTER = "cluster"
"""What stands where a node's name would."""

_HEAD = "cluster."


@dataclass(frozen=True)
class Reading:
    """One question to an API. `id` begins with `cluster.`; `operations` are what it calls, as service:Operation; `read` gives JSON
    text or raises AwsError."""

    id: str
    what: str
    operations: tuple[str, ...]
    read: Callable[[], Awaitable[str]]


def of_cluster(event: Event) -> bool:
    """Whether this is the outcome of a Reading, not of a node."""
    return isinstance(event, Observation) and event.collector.startswith(_HEAD) and event.node == CLUSTER


async def take(reading: Reading, to: Callable[[Event], None]) -> None:
    """Read it and hand over what became of it; also when it is cancelled."""
    started = time.time()

    def made(status: Status, why: str = "", text: str = "") -> Observation:
        return Observation(
            reading.id,
            CLUSTER,
            Vantage.API,
            status,
            why=why,
            text=text,
            started=started,
            ended=time.time(),
        )

    try:
        text = await reading.read()
        # Looking for secrets in a long text is no work for the event loop.
        clean = await asyncio.to_thread(redact, text)
    except AwsError as error:
        to(made(error.status, error.why))
    except asyncio.CancelledError:
        to(made(Status.CANCELLED, "the run was stopped"))
        raise
    else:
        to(made(Status.OK, text=str(clean)))
