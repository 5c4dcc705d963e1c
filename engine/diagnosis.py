"""One session from plan to report: what the terminal UI and the headless run share.

It gathers, journals, and keeps facts; it judges when asked. Everything a listener hears of has been written before.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from straggler.engine import readings
from straggler.engine.aws.cluster_facts import Told, told
from straggler.engine.bandwidth.baseline import Past
from straggler.engine.bandwidth.results import PAIR_RUN, Results, observation
from straggler.engine.collectors.base import AnyCollector
from straggler.engine.compat import TaskGroup
from straggler.engine.gather import Event, NodeEnded, NodeNoise, NodeStarted, gather
from straggler.engine.judge import Facts, Report, judge
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Finding, Node, Observation, Window
from straggler.engine.rules import cluster_state
from straggler.engine.script import Request
from straggler.engine.session import Health, Journal, describe
from straggler.engine.targets.base import Target
from straggler.engine.transports.base import Telling
from straggler.engine.triage import EVERYTHING, Plan

if TYPE_CHECKING:
    from straggler.engine.bandwidth.view import MatrixView


class NodeState(Enum):
    WAITING = "waiting"
    READING = "reading"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` nodes have ended; `reading` are being read since (Unix seconds) the time beside each."""

    done: int
    total: int
    reading: tuple[tuple[str, float], ...]
    seconds: float


