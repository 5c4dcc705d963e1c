"""The async core: every node at once within limits, partial results as they come, and not one observation lost.

Whatever happens to a node (refused, hung, cut off, cancelled), each collector asked of it ends in exactly one Observation.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from straggler.engine.compat import TaskGroup, timeout
from straggler.engine.errors import TransportError
from straggler.engine.frames import Block, Done, FloodError, FrameReader, Hello
from straggler.engine.model import Node, Observation, Status, Vantage
from straggler.engine.redact import redact
from straggler.engine.script import Request, Script, compose
from straggler.engine.transports.base import Queued, Transport

if TYPE_CHECKING:
    from stamina import Attempt

CONNECT_SECONDS = 20
"""Time a node has, besides its own watchdogs, to be reached and to send what it has."""

TRIES = 3
"""How often a transient failure (connection lost, too many sessions) is tried before it is the node's answer."""


@dataclass(frozen=True, slots=True)
class NodeStarted:
    node: str
    at: float


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """All collectors of the node have their observation. `why` is empty when the node said everything itself."""

    node: str
    at: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class NodeNoise:
    """What the node printed outside of frames: a banner, a motd, or an attempt to look like us."""

    node: str
    text: str


Event = NodeStarted | NodeEnded | NodeNoise | Observation
Sink = Callable[[Event], None]


async def gather(
    nodes: Sequence[Node], request: Request, transport: Transport, sink: Sink, *, limit: int | None = None
) -> None:
    """Ask `request` of every node; `sink` gets each event as it happens, on the event loop, and must return at once.

    Cancelling this coroutine ends every session and gives the unanswered collectors a CANCELLED observation first.
    """
    gate = asyncio.Semaphore(limit or transport.limit)
    waiting = {node.id: node for node in nodes}
    turn = asyncio.Lock()

    async def one(node: Node) -> None:
        async with gate:
            del waiting[node.id]
            await _Visit(node, request, transport, sink, turn).make()

    try:
        async with TaskGroup() as group:
            for node in nodes:
                group.create_task(one(node), name=f"gather {node.id}")
    finally:
        # Only a cancelled or broken gathering leaves nodes here; each of them is answered, too.
        for node in waiting.values():
            _Visit(node, request, transport, sink, turn).give_up(
                Status.CANCELLED, "cancelled before its turn"
            )


def _transient(error: Exception) -> bool:
    return isinstance(error, TransportError) and error.transient


def _retries(seconds: float | None) -> AsyncIterator[Attempt]:
    """Tries with growing pauses, while what fails is transient. Loaded with the first node, not with the program."""
    import stamina

    # Its log of retries would reach stderr (or, with structlog, stdout): the middle of the operator's screen.
    stamina.instrumentation.set_on_retry_hooks(())
    return aiter(stamina.retry_context(on=_transient, attempts=TRIES, timeout=seconds, wait_initial=0.5))


