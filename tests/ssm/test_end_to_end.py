"""The real node script through the real transport to nodes behind the fake service, one and two hundred of them."""

from __future__ import annotations

import asyncio

import pytest

from straggler.engine.collectors import COLLECTORS
from straggler.engine.frames import Block, Done, FrameReader, Hello, encode, encode_done, encode_hello
from straggler.engine.gather import Event, NodeEnded, gather
from straggler.engine.model import Node, Observation, Status
from straggler.engine.script import Request, Script
from straggler.engine.transports.ssm import SsmTransport
from tests import nodeshell
from tests.ssm.asking import NODE, ask, fleet
from tests.ssm.fake_agent import Agent
from tests.ssm.fake_service import FakeService, refusal
from tests.ssm.faults import Faults
from tests.support.fake_tools import FakeTools, Said


async def gathered(transport: SsmTransport, nodes: list[Node], request: Request) -> list[Event]:
    seen: list[Event] = []
    await gather(nodes, request, transport, seen.append)
    return seen


def observations(seen: list[Event]) -> list[Observation]:
    return [one for one in seen if isinstance(one, Observation)]


def answer(agent: Agent) -> bytes:
    """What a node says to one collector, without a shell."""
    key = "3f2c1a4e-0000-4bbb-8ccc-123456789abc"
    body = encode_hello(key, 0, 1) + encode(key, 0, b"x" * 5000, b"", 0) + encode_done(key, 1)
    return f"@@straggler-key {key}\n".encode() + body


@pytest.mark.parametrize(
    "faults",
    [Faults(), Faults(kms=True), Faults(drop=frozenset({3, 5}), hold=frozenset({7}), double=frozenset({4}))],
    ids=["plain", "encrypted", "lossy"],
)
async def test_every_collector_of_a_node_is_answered_in_one_session(faults: Faults) -> None:
    async with fleet(FakeService({"": faults})) as transport:
        seen = observations(await gathered(transport, [NODE], Request(COLLECTORS, 0, 2_000_000_000)))
        assert len(transport._sessions._calls.started) == 1  # type: ignore[attr-defined]
    assert {one.collector for one in seen} == {one.id for one in COLLECTORS}
    assert not [one for one in seen if one.status in (Status.TRUNCATED, Status.UNREACHABLE, Status.CANCELLED)]


async def test_what_a_tool_prints_arrives_character_by_character(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tools = FakeTools(tmp_path_factory.mktemp("tools"))
    tools.tool("uname", {("*",): Said("Linux nöde 6.1 ✓\n")})
    service = FakeService(env={"PATH": f"{tools.home}:/usr/bin:/bin"})
    # The agent passes on bytes that are no text, and mangles the one character that stands for them.
    probe = nodeshell.collector("uname -a; printf '\\377\\376 raw \\357\\277\\275 replaced\\n'")
    script = Script(nodeshell.NONCE, nodeshell.rendered(probe))
    async with fleet(service) as transport:
        asked = await ask(transport, script)
    assert asked.error is None
    frames = list(FrameReader(nodeshell.NONCE, 1).feed(asked.data))
    assert [type(one) for one in frames] == [Hello, Block, Done]
    [block] = [one for one in frames if isinstance(one, Block)]
    assert (block.status, block.text) == (Status.OK, "Linux nöde 6.1 ✓\n\\xff\\xfe raw \ufffd replaced\n")


async def test_a_cancelled_script_tidies_up_behind_itself() -> None:
    nodeshell.MARKS.clear()
    script = Script(nodeshell.NONCE, nodeshell.rendered(nodeshell.collector("sleep 300", seconds=300)))
    mark = nodeshell.MARKS[-1]
    async with fleet(FakeService()) as transport:
        task = asyncio.ensure_future(ask(transport, script))
        await asyncio.to_thread(nodeshell.eventually, lambda: bool(nodeshell.processes_with(f"S_JOB={mark}")))
        assert nodeshell.scratches()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Ending the session kills only the shell the agent started; the script notices that nobody listens.
        assert await asyncio.to_thread(nodeshell.eventually, lambda: not nodeshell.scratches())
        assert await asyncio.to_thread(
            nodeshell.eventually, lambda: not nodeshell.processes_with(f"S_JOB={mark}")
        )


async def test_two_hundred_nodes_at_once_are_all_answered_and_ended() -> None:
    service = FakeService(answer=answer)
    nodes = [Node(f"node-{number}") for number in range(200)]
    async with fleet(service, nodes=200, limit=200, rate=10_000) as transport:
        seen = await gathered(transport, nodes, Request(COLLECTORS[:1]))
    assert len(service.started) == 200
    assert service.left == set()
    assert {one.node for one in observations(seen)} == {one.id for one in nodes}
    assert all(one.status is Status.OK for one in observations(seen))


async def test_no_more_sessions_are_open_than_the_limit_allows() -> None:
    service = FakeService({"": Faults(delay=0.01)}, answer=lambda agent: b"nothing of ours")
    nodes = [Node(f"node-{number}") for number in range(20)]
    async with fleet(service, nodes=20, limit=4) as transport:
        await gathered(transport, nodes, Request(COLLECTORS[:1]))
    assert 1 < service.most_open <= 4


async def test_a_node_that_waits_long_for_its_turn_is_not_said_to_be_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The last of six nodes waits 2.5 s for its turn; its own time is 1.5 s.
    request = Request(COLLECTORS[:1])
    monkeypatch.setattr("straggler.engine.gather.CONNECT_SECONDS", 1.5 - request.seconds)
    nodes = [Node(f"node-{number}") for number in range(6)]
    async with fleet(FakeService(answer=answer), nodes=6, rate=2) as transport:
        seen = observations(await gathered(transport, nodes, request))
    assert [one.status for one in seen] == [Status.OK] * 6


async def test_a_node_that_says_nothing_once_its_turn_has_come_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = Request(COLLECTORS[:1])
    monkeypatch.setattr("straggler.engine.gather.CONNECT_SECONDS", 0.5 - request.seconds)
    async with fleet(FakeService({"": Faults(silent=True)})) as transport:
        [seen] = observations(await gathered(transport, [NODE], request))
    assert seen.status is Status.TIMED_OUT


async def test_a_node_that_is_not_connected_costs_the_others_nothing() -> None:
    service = FakeService()
    service.refusals["StartSession"] = [refusal("TargetNotConnected")]
    nodes = [Node("node-0"), Node("node-1")]
    async with fleet(service, nodes=2) as transport:
        seen = await gathered(transport, nodes, Request(COLLECTORS[:2]))
    gone = [one for one in observations(seen) if one.status is Status.UNREACHABLE]
    assert len({one.node for one in gone}) == 1
    assert all("SSM agent" in one.why for one in gone)
    assert sorted(one.why == "" for one in seen if isinstance(one, NodeEnded)) == [False, True]
