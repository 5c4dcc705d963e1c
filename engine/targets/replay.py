"""A recorded session as a target: the same events, in order, through the same facts and rules; nothing is asked of anyone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from straggler.engine.errors import TransportError, UsageError
from straggler.engine.gather import Event
from straggler.engine.model import Node, Status
from straggler.engine.recovery import Recovered, find_session, list_sessions, recover
from straggler.engine.script import Script
from straggler.engine.targets.base import Target

LONGEST_PAUSE = 2.0
"""Seconds a replay with timing waits between two events at most: nobody watches an engineer's lunch break."""

BREATH = 64
"""Events after which a replay without timing lets the event loop do something else."""


def replay_session(name: str | Path, state: Path | None = None) -> Recovered:
    """The session of an id, a unique start of one, or a path. Raises UsageError when there is none."""
    path = find_session(name, state)
    if path is None:
        known = ", ".join(one.id for one in list_sessions(state)[:3])
        hint = f"the newest are: {known}" if known else "there are none yet"
        raise UsageError(f"no session {str(name)!r}; {hint} (straggler sessions lists them)")
    recovered = recover(path)
    if not recovered.meta and not recovered.records:
        raise UsageError(
            f"{path} is no journal of a session: {recovered.why or 'nothing in it could be read'}"
        )
    return recovered


async def replay(recovered: Recovered, speed: float | None = None) -> AsyncIterator[Event]:
    """The events in order; with `speed`, at the recorded pace times `speed`, else as fast as they are taken."""
    before: float | None = None
    for at, entry in enumerate(recovered.records):
        if isinstance(entry.body, Mapping):
            continue
        if speed and before is not None and entry.at > before:
            await asyncio.sleep(min((entry.at - before) / speed, LONGEST_PAUSE))
        elif at % BREATH == 0:
            await asyncio.sleep(0)
        before = entry.at
        yield entry.body


@dataclass(frozen=True)
class Replay:
    """A session to show again. `speed` None: all at once; 1.0: at the pace it was recorded."""

    recovered: Recovered
    speed: float | None = None

    @property
    def target(self) -> Target:
        return replay_target(self.recovered)

    def events(self) -> AsyncIterator[Event]:
        return replay(self.recovered, self.speed)


class NobodyThere:
    """The transport of a replay: a recorded node cannot be asked again."""

    name = "replay"
    limit = 1

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        raise TransportError(
            Status.UNREACHABLE, "this is a recording; open the live target to read the node again"
        )
        yield b""  # makes this an async generator

    async def close(self) -> None:
        return None


def replay_target(recovered: Recovered) -> Target:
    """The recorded target, by its recorded name and clock."""
    about = recovered.target
    spec = about.get("spec")
    now = about.get("now")
    return Target(
        kind="replay",
        title=str(about.get("title") or recovered.path.parent.name),
        nodes=recovered.nodes,
        transport=NobodyThere(),
        spec={k: v for k, v in spec.items() if isinstance(v, (str, int))} if isinstance(spec, dict) else {},
        now=float(now) if isinstance(now, (int, float)) else None,
    )