class _Visit:
    """One node, from the first try to the last observation.

    `turn` is taken for each reply: whatever many nodes say at once, the event loop sees to keys and timers in between.
    """

    def __init__(
        self, node: Node, request: Request, transport: Transport, sink: Sink, turn: asyncio.Lock
    ) -> None:
        self.turn = turn
        self.node, self.request, self.transport, self.sink = node, request, transport, sink
        self.answered: set[str] = set()
        self.started = time.time()
        self.vantage = Vantage.HOST_USER

    async def make(self) -> None:
        self.sink(NodeStarted(self.node.id, self.started))
        try:
            await self._with_retries()
        except TransportError as error:
            self.give_up(error.status, error.why)
        except asyncio.CancelledError:
            self.give_up(Status.CANCELLED, "cancelled by the operator")
            raise
        except Exception as error:
            self.give_up(
                Status.FAILED, f"straggler itself failed here ({type(error).__name__}); please report it"
            )
            raise
        else:
            self.sink(NodeEnded(self.node.id, time.time()))

    async def _with_retries(self) -> None:
        async for attempt in _retries(None if isinstance(self.transport, Queued) else 60):
            with attempt:
                left = self.request.without(frozenset(self.answered))
                if left.collectors:
                    await self._once(left)

    async def _once(self, request: Request) -> None:
        seconds = request.seconds + CONNECT_SECONDS
        waits = isinstance(self.transport, Queued)
        try:
            async with timeout(None if waits else seconds) as clock:

                def begin() -> None:
                    if clock.when() is None:
                        clock.reschedule(asyncio.get_running_loop().time() + seconds)

                await self._read(request, begin)
        except TimeoutError as error:
            raise TransportError(Status.TIMED_OUT, f"no whole answer within {seconds} s") from error

    async def _read(self, request: Request, begin: Callable[[], None]) -> None:
        script = compose(request)
        reader = FrameReader(script.nonce, len(request.collectors))
        met = False
        begun = time.time()
        try:
            async with contextlib.aclosing(self._sent(script)) as sent:
                async for data in sent:
                    begin()
                    for frame in reader.feed(data):
                        if isinstance(frame, Done):
                            return self._end(request)
                        if isinstance(frame, Hello):
                            met, begun = True, time.time()
                            self._meet(frame)
                        else:
                            async with self.turn:
                                self._observe(request, frame, begun)
                                await asyncio.sleep(0)
        except FloodError as error:
            raise TransportError(Status.TRUNCATED, "sent more than any honest node could; cut off") from error
        finally:
            self._note(reader)
        why = "the connection ended before the last frame" if met else "the node never ran the script"
        raise TransportError(Status.TRUNCATED, why, transient=True)

    async def _sent(self, script: Script) -> AsyncGenerator[bytes, None]:
        """What the node sends; a connection that breaks in a way its transport did not name is one that may come back."""
        stream = self.transport.run(self.node, script)
        try:
            async with contextlib.aclosing(stream):  # type: ignore[type-var]
                async for data in stream:
                    yield data
        except OSError as error:
            why = f"the connection broke: {error.strerror or type(error).__name__}"
            raise TransportError(Status.UNREACHABLE, why, transient=True) from error

    def _end(self, request: Request) -> None:
        if any(one.id not in self.answered for one in request.collectors):
            raise TransportError(Status.TRUNCATED, "its frame did not arrive whole", transient=True)

    def _meet(self, hello: Hello) -> None:
        root = hello.uid == 0 or self.request.sudo
        self.vantage = Vantage.HOST_ROOT if root else Vantage.HOST_USER

    def _observe(self, request: Request, block: Block, begun: float) -> None:
        if not 0 <= block.index < len(request.collectors):
            return
        collector = request.collectors[block.index]
        if collector.id in self.answered:
            return
        status, why = block.status, block.why
        if status is Status.NEEDS_ROOT and self.vantage is Vantage.HOST_ROOT:
            status = Status.DENIED
        self._emit(
            Observation(
                collector=collector.id,
                node=self.node.id,
                vantage=self.vantage,
                status=status,
                why=redact(why),
                text=redact(block.text),
                errors=redact(block.errors),
                cut=block.cut,
                exit_code=block.exit_code,
                started=begun,
                ended=begun + block.after,
            )
        )

    def _emit(self, seen: Observation) -> None:
        self.answered.add(seen.collector)
        self.sink(seen)

    def _note(self, reader: FrameReader) -> None:
        if text := reader.noise.decode("utf-8", "backslashreplace").strip():
            self.sink(NodeNoise(self.node.id, redact(text)))

    def give_up(self, status: Status, why: str) -> None:
        """Every collector not answered yet gets its observation: the reason, in the node's name."""
        now = time.time()
        for collector in self.request.collectors:
            if collector.id not in self.answered:
                self._emit(
                    Observation(
                        collector.id,
                        self.node.id,
                        self.vantage,
                        status,
                        redact(why),
                        started=self.started,
                        ended=now,
                    )
                )
        self.sink(NodeEnded(self.node.id, now, redact(why)))
