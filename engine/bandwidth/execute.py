"""A sweep by SSH: hold every node, run the rounds one after the other, write each result as it ends, leave nothing running.

Only with what the operator has confirmed (load_gate.py). Each node ends what runs there by itself when its deadline has come,
or when it no longer hears the operator; this side asks for it as soon as it can, and says what was left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from straggler.engine.bandwidth.holding import Holding, LoadTransport, NotHeld, Work
from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans import base
from straggler.engine.bandwidth.running import Output, finished
from straggler.engine.errors import FatalError, TransportError
from straggler.engine.load_gate import Confirmed, Hold, RunPair
from straggler.engine.model import Node
from straggler.engine.nodesets import fold

BEAT_SECONDS = 3
"""How often every held node hears that the operator is still there; it waits several times as long (LINK_SECONDS)."""

AT_ONCE = 64
"""Nodes that are contacted at the same time."""

LATE_SECONDS = 30
"""What a run may take beyond its deadline and grace before this side gives up on its node."""


class Step(str, Enum):
    """How far a run is. LEFT_OUT: not started because a node of it is at work, which says nothing about its bandwidth."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Held:
    """Every node is held or known to be away. `away`: nodes that cannot be reached, and why."""

    nodes: tuple[str, ...]
    away: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RoundStarted:
    round: Round


@dataclass(frozen=True, slots=True)
class Progress:
    """One run got so far. `path`: its result, once there is one. `why` explains FAILED and LEFT_OUT."""

    round: Round
    member: tuple[str, ...]
    step: Step
    why: str = ""
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class LetGo:
    """The end. `left`: processes of this sweep that would not end, by node. `unheard`: nodes that could not be asked."""

    nodes: int
    left: Mapping[str, int]
    unheard: Mapping[str, str]


Event = Held | RoundStarted | Progress | LetGo
NextRound = Callable[[], Awaitable[Round | None]]