@dataclass
class Diagnosis:
    """State of one session. Mutated on the event loop only; `report` may be called in any thread at any time.

    `seen` is what was read, by node and collector. It becomes facts only when it is judged: parsing is work for the thread
    that judges, not for the event loop.
    """

    target: Target
    plan: Plan
    known: Knowledge
    window: Window
    journal: Journal | None = None
    sudo: bool = False
    seen: dict[str, dict[str, Observation]] = field(default_factory=lambda: defaultdict(dict))
    states: dict[str, NodeState] = field(default_factory=dict)
    noise: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    started: float = field(default_factory=time.time)
    ended: float | None = None
    saved: Health | None = None
    _since: dict[str, float] = field(default_factory=dict)
    _unparsed: deque[Observation] = field(default_factory=deque)
    _facts: Facts = field(default_factory=Facts)
    _judging: Lock = field(default_factory=Lock)
    _told: dict[str, Told] = field(default_factory=dict)
    _results: Results = field(default_factory=Results)
    view: MatrixView | None = None
    following: bool = False
    _past: Past | None = None

    def __post_init__(self) -> None:
        self.states = {node.id: NodeState.WAITING for node in self.target.nodes}

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.target.nodes

    async def run(
        self, nodes: Sequence[Node] | None = None, collectors: tuple[AnyCollector, ...] | None = None
    ) -> None:
        """Read `nodes` (all) with `collectors` (the plan's). Cancelling keeps what came and says what did not."""
        chosen = self.nodes if nodes is None else nodes
        request = Request(
            collectors or self.plan.collectors, int(self.window.since), int(self.window.until), self.sudo
        )
        for node in chosen:
            self.states[node.id] = NodeState.WAITING
        self.ended = None
        try:
            async with TaskGroup() as group:
                if (
                    nodes is None
                    and self.target.results is not None
                    and self._wants_pairs
                    and not self.following
                ):
                    group.create_task(self.take_results(self.target.results(False)))
                for reading in self.target.readings if nodes is None else ():
                    group.create_task(readings.take(reading, self.take))
                await gather(chosen, request, self.target.transport, self.take)
        finally:
            self.ended = time.time()

    @property
    def _wants_pairs(self) -> bool:
        """By the symptom, or because the operator brought results: those are never passed over."""
        return self.plan.pairs or self.target.follow

    async def take_results(self, results: AsyncIterator[tuple[str, bytes]]) -> None:
        """Keep and judge pairwise results as they come; ends when they do."""
        async for name, data in results:
            # Looking for secrets in a long text is no work for the event loop.
            self.take(await asyncio.to_thread(observation, name, data))

    async def follow_results(self) -> None:
        """Take pairwise results as long as they may appear: for ever, until cancelled."""
        if self.target.results is not None and self._wants_pairs:
            self.following = True
            await self.take_results(self.target.results(True))

    def take(self, event: Event) -> None:
        """One event: journaled first, then kept and passed on."""
        event = self._dated(event)
        if self.journal is None:
            self.keep(event)
        else:
            self.journal.append(event, then=lambda: self.keep(event))

    def _dated(self, event: Event) -> Event:
        """On a target with a clock of its own (the demo) readings happen by that clock, as the window does."""
        if self.target.now is None or not isinstance(event, Observation):
            return event
        return replace(event, started=self.target.now, ended=self.target.now + (event.ended - event.started))

    def keep(self, event: Event) -> None:
        """Fold an event into the state (a replay calls this for what a journal holds)."""
        if isinstance(event, Observation) and (event.collector == PAIR_RUN or readings.of_cluster(event)):
            self._unparsed.append(event)
        elif isinstance(event, Observation):
            self.seen[event.node][event.collector] = event
            self._unparsed.append(event)
        elif isinstance(event, NodeStarted):
            self.states[event.node] = NodeState.READING
            self._since[event.node] = event.at
        elif isinstance(event, NodeEnded):
            self.states[event.node] = NodeState.ENDED
            self._since.pop(event.node, None)
            self.why[event.node] = event.why
        elif isinstance(event, NodeNoise):
            self.noise[event.node] = event.text
        for listener in self.listeners:
            listener(event)

    @contextmanager
    def journaled(self, state: Path | None) -> Iterator[Journal]:
        """Record the session in `state`; on leaving, everything is on disk or `saved` says why not."""
        about = describe(self.target, self.plan.symptom, self.window, sudo=self.sudo)
        self.journal = Journal.create(about, state)
        self.recall(state)
        try:
            yield self.journal
        finally:
            self.saved = self.journal.close()

    def recall(self, state: Path | None) -> None:
        """Set the sweeps of earlier sessions beside this one's. A simulated cluster has no past."""
        if self._wants_pairs and self.target.now is None and self.target.results is not None:
            self._past = Past(state)

    def remember(self) -> None:
        """Keep what this session's pairwise runs reached for later ones. To be called once everything is judged."""
        if self._past is not None and self.view is not None and self.journal is not None:
            self._past.keep(self.view, self.journal.id, self.started)

    def report(self, breathe: Callable[[], None] = lambda: None) -> Report:
        """Judge what is there now. Nodes that have not answered yet are not judged, only counted.

        `breathe` is called every few milliseconds of work.
        """
        with self._judging:
            while self._unparsed:
                one = self._unparsed.popleft()
                if readings.of_cluster(one):
                    self._told[one.collector] = told(one)
                else:
                    (self._results if one.collector == PAIR_RUN else self._facts).add(one)
                breathe()
            more = [*self._of_pairs(), *cluster_state.cluster_findings(self._told, self.nodes, self.known)]
            gaps = cluster_state.gaps(self._told)
            return judge(
                self.nodes, self._facts, self.plan.rules, self.known, self.window, breathe, more, gaps
            )

    def _of_pairs(self) -> list[Finding]:
        """Findings of the pairwise results, and `view` made anew where one has come."""
        from straggler.engine.rules import pairs

        if self._results.any:
            read = {node: facts.get("identity") for node, facts in self._facts.facts.items()}
            types = {node: getattr(one, "instance_type", None) for node, one in read.items()}
            hosts = {node: str(getattr(one, "hostname", "")) for node, one in read.items()}
            self.view = self._results.view(self.nodes, types, hosts, self.known)
            if self._past is not None and self.view is not None and self.journal is not None:
                self.view = replace(self.view, earlier=self._past.earlier(self.view, self.journal.id))
        if self.view is not None:
            return pairs.pair_findings(self.view, self.nodes, self.known)
        asked = self.plan.pairs and self.plan.symptom != EVERYTHING
        return pairs.nothing_measured(self.nodes, self.known) if asked else []

    @property
    def progress(self) -> Progress:
        done = sum(state is NodeState.ENDED for state in self.states.values())
        reading = tuple(sorted(self._since.items(), key=lambda item: item[1]))
        return Progress(done, len(self.states), reading, (self.ended or time.time()) - self.started)

    async def settle(self) -> None:
        """Wait until the journal has written, and this state has heard, everything gathered so far."""
        if self.journal is not None:
            await self.journal.drained()

    async def close(self) -> None:
        """End kept connections; the journal is closed by whoever opened it."""
        await self.target.transport.close()

    @property
    def told(self) -> tuple[str, ...]:
        """What the way to the nodes has to say, once everything is read and closed."""
        transport = self.target.transport
        return transport.told if isinstance(transport, Telling) else ()
