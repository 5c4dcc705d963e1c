"""Gathering: whatever a node does, each collector asked of it is answered exactly once, and nothing is left running."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import stamina

from straggler.engine import gather as gathering
from straggler.engine.collectors import COLLECTORS
from straggler.engine.errors import FatalError, TransportError
from straggler.engine.frames import encode, encode_done, encode_hello
from straggler.engine.gather import Event, NodeEnded, NodeNoise, NodeStarted, gather
from straggler.engine.model import Node, Observation, Status, Vantage
from straggler.engine.script import Request, Script
from straggler.engine.transports.local import LocalTransport
from tests.nodeshell import MARKS, alive, below, collector, eventually, rendered, scratches

TWO = COLLECTORS[:2]
ASK = Request(TWO)
Say = Callable[[Script, int], AsyncIterator[bytes]]


class Scripted:
    """A wire whose every try is written down: `say(script, attempt)` yields what the node sends."""

    name, limit = "scripted", 64

    def __init__(self, say: Say) -> None:
        self.say = say
        self.tries: Counter[str] = Counter()
        self.asked: dict[str, list[int]] = {}
        self.open = self.most = 0
        self.opened = asyncio.Event()

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        self.tries[node.id] += 1
        self.asked.setdefault(node.id, []).append(script.body.count(b": straggler-collector "))
        self.open += 1
        self.most = max(self.most, self.open)
        self.opened.set()
        try:
            async with contextlib.aclosing(self.say(script, self.tries[node.id])) as saying:  # type: ignore[type-var]
                async for data in saying:
                    yield data
        finally:
            self.open -= 1

    async def close(self) -> None:
        """Nothing is kept open."""


class Heard(list[Event]):
    def statuses(self, node: str = "n1") -> dict[str, Status]:
        return {
            one.collector: one.status for one in self if isinstance(one, Observation) and one.node == node
        }

    def whys(self) -> set[str]:
        return {one.why for one in self if isinstance(one, Observation)}


@pytest.fixture(autouse=True)
def _no_real_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=gathering.TRIES):
        yield


def nodes(count: int = 1) -> list[Node]:
    return [Node(f"n{number}") for number in range(1, count + 1)]


def complete(heard: Heard, count: int = 1) -> bool:
    """Every node ended once, and every collector of every node was answered once, before that end."""
    ends = Counter(one.node for one in heard if isinstance(one, NodeEnded))
    seen = Counter((one.node, one.collector) for one in heard if isinstance(one, Observation))
    ended: set[str] = set()
    for one in heard:
        if isinstance(one, NodeEnded):
            ended.add(one.node)
        elif isinstance(one, Observation) and one.node in ended:
            return False
    return (
        set(ends.values()) == {1}
        and len(ends) == count
        and set(seen.values()) == {1}
        and len(seen) == count * 2
    )


def whole(script: Script, *, skip: int = -1) -> list[bytes]:
    blocks = [
        encode(script.nonce, at, b"said", b"", 0)
        for at in range(script.body.count(b": straggler-collector "))
    ]
    kept = [one for at, one in enumerate(blocks) if at != skip]
    return [encode_hello(script.nonce, 0, 1_800_000_000), *kept, encode_done(script.nonce, len(blocks))]


async def each(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def heard_from(say: Say, count: int = 1, **options: int) -> tuple[Heard, Scripted]:
    heard, wire = Heard(), Scripted(say)
    await gather(nodes(count), ASK, wire, heard.append, **options)
    assert complete(heard, count)
    assert wire.open == 0
    return heard, wire


async def test_a_node_that_answers_is_heard_once() -> None:
    heard, wire = await heard_from(lambda script, _: each(whole(script)))
    assert set(heard.statuses().values()) == {Status.OK}
    assert wire.tries["n1"] == 1
    assert isinstance(heard[0], NodeStarted)
    assert isinstance(heard[-1], NodeEnded)
    assert heard[-1].why == ""


@pytest.mark.parametrize("parts", [0, 1, 2])
async def test_an_error_that_will_not_pass_is_the_answer_of_the_rest(parts: int) -> None:
    async def say(script: Script, _: int) -> AsyncIterator[bytes]:
        for part in whole(script)[:parts]:
            yield part
        raise TransportError(Status.DENIED, "key refused")

    heard, wire = await heard_from(say)
    assert wire.tries["n1"] == 1
    assert list(heard.statuses().values()).count(Status.DENIED) == 2 - max(0, parts - 1)


@pytest.mark.parametrize(
    "broken",
    [TransportError(Status.UNREACHABLE, "lost", transient=True), ConnectionResetError(), BrokenPipeError()],
)
async def test_what_may_pass_is_tried_again_for_what_is_missing_only(broken: Exception) -> None:
    async def say(script: Script, attempt: int) -> AsyncIterator[bytes]:
        for part in whole(script)[: 2 if attempt == 1 else 9]:
            yield part
        if attempt == 1:
            raise broken

    heard, wire = await heard_from(say)
    assert set(heard.statuses().values()) == {Status.OK}
    assert wire.asked["n1"] == [2, 1]


async def test_what_never_passes_is_given_up_after_the_last_try() -> None:
    async def say(script: Script, attempt: int) -> AsyncIterator[bytes]:
        yield b"\n"
        raise TransportError(Status.UNREACHABLE, f"lost {attempt}", transient=True)

    heard, wire = await heard_from(say)
    assert set(heard.statuses().values()) == {Status.UNREACHABLE}
    assert (wire.tries["n1"], heard.whys()) == (gathering.TRIES, {f"lost {gathering.TRIES}"})


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (lambda script: b"", "never ran the script"),
        (lambda script: b"This account is not available.\n", "never ran the script"),
        (lambda script: os.urandom(5000), "never ran the script"),
        (
            lambda script: b"".join(whole(script)).replace(script.nonce.encode(), b"0" * 16),
            "never ran the script",
        ),
        (lambda script: whole(script)[0], "before the last frame"),
        (lambda script: b"".join(whole(script))[:-20], "before the last frame"),
        (lambda script: b"".join(whole(script, skip=1)), "did not arrive whole"),
    ],
)
async def test_half_an_answer_is_never_a_whole_one(sent: Callable[[Script], bytes], why: str) -> None:
    heard, _ = await heard_from(lambda script, _: each([sent(script)]))
    assert heard.statuses()[TWO[1].id] in (Status.TRUNCATED, Status.OK)
    missing = [one for one in heard if isinstance(one, Observation) and one.status is not Status.OK]
    assert all(why in one.why for one in missing)
    assert missing or len(heard.statuses()) == 2


async def test_doubles_strangers_and_noise_are_no_answers() -> None:
    def parts(script: Script) -> list[bytes]:
        hello, first, second, done = whole(script)
        stranger = encode(script.nonce, 7, b"who", b"", 0)
        other = encode(script.nonce, 0, b"another", b"", 0)
        return [b"Welcome\n", hello, first, other, stranger, b"[31mbroadcast\n", second, done]

    heard, _ = await heard_from(lambda script, _: each(parts(script)))
    assert {one.text for one in heard if isinstance(one, Observation)} == {"said"}
    [noise] = [one for one in heard if isinstance(one, NodeNoise)]
    assert "Welcome" in noise.text
    assert "broadcast" in noise.text


async def test_a_flood_is_cut_off() -> None:
    async def say(script: Script, _: int) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    heard, wire = await heard_from(say)
    assert set(heard.statuses().values()) == {Status.TRUNCATED}
    assert wire.tries["n1"] == 1


async def test_a_node_that_never_ends_is_given_up_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "CONNECT_SECONDS", 0.2 - ASK.seconds)

    async def say(script: Script, _: int) -> AsyncIterator[bytes]:
        yield b"Password: "
        for part in whole(script)[:2]:
            yield part
        await asyncio.Event().wait()

    heard, _ = await heard_from(say)
    assert heard.statuses() == {TWO[0].id: Status.OK, TWO[1].id: Status.TIMED_OUT}
    assert [one.text for one in heard if isinstance(one, NodeNoise)] == ["Password:"]


async def test_no_more_nodes_at_once_than_allowed() -> None:
    async def say(script: Script, _: int) -> AsyncIterator[bytes]:
        await asyncio.sleep(0)
        for part in whole(script):
            yield part
            await asyncio.sleep(0)

    _, wire = await heard_from(say, 50, limit=7)
    assert wire.most == 7


async def test_two_thousand_nodes_are_all_heard() -> None:
    heard, wire = await heard_from(lambda script, _: each(whole(script)), 2000)
    assert len(heard) == 2000 * 4
    assert wire.most <= wire.limit


async def cancelled(
    say: Say, when: Callable[[Heard, Scripted], bool], count: int = 1, limit: int = 2
) -> Heard:
    """Start gathering, cancel it once `when` holds, and look that nothing is owed and nothing is open."""
    heard, wire = Heard(), Scripted(say)
    task = asyncio.create_task(gather(nodes(count), ASK, wire, heard.append, limit=limit))
    await asyncio.sleep(0)
    while not when(heard, wire):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert complete(heard, count)
    assert wire.open == 0
    return heard


async def hanging(script: Script, _: int) -> AsyncIterator[bytes]:
    for part in whole(script)[:2]:
        yield part
    await asyncio.Event().wait()


async def test_cancelled_at_once_every_node_says_so() -> None:
    heard = await cancelled(hanging, lambda heard, wire: True, count=5)
    assert "cancelled before its turn" in heard.whys()


async def test_cancelled_midway_what_came_is_kept_and_the_rest_says_so() -> None:
    heard = await cancelled(
        hanging, lambda heard, wire: sum(isinstance(one, Observation) for one in heard) == 2, count=5
    )
    assert Counter(one.status for one in heard if isinstance(one, Observation)) == {
        Status.OK: 2,
        Status.CANCELLED: 8,
    }
    assert heard.whys() == {"", "cancelled by the operator", "cancelled before its turn"}


async def test_cancelled_with_some_nodes_done_these_stay_done() -> None:
    begun = iter(range(100))

    def say(script: Script, attempt: int) -> AsyncIterator[bytes]:
        return each(whole(script)) if next(begun) < 3 else hanging(script, attempt)

    heard = await cancelled(say, lambda heard, wire: wire.open == 2 and len(wire.tries) == 5, count=6)
    assert Counter(one.why for one in heard if isinstance(one, NodeEnded))[""] == 3


async def test_cancelled_while_waiting_to_try_again_the_node_still_ends_once() -> None:
    async def say(script: Script, _: int) -> AsyncIterator[bytes]:
        yield whole(script)[0]
        raise TransportError(Status.UNREACHABLE, "lost", transient=True)

    with stamina.set_testing(False):
        heard, wire = Heard(), Scripted(say)
        task = asyncio.create_task(gather(nodes(), ASK, wire, heard.append))
        while not (wire.tries["n1"] == 1 and wire.open == 0):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert complete(heard)
    assert set(heard.statuses().values()) == {Status.CANCELLED}


async def test_a_mistake_of_ours_is_not_silent_and_every_node_is_still_answered() -> None:
    async def say(script: Script, _: int) -> AsyncIterator[bytes]:
        yield whole(script)[0]
        raise KeyError("a bug")

    heard, wire = Heard(), Scripted(say)
    with pytest.raises(Exception, match="TaskGroup"):
        await gather(nodes(3), ASK, wire, heard.append, limit=1)
    assert complete(heard, 3)
    assert wire.open == 0


async def test_a_sink_that_raises_ends_the_gathering_and_its_sessions() -> None:
    wire = Scripted(hanging)

    def sink(event: Event) -> None:
        if isinstance(event, Observation):
            raise OSError("disk full")

    with pytest.raises(Exception, match="TaskGroup"):
        await gather(nodes(3), ASK, wire, sink)
    assert wire.open == 0


async def test_what_is_in_no_closed_list_is_never_sent() -> None:
    wire, heard = Scripted(hanging), Heard()
    stranger = Request((collector("rm -rf /", id=TWO[0].id),))
    with pytest.raises(Exception, match="TaskGroup") as caught:
        await gather(nodes(), stranger, wire, heard.append)
    [refusal] = caught.value.exceptions  # type: ignore[attr-defined]
    assert isinstance(refusal, FatalError)
    assert wire.tries == {}


async def test_needs_root_seen_by_root_is_denied() -> None:
    def parts(script: Script) -> list[bytes]:
        refused = [encode(script.nonce, at, b"", b"no", 121) for at in range(2)]
        return [encode_hello(script.nonce, 0, 1), *refused, encode_done(script.nonce, 2)]

    heard, _ = await heard_from(lambda script, _: each(parts(script)))
    assert set(heard.statuses().values()) == {Status.DENIED}
    assert {one.vantage for one in heard if isinstance(one, Observation)} == {Vantage.HOST_ROOT}


# This machine, for real.


def local_script(*snippets: str, seconds: int = 300) -> Script:
    probes = [collector(one, seconds=seconds, id=f"p{at}") for at, one in enumerate(snippets)]
    return Script("0123456789abcdef", rendered(*probes))


async def test_local_answers() -> None:
    heard = Heard()
    await gather(nodes(), ASK, LocalTransport(), heard.append)
    assert complete(heard)
    assert set(heard.statuses().values()) == {Status.OK}


@pytest.mark.parametrize(
    "snippet", ["sleep 4242", "while :; do :; done", "(trap '' TERM; while :; do sleep 1; done) | cat"]
)
async def test_local_cancelled_leaves_no_process_and_no_scratch(snippet: str) -> None:
    MARKS.clear()
    children = below(os.getpid())
    stream = LocalTransport().run(nodes()[0], local_script(snippet, "echo b"))
    async for data in stream:
        if b" end 1" in data:
            break
    started = below(os.getpid()) - children
    assert started
    await stream.aclose()  # type: ignore[attr-defined]
    assert eventually(lambda: not alive(started) and not scratches())


async def test_local_output_of_any_size_is_read_to_its_end() -> None:
    script = Script("x", b"head -c 30000000 /dev/zero\n")
    size = 0
    async for data in LocalTransport().run(nodes()[0], script):
        size += len(data)
    assert size == 30_000_000


async def test_local_shell_that_ends_at_once_is_no_error_of_the_wire() -> None:
    assert [
        data async for data in LocalTransport().run(nodes()[0], Script("x", b"exit 3\n" + b"# rest\n" * 9000))
    ] == []
