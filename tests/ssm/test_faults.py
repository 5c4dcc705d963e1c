"""Whatever happens between agent and client: the exact bytes, or an error that says so; never a part as if it were all."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from tests.ssm.asking import ask, fleet, said, saying, script
from tests.ssm.fake_service import FakeService
from tests.ssm.faults import Faults

TEXT = "".join(f"line {number}: héllo wörld ✓ 日本語 {number * 7}\n" for number in range(300))


async def meet(faults: Faults, text: str = TEXT) -> tuple[bytes, Exception | None, FakeService]:
    service = FakeService({"": faults}, tick=0.02)
    async with fleet(service) as transport:
        asked = await ask(transport, saying(text))
    return asked.data, asked.error, service


@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(chunk=7),
        Faults(drop=frozenset({0})),
        Faults(drop=frozenset({1, 3, 4})),
        Faults(damage=frozenset({0, 2})),
        Faults(double=frozenset(range(12))),
        Faults(hold=frozenset({0, 2, 5})),
        Faults(hold=frozenset({2, 3, 4})),
        Faults(drop_acks=3),
        Faults(kms=True),
        Faults(kms=True, challenge=False),
        Faults(kms=True, drop=frozenset({1, 4}), hold=frozenset({3}), drop_acks=1),
        Faults(delay=0.002, chunk=300),
    ],
    ids=str,
)
async def test_what_can_be_mended_is_mended(faults: Faults) -> None:
    data, error, _ = await meet(faults)
    assert error is None
    assert data == said(TEXT)


async def test_a_dropped_socket_is_resumed_where_it_broke() -> None:
    data, error, service = await meet(Faults(kill=frozenset({0, 3, 6})))
    assert error is None
    assert data == said(TEXT)
    [told] = service.sessions.values()
    assert told.opened > 1
    assert len([one for one, _ in service.asked if one == "ResumeSession"]) == told.opened - 1


async def test_a_socket_that_breaks_again_and_again_is_given_up() -> None:
    data, error, _ = await meet(Faults(barred=frozenset({4})))
    assert isinstance(error, TransportError)
    assert error.status is Status.TRUNCATED
    assert error.transient
    assert said(TEXT).startswith(data)


async def test_a_session_that_cannot_be_resumed_says_so() -> None:
    data, error, _ = await meet(Faults(kill=frozenset({4}), lose_session=True))
    assert isinstance(error, TransportError)
    assert error.status is Status.TRUNCATED
    assert "resumed" in error.why
    assert said(TEXT).startswith(data)


@pytest.mark.parametrize("at", [0, 100, 5000])
async def test_an_agent_that_stops_reading_leaves_no_last_frame(at: int) -> None:
    data, error, _ = await meet(Faults(cut=at))
    assert said(TEXT) != data
    assert not data.endswith(b" done 0\n")
    assert error is not None or said(TEXT).startswith(data)


async def test_an_agent_that_was_paused_loses_output_and_that_is_seen() -> None:
    data, _, _ = await meet(Faults(pause=4))
    assert said(TEXT).startswith(data)
    assert not data.endswith(b" done 0\n")


async def test_a_channel_closed_with_a_reason_gives_the_reason() -> None:
    _, error, _ = await meet(Faults(reason="failed to start pty since RunAs user ubuntu does not exist"))
    assert isinstance(error, TransportError)
    assert error.status is Status.DENIED
    assert "Run As" in error.why
    assert "ubuntu" in error.why


async def test_an_agent_that_never_speaks_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("straggler.engine.transports.ssm_channel.HANDSHAKE_SECONDS", 0.3)
    _, error, _ = await meet(Faults(silent=True))
    assert isinstance(error, TransportError)
    assert error.status is Status.UNREACHABLE
    assert error.transient
    assert "did not begin" in error.why


async def test_an_action_nobody_knows_is_refused_to_the_agent_and_told() -> None:
    _, error, _ = await meet(Faults(action="QuantumEncryption"))
    assert isinstance(error, TransportError)
    assert "QuantumEncryption" in error.why


async def test_output_sealed_with_a_wrong_key_is_never_taken() -> None:
    data, error, _ = await meet(Faults(kms=True, wrong_key=True))
    assert isinstance(error, TransportError)
    assert error.status is Status.GARBLED
    assert data == b""


async def test_sh_that_cannot_start_is_told() -> None:
    service = FakeService(env={"PATH": "/nonexistent"})
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert asked.error.status is Status.TOOL_MISSING


async def test_a_script_that_dies_early_is_no_answer() -> None:
    service = FakeService()
    async with fleet(service) as transport:
        asked = await ask(transport, script("echo half; exit 3"))
    assert not asked.done


numbers = st.frozensets(st.integers(0, 12), max_size=3)


@st.composite
def plans(draw: st.DrawFn) -> Faults:
    return Faults(
        drop=draw(numbers),
        damage=draw(numbers),
        double=draw(numbers),
        hold=draw(numbers),
        kill=draw(st.frozensets(st.integers(0, 12), max_size=7)),
        drop_acks=draw(st.integers(0, 2)),
        chunk=draw(st.sampled_from([50, 333, 1024])),
        pause=draw(st.none() | st.integers(2, 8)),
        cut=draw(st.none() | st.integers(0, 3000)),
        kms=draw(st.booleans()),
        challenge=draw(st.booleans()),
        wrong_key=draw(st.sampled_from([False, False, False, True])),
        early_end=draw(st.booleans()),
        lose_session=draw(st.booleans()),
        reason=draw(st.sampled_from(["", "", "", "Session closed by the service"])),
    )


@given(plans())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
async def test_every_plan_ends_with_the_exact_bytes_or_an_honest_error(faults: Faults) -> None:
    text = TEXT[:2000]
    data, error, _ = await meet(faults, text)
    wanted = said(text)
    assert wanted.startswith(data)
    whole = data == wanted
    assert whole or not data.endswith(b" done 0\n")
    if not (faults.pause or faults.cut is not None or faults.reason or faults.early_end or faults.wrong_key):
        assert whole or isinstance(error, TransportError)
