"""Sessions at the control plane: what is refused is told in a sentence, and every session that began is ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.transports.ssm import hyperpod_target
from straggler.engine.transports.ssm_errors import CredentialsExpired
from tests.ssm.asking import NODE, TARGET, ask, fleet, said, saying, script
from tests.ssm.fake_service import FakeService, Told, refusal
from tests.ssm.faults import Faults


def test_a_hyperpod_node_is_named_by_cluster_id_group_and_instance() -> None:
    assert hyperpod_target("abc123def456", "workers", NODE.id) == TARGET


REFUSED = [
    ("TargetNotConnected", Status.UNREACHABLE, False, "SSM agent"),
    ("AccessDeniedException", Status.DENIED, False, "ssm:StartSession is not allowed"),
    ("InvalidTarget", Status.UNREACHABLE, False, "does not take this target"),
    ("InvalidInstanceId", Status.UNREACHABLE, False, "does not take this target"),
    ("ValidationException", Status.UNREACHABLE, False, "does not take this target"),
    ("InternalServerError", Status.UNREACHABLE, True, "AWS's side"),
]


@pytest.mark.parametrize(("code", "status", "transient", "word"), REFUSED, ids=[one[0] for one in REFUSED])
async def test_each_refusal_has_its_sentence(code: str, status: Status, transient: bool, word: str) -> None:
    service = FakeService()
    http = 500 if code == "InternalServerError" else 400
    service.refusals["StartSession"] = [refusal(code, "the service's own words", status=http)]
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert (asked.error.status, asked.error.transient) == (status, transient)
    assert word in asked.error.why
    assert "\n" not in asked.error.why


@pytest.mark.parametrize("code", ["ExpiredTokenException", "RequestExpired", "UnrecognizedClientException"])
async def test_expired_credentials_are_no_fault_of_the_node(code: str) -> None:
    service = FakeService()
    service.refusals["StartSession"] = [refusal(code)]
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
        assert isinstance(asked.error, CredentialsExpired)
        # Renewed, the same transport goes on.
        assert (await ask(transport, saying("x"))).error is None


async def test_a_throttled_start_is_asked_for_again_and_slows_all_down() -> None:
    service = FakeService()
    service.refusals["StartSession"] = [refusal("ThrottlingException", "Rate exceeded")] * 2
    async with fleet(service, rate=100) as transport:
        asked = await ask(transport, saying("x"))
        assert transport.bucket.refusals == 2
        assert transport.bucket.rate < 100
    assert asked.error is None


async def test_a_start_that_is_always_throttled_is_given_up_and_may_be_tried_later() -> None:
    service = FakeService()
    service.refusals["StartSession"] = [refusal("ThrottlingException", "Rate exceeded")] * 50
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert asked.error.transient
    assert "throttled" in asked.error.why


@pytest.mark.parametrize("gone", ["denied", "missing"])
async def test_another_document_is_used_and_said_where_the_first_is_not_to_be_had(gone: str) -> None:
    first = "AWS-StartNonInteractiveCommand"
    service = FakeService()
    if gone == "denied":
        service.allowed -= {first}
    else:
        service.missing = frozenset({first})
    async with fleet(service) as transport:
        for _ in range(2):
            asked = await ask(transport, saying("hello"))
            assert asked.error is None
            assert asked.data == said("hello")
        [note] = transport.told
    assert note.startswith(f"{first} could not be used, AmazonEKS-ExecuteNonInteractiveCommand was: ")
    # The second node does not knock at the closed door again.
    assert len([one for one, _ in service.asked if one == "StartSession"]) == 3


async def test_a_terminal_in_between_changes_only_the_line_ends() -> None:
    service = FakeService(allowed=frozenset({"AWS-StartInteractiveCommand"}))
    async with fleet(service) as transport:
        asked = await ask(transport, saying("hello"))
    assert asked.error is None
    assert asked.data.replace(b"\r\n", b"\n") == said("hello")


async def test_without_any_document_the_first_ones_reason_is_told() -> None:
    service = FakeService(allowed=frozenset())
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert asked.error.status is Status.DENIED
    assert "AWS-StartNonInteractiveCommand" in asked.error.why


async def begun(stream: AsyncIterator[bytes]) -> None:
    """Until the node has said something."""
    async for data in stream:
        if data:
            return


async def test_a_reader_that_leaves_early_ends_the_session() -> None:
    service = FakeService()
    async with fleet(service) as transport:
        async with contextlib.aclosing(
            transport.run(NODE, script("while echo x; do sleep 0.05; done"))
        ) as stream:  # type: ignore[type-var]
            await begun(stream)
        assert service.left == set()
    [told] = service.sessions.values()
    assert told.agent.process is not None
    assert told.agent.process.popen.returncode is not None


async def test_cancelling_in_the_middle_ends_the_session() -> None:
    service = FakeService()
    async with fleet(service) as transport:
        running = asyncio.Event()

        async def listen() -> None:
            async for data in transport.run(NODE, script("while echo x; do sleep 0.05; done")):
                if data:
                    running.set()

        task = asyncio.ensure_future(listen())
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert service.left == set()


async def test_a_session_that_starts_while_it_is_given_up_is_ended_all_the_same() -> None:
    service, asked = FakeService(), asyncio.Event()
    gate = asyncio.Event()
    started: list[Told] = []
    service.on_start = started.append

    original = service.call

    async def slow(name: str, operation: str, **parameters: object) -> object:
        if operation == "StartSession":
            asked.set()
            await gate.wait()
        return await original(name, operation, **parameters)

    service.call = slow  # type: ignore[method-assign, assignment]
    async with fleet(service) as transport:
        task = asyncio.ensure_future(ask(transport, saying("x")))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert started == []
        gate.set()
    assert len(started) == 1
    assert service.left == set()


async def test_a_session_that_cannot_be_ended_is_named() -> None:
    service = FakeService()
    service.refusals["TerminateSession"] = [refusal("AccessDeniedException", "", "TerminateSession")]
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert asked.error is None
    assert set(transport.left_open) == service.started
    [line] = transport.told
    assert all(one in line for one in ("1 sessions", "terminate-session", *service.started))


async def test_an_ending_that_is_throttled_is_tried_again() -> None:
    service = FakeService()
    service.refusals["TerminateSession"] = [refusal("ThrottlingException", "", "TerminateSession")] * 2
    async with fleet(service) as transport:
        await ask(transport, saying("x"))
    assert transport.left_open == ()
    assert service.left == set()


async def test_an_ending_that_does_not_end_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDING_SECONDS", "CLOSING_SECONDS"):
        monkeypatch.setattr(f"straggler.engine.transports.ssm_sessions.{name}", 0.1)
    service = FakeService()
    original = service.call

    async def hang(name: str, operation: str, **parameters: object) -> object:
        if operation == "TerminateSession":
            await asyncio.Event().wait()
        return await original(name, operation, **parameters)

    service.call = hang  # type: ignore[method-assign, assignment]
    async with fleet(service) as transport:
        assert (await ask(transport, saying("x"))).error is None
    assert set(transport.left_open) == service.started


async def test_an_answer_without_a_way_to_the_session_still_ends_it() -> None:
    service = FakeService()
    original = service._way

    def lame(told: Told) -> dict[str, object]:
        return {**original(told), "TokenValue": ""}

    service._way = lame  # type: ignore[method-assign]
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert len(service.started) == 1
    assert service.left == set()


async def test_a_service_that_cannot_be_reached_is_told_and_the_session_is_ended() -> None:
    service = FakeService()
    async with fleet(service) as transport:
        service.port = 1
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert "no connection to the ssmmessages endpoint" in asked.error.why
    assert asked.error.transient


async def test_an_address_that_is_not_encrypted_is_refused() -> None:
    service = FakeService()
    service._way = lambda told: {  # type: ignore[method-assign]
        "SessionId": told.id,
        "TokenValue": "t",
        "StreamUrl": "ws://ssmmessages.example.com/v1/data-channel/x?role=publish_subscribe",
    }
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert "not encrypted" in asked.error.why


@given(
    st.lists(st.sampled_from(["", "kill", "late", "cut", "reason", "start", "end"]), min_size=1, max_size=6),
    st.integers(0, 40),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
async def test_whatever_happens_every_session_that_began_is_ended(what: list[str], patience: int) -> None:
    plans = {
        "kill": Faults(kill=frozenset({1, 3})),
        "late": Faults(delay=0.02),
        "cut": Faults(cut=10),
        "reason": Faults(reason="closed"),
    }
    service = FakeService(
        {f"i-node-{at}": plans.get(one, Faults()) for at, one in enumerate(what)}, tick=0.02
    )
    service.refusals["StartSession"] = [
        refusal("InternalServerError", status=500) if one == "start" else None for one in what
    ]
    service.refusals["TerminateSession"] = [
        refusal("ThrottlingException", "", "TerminateSession") if one == "end" else None for one in what
    ]
    nodes = [type(NODE)(f"node-{at}") for at in range(max(2, len(what)))]
    async with fleet(service, nodes=len(nodes)) as transport:
        tasks = [asyncio.ensure_future(ask(transport, saying("x" * 3000), node)) for node in nodes]
        await asyncio.wait(tasks, timeout=patience / 100)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert service.left == set()
