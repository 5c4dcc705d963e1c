"""The running session between engine and screen: gathers, judges beside the event loop, and hands over whole frozen views.

Events only mark what changed. A beat of the screen (a few times a second) asks for rows; judging runs in one thread, never
twice at once, and always once more after the last change.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from straggler.engine import triage
from straggler.engine.bandwidth.results import PAIR_RUN
from straggler.engine.diagnosis import Diagnosis, NodeState
from straggler.engine.gather import Event, NodeEnded, NodeStarted
from straggler.engine.judge import Report
from straggler.engine.model import Finding, Level, Node, Observation, Status
from straggler.engine.readings import of_cluster
from straggler.engine.safetext import safe
from straggler.tui.items import Recheck
from straggler.tui.rows import Row, cards, notes, row

if TYPE_CHECKING:
    from straggler.engine.bandwidth.view import MatrixView
    from straggler.engine.session import Health, Journal
    from straggler.engine.targets.replay import Replay

T = TypeVar("T")

READING = "reading"
"""The worker group of everything that talks to nodes: stopping means cancelling this group."""

JUDGE_EVERY = 0.25
"""Seconds between two judgings at least; where one takes longer, twice its own time, so that the loop keeps the larger share."""

HUSH_SECONDS, PATIENCE = 0.1, 1.5
"""How long judging stands back for a key, and for how long in all within one judging, whatever is typed."""

END_SECONDS = 5.0
"""How long leaving waits for a disk or a connection that hangs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` nodes; `slowest`: who is being read the longest, and for how many seconds."""

    done: int
    total: int
    seconds: float
    running: bool
    slowest: tuple[tuple[str, float], ...] = ()


class Live:
    """One session as the screens see it. Lives on the event loop's thread."""

    def __init__(
        self,
        diagnosis: Diagnosis,
        clock: Callable[[], float] = time.time,
        replay: Replay | None = None,
        shown_session: str = "",
    ) -> None:
        self.shown_session = shown_session
        self.diagnosis = diagnosis
        self.clock = clock
        self.replay = replay
        self.report: Report | None = None
        self.trouble = ""
        self.changed = False
        self.revision = 0
        self.rechecks: tuple[Recheck, ...] = ()
        self._stopped = False
        self._began = clock()
        self._took: float | None = None
        self._runs = 0
        self._cards = {card.node: card for card in cards(diagnosis.nodes)}
        self._notes: Mapping[str, str] = {}
        self._rows: dict[str, Row] = {}
        self._touched: set[str] = set(self._cards)
        self._since: dict[str, float] = {}
        self._done: set[str] = set()
        self._answered_by: dict[str, set[str]] = defaultdict(set)
        self._news = asyncio.Event()
        self._opened = asyncio.Event()
        self._hurry = asyncio.Event()
        self._asked = 0
        self._judged = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._calm = threading.Event()
        self._calm.set()
        self._calming: asyncio.TimerHandle | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="judge")
        diagnosis.listeners.append(self._heard)

    # What happens.

    def _heard(self, event: Event) -> None:
        if isinstance(event, Observation) and (event.collector == PAIR_RUN or of_cluster(event)):
            self.note_news()
            self.changed = True
            return
        if isinstance(event, NodeStarted):
            self._since[event.node] = self.clock()
            self._done.discard(event.node)
        elif isinstance(event, NodeEnded):
            self._since.pop(event.node, None)
            self._done.add(event.node)
            self.note_news()
        elif isinstance(event, Observation):
            self.revision += 1
            answered = self._answered_by[event.collector]
            if event.status in (Status.UNREACHABLE, Status.CANCELLED):
                answered.discard(event.node)
            else:
                answered.add(event.node)
        self._touched.add(event.node)
        self.changed = True

    def note_news(self) -> None:
        """Something to judge came in."""
        self._asked += 1
        self._news.set()

    async def gather(self, state: Path | None) -> None:
        """Read every node of the target into a journal. Cancelling keeps what came; unread nodes then say so."""
        self.diagnosis.following = self.diagnosis.target.follow
        if self.diagnosis.journal is None:
            self.diagnosis.journal = await self._journal(state)
            self.diagnosis.recall(state)
        self._opened.set()
        await self._run(None, None)

    async def _journal(self, state: Path | None) -> Journal:
        from straggler.engine.session import Journal, describe

        one = self.diagnosis
        meta = describe(one.target, one.plan.symptom, one.window)
        return await asyncio.to_thread(Journal.create, meta, state)

    async def follow(self) -> None:
        """Take the results of pairwise runs as they appear, into the same journal."""
        await self._opened.wait()
        await self.diagnosis.follow_results()

    async def play(self) -> None:
        """Show a recorded session: its events instead of nodes."""
        self._runs += 1
        try:
            if self.replay is not None:
                async for event in self.replay.events():
                    pair = isinstance(event, Observation) and event.collector == PAIR_RUN
                    if pair or of_cluster(event) or event.node in self._cards:
                        self.diagnosis.keep(event)
        finally:
            self._over()

    async def reread(self, nodes: Sequence[Node]) -> None:
        await self._run(nodes, None)
        await self.settled()

    async def recheck(self, before: Finding) -> Recheck:
        """Read again only what this finding rests on, on its own nodes; the answer stands beside what was before."""
        wanted = set(before.subjects)
        nodes = [node for node in self.diagnosis.nodes if node.id in wanted]
        collectors = triage.recheck(before.rule) or self.diagnosis.plan.collectors
        await self._run(nodes, collectors)
        await self.settled()
        at = time.strftime("%H:%MZ", time.gmtime(self.clock()))
        one = Recheck(before, self._after(before), at)
        self.rechecks = (one, *(other for other in self.rechecks if other.before.id != before.id))
        self.changed = True
        return one

    def _after(self, before: Finding) -> Finding | None:
        """What the same rule says of the same nodes now: the worst of it."""
        found = [
            one
            for one in (self.report.findings if self.report else ())
            if one.rule == before.rule and set(one.subjects) & set(before.subjects)
        ]
        same = [one for one in found if one.id == before.id and one.level is not Level.PASS]
        return next(iter(same or found), None)

    async def _run(self, nodes: Sequence[Node] | None, collectors: tuple[object, ...] | None) -> None:
        if not self._runs:
            self._began, self._took = self.clock(), None
        self._runs += 1
        chosen = self.diagnosis.nodes if nodes is None else nodes
        self._done -= {node.id for node in chosen}
        self._touched |= {node.id for node in chosen}
        self.changed = True
        try:
            await self.diagnosis.run(nodes, collectors)  # type: ignore[arg-type]
        except asyncio.CancelledError:
            self._stopped = True
            raise
        finally:
            self._over()

    def _over(self) -> None:
        self._runs -= 1
        if not self._runs:
            self._took = self.clock() - self._began
        self.note_news()
        self._hurry.set()
        self.changed = True

    def unread(self) -> list[Node]:
        """Nodes of which something that was asked is not known, also those that a fault is already known of."""
        report = self.report
        if report is None:
            return list(self.diagnosis.nodes)
        lacking = {name for gap in report.uncovered for name in gap.subjects} | set(report.waiting)
        return [node for node in self.diagnosis.nodes if node.id in lacking]

    @property
    def stopped(self) -> bool:
        """Somebody stopped the reading, and what it did not get to was not read since."""
        if self.report is None:
            return self._stopped
        cancelled = any(gap.status is Status.CANCELLED for gap in self.report.uncovered)
        return self._stopped and (cancelled or bool(self.report.waiting))

    # Judging.

    async def judge_forever(self) -> None:
        """The one judge: runs until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._news.wait()
            self._news.clear()
            upto, began = self._asked, loop.time()
            await self._judge_once(loop)
            self._answered(upto)
            pause = max(JUDGE_EVERY, 2 * (loop.time() - began))
            if not self.running:
                continue
            self._hurry.clear()
            try:
                await asyncio.wait_for(self._hurry.wait(), pause)
            except asyncio.TimeoutError:
                continue

    async def _judge_once(self, loop: asyncio.AbstractEventLoop) -> None:
        def work() -> tuple[Report, dict[str, str]]:
            patience = PATIENCE

            def breathe() -> None:
                nonlocal patience
                if not self._calm.is_set() and patience > 0:
                    begun = time.monotonic()
                    self._calm.wait(patience)
                    patience -= time.monotonic() - begun

            report = self.diagnosis.report(breathe)
            return report, notes(report.findings)

        try:
            report, said = await loop.run_in_executor(self._pool, work)
        except Exception as error:  # noqa: BLE001 - a rule that trips must not take the session with it
            self.trouble = f"judging failed ({type(error).__name__}: {error}); what was read is kept"
            self.changed = True
            return
        self._take(report, said)

    def _take(self, report: Report, said: Mapping[str, str]) -> None:
        before, old = self.report, self._notes
        self.report, self._notes, self.trouble = report, said, ""
        levels = {} if before is None else before.levels
        self._touched |= {
            node
            for node, level in report.levels.items()
            if levels.get(node) is not level or old.get(node) != said.get(node)
        }
        self.changed = True

    def _answered(self, upto: int) -> None:
        self._judged = upto
        while self._waiters and self._waiters[0][0] <= upto:
            waiter = self._waiters.pop(0)[1]
            if not waiter.done():
                waiter.set_result(None)

    def hush(self) -> None:
        """A key was pressed: judging stands back until its answer is on the screen."""
        self._calm.clear()
        if self._calming is not None:
            self._calming.cancel()
        self._calming = asyncio.get_running_loop().call_later(HUSH_SECONDS, self._calm.set)

    async def settled(self) -> None:
        """Everything read so far is written, heard and judged."""
        await self.diagnosis.settle()
        self.note_news()
        self._hurry.set()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((self._asked, waiter))
        await waiter

    async def beside(self, work: Callable[[], T]) -> T:
        """Run something heavy beside the event loop, after what is being judged."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    # What is shown.

    @property
    def answered(self) -> dict[str, int]:
        """How many nodes have answered each collector."""
        return {name: len(nodes) for name, nodes in self._answered_by.items()}

    @property
    def running(self) -> bool:
        return self._runs > 0

    @property
    def recording(self) -> bool:
        """Nothing can be read again: this is a replay."""
        return self.replay is not None

    @property
    def progress(self) -> Progress:
        now = self.clock()
        slowest = sorted(
            ((node, max(0.0, now - at)) for node, at in self._since.items()), key=lambda one: -one[1]
        )
        seconds = now - self._began if self._took is None else self._took
        return Progress(len(self._done), len(self._cards), max(0.0, seconds), self.running, tuple(slowest))

    def rows(self) -> tuple[Row, ...]:
        """Every node's row; only the rows of nodes that changed are made anew."""
        one = self.diagnosis
        levels = {} if self.report is None else self.report.levels
        for node in self._touched:
            state = self._state(node)
            judged = levels.get(node) if one.seen.get(node) else None
            self._rows[node] = row(
                self._cards[node], state, judged, self._notes.get(node, ""), one.why.get(node, "")
            )
        self._touched.clear()
        return tuple(self._rows[node] for node in self._cards)

    def _state(self, node: str) -> NodeState:
        if node in self._done or (self.recording and not self.running):
            return NodeState.ENDED
        return NodeState.READING if node in self._since else NodeState.WAITING

    @property
    def matrix(self) -> MatrixView | None:
        """The pairwise bandwidth as it was last judged, whole and frozen; None where no result was read."""
        return self.diagnosis.view

    def node(self, name: str) -> Node:
        return next(one for one in self.diagnosis.nodes if one.id == name)

    @property
    def health(self) -> Health | None:
        """How saving goes; None where nothing is saved because it is a recording."""
        return None if self.diagnosis.journal is None else self.diagnosis.journal.health

    @property
    def session(self) -> str:
        if self.replay is not None:
            return self.replay.recovered.path.parent.name
        return "" if self.diagnosis.journal is None else self.diagnosis.journal.id

    async def end(self) -> None:
        """Hear the rest of what was read, close the journal with its end mark, let go of connections."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.diagnosis.settle(), END_SECONDS)
        if self.diagnosis.journal is not None:
            self.diagnosis.journal.close()
            await asyncio.to_thread(self.diagnosis.remember)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.diagnosis.close(), END_SECONDS)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def parting(self, state: Path | None) -> str:
        """What to say once the terminal is back."""
        health = self.health
        if health is None:
            return ""
        where = f" --state-dir {shlex.quote(str(state))}" if state is not None else ""
        again = f"open it again: straggler replay {self.session}{where}"
        if health.saved:
            return f"session {self.session} is saved; {again}"
        return f"session {self.session} is NOT SAVED: {safe(health.why)}"