class Sweep:
    """One sweep over confirmed nodes. `out` gets a folder per round; `heard` is told all that happens, as it happens."""

    def __init__(
        self,
        confirmed: Confirmed,
        nodes: Mapping[str, Node],
        transport: LoadTransport,
        out: Path,
        heard: Callable[[Event], None],
        who: str,
    ) -> None:
        self._confirmed, self._nodes, self._transport = confirmed, nodes, transport
        self._out, self._heard, self._who = out, heard, who
        self._held: dict[str, Holding] = {}
        self._away: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._runs, self._begun = 0, False
        self._doors = asyncio.Semaphore(AT_ONCE)

    async def run(self, next_round: NextRound) -> None:
        """Ask for rounds until there is none. Raises FatalError, with nothing started, where a node is not known to be idle."""
        async with AsyncExitStack() as sessions:
            beating = asyncio.ensure_future(self._beat())
            try:
                await self._hold_all(sessions)
                self._begun = True
                self._heard(Held(tuple(self._held), dict(self._away)))
                while (planned := await next_round()) is not None:
                    await self._round(planned)
            finally:
                await _surely(self._let_all_go())
                beating.cancel()

    # Before anything runs.

    async def _hold_all(self, sessions: AsyncExitStack) -> None:
        names = self._confirmed.proposal.nodes
        refused = [
            one for one in await asyncio.gather(*(self._hold(name, sessions) for name in names)) if one
        ]
        if not self._held and not refused:
            raise FatalError(f"no node could be reached: {next(iter(self._away.values()), 'none was named')}")
        if refused:
            raise FatalError(_refusal(refused, names, self._away))

    async def _hold(self, name: str, sessions: AsyncExitStack) -> tuple[str, str] | None:
        """Lock one node and look at it; the node and why it is refused, or None."""
        order = Hold(self._confirmed, name, self._who)
        try:
            async with self._doors:
                talk = await sessions.enter_async_context(self._transport.talk(self._nodes[name], order))
                holding = Holding(talk)
                work = await holding.take()
        except NotHeld as error:
            return name, str(error)
        except TransportError as error:
            self._away[name] = error.why
            return None
        except (asyncio.TimeoutError, TimeoutError):
            self._away[name] = "it did not say in time whether it is at work"
            return None
        self._held[name] = holding
        why = self._not_idle(work)
        return (name, why) if why else None

    def _not_idle(self, work: Work) -> str:
        """Why this node may not be loaded; empty: it is known to be idle."""
        if work.busy:
            more = f" and {len(work.busy) - 1} more" if len(work.busy) > 1 else ""
            return f"at work: {work.busy[0]}{more}"
        if work.unread:
            return f"not known to be idle: {'; '.join(work.unread)}"
        if work.gpus == 0 and not self._confirmed.proposal.allow_cpu:
            return "it shows no GPU; --allow-cpu takes such nodes, for a program that computes on the CPU"
        return ""

    async def _beat(self) -> None:
        while True:
            for one in self._held.values():
                one.beat()
            await asyncio.sleep(BEAT_SECONDS)

    # One round.

    async def _round(self, planned: Round) -> None:
        self._runs += len(planned.members)
        if self._runs > self._confirmed.proposal.runs:
            raise FatalError(f"refused: only {self._confirmed.proposal.runs} runs were confirmed")
        self._heard(RoundStarted(planned))
        names = [name for member in planned.members for name in member]
        at_work = dict(zip(names, await asyncio.gather(*map(self._look_again, names)), strict=True))
        runs = [
            asyncio.ensure_future(self._member(planned, member, [at_work[one] for one in member]))
            for member in planned.members
        ]
        try:
            await asyncio.gather(*runs)
        finally:
            for one in runs:
                one.cancel()
            await asyncio.gather(*runs, return_exceptions=True)

    async def _look_again(self, name: str) -> str:
        """Why this node may not be loaded any more: somebody's job may have come since."""
        holding = self._held.get(name)
        if holding is None:
            return ""
        try:
            return self._not_idle(await holding.check())
        except (TransportError, asyncio.TimeoutError, TimeoutError) as error:
            self._lose(name, error)
            return ""

    def _lose(self, name: str, error: Exception) -> None:
        why = error.why if isinstance(error, TransportError) else "it no longer answers"
        self._held.pop(name, None)
        self._lost[name] = why
        self._away[name] = f"the connection to it was lost: {why}"

    async def _member(self, planned: Round, member: tuple[str, ...], at_work: Sequence[str]) -> None:
        def say(step: Step, why: str = "", path: Path | None = None) -> None:
            self._heard(Progress(planned, member, step, why, path))

        for name, why in zip(member, at_work, strict=True):
            if why:
                return say(Step.LEFT_OUT, f"{name}: {why}")
        output = Output()
        missing = [f"{name}: {self._away[name]}" for name in member if name in self._away]
        if missing:
            output.why = f"did not start: {'; '.join(missing)}"
        else:
            say(Step.STARTED)
            await self._talk_through(member, output)
        path = self._out / base.result(planned, member)
        text = finished(output, member, self._confirmed.proposal.load)
        try:
            await asyncio.to_thread(_write, path, text)
        except OSError as error:
            raise FatalError(f"the sweep was stopped: {path} cannot be written: {error.strerror}") from error
        return say(Step.FAILED if output.failed else Step.DONE, output.why, path)

    async def _talk_through(self, member: tuple[str, ...], output: Output) -> None:
        """One run from its start to the last of its processes, on all its nodes."""
        load = self._confirmed.proposal.load
        order = RunPair(self._confirmed, member)
        try:
            async with self._transport.talk(self._nodes[member[0]], order) as talk:
                await output.take(talk, load.deadline + load.grace + LATE_SECONDS)
        except TransportError as error:
            output.why = f"did not start: {member[0]}: {error.why}"
        if output.timed_out(load):
            output.why = f"timed out after {load.deadline} s"
        elif output.status:
            output.why = f"exited with status {output.status}"
        for name, left in zip(member, await asyncio.gather(*map(self._clean, member)), strict=True):
            if left:
                output.why = output.why or f"{name}: {left}"

    async def _clean(self, name: str) -> str:
        """Nothing of this sweep runs on the node any more, or the reason why that is not known."""
        holding = self._held.get(name)
        if holding is None:
            return ""
        try:
            left = await holding.clean()
        except (TransportError, asyncio.TimeoutError, TimeoutError) as error:
            self._lose(name, error)
            return self._away[name]
        if left:
            self._held.pop(name)
            self._away[name] = f"{left} processes of an earlier run would not end there"
            return self._away[name]
        return ""

    # Afterwards, whatever happened.

    async def _let_all_go(self) -> None:
        left: dict[str, int] = {}
        unheard = dict(self._lost)

        async def one(name: str, holding: Holding) -> None:
            try:
                if many := await holding.let_go():
                    left[name] = many
            except (TransportError, asyncio.TimeoutError, TimeoutError) as error:
                unheard[name] = error.why if isinstance(error, TransportError) else "it no longer answers"

        nodes = {*self._held, *self._lost}
        await asyncio.gather(*(one(name, holding) for name, holding in list(self._held.items())))
        if self._begun or left:
            self._heard(LetGo(len(nodes), left, unheard))


async def _surely(work: Coroutine[None, None, None]) -> None:
    """All of it, though the one who waits is cancelled meanwhile: the cancellation comes after it."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


def _refusal(refused: Sequence[tuple[str, str]], names: Sequence[str], away: Mapping[str, str]) -> str:
    """One line: which nodes, why, and the node set that is left without them."""
    alike: dict[str, list[str]] = {}
    for name, why in refused:
        alike.setdefault(why, []).append(name)
    told = "; ".join(f"{fold(nodes)}: {why}" for why, nodes in alike.items())
    out = {name for name, _ in refused} | set(away)
    rest = [name for name in names if name not in out]
    cure = f"; without them: --hosts '{fold(rest)}'" if len(rest) > 1 else ""
    return f"nothing was started. {told}{cure}"


def _write(path: Path, text: bytes) -> None:
    """Whole or not at all: whoever watches the folder never sees half a result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with contextlib.suppress(FileNotFoundError):
        part.unlink()
    part.write_bytes(text)
    os.replace(part, path)
