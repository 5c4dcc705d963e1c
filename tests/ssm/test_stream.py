"""Order and loss: every message once and in its turn, whatever the network made of them; and what was lost is sent again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.transports import ssm_stream
from straggler.engine.transports.ssm_stream import Incoming, Outgoing
from straggler.engine.transports.ssm_wire import OUTPUT_DATA, Message
from tests.ssm import fake_wire


def message(number: int, payload: bytes = b"x") -> Message:
    return Message(OUTPUT_DATA, payload, 1, number, 0, "id", 1, 1)


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[int, list[int]]:
    """Every number at least once, some several times, in any order."""
    count = draw(st.integers(1, 40))
    extra = draw(st.lists(st.integers(0, count - 1), max_size=40))
    return count, draw(st.permutations([*range(count), *extra]))


@given(deliveries())
def test_each_message_comes_once_and_in_order(delivery: tuple[int, list[int]]) -> None:
    count, order = delivery
    incoming, got = Incoming(), []
    for number in order:
        heard, ready = incoming.take(message(number))
        assert heard, "also what comes twice is acknowledged: the first acknowledgement may have been lost"
        got += [one.sequence for one in ready]
    assert got == list(range(count))
    assert not incoming.missing


def test_what_is_too_far_ahead_is_left_to_be_sent_again() -> None:
    incoming = Incoming()
    assert incoming.take(message(ssm_stream.AHEAD_MESSAGES + 1)) == (False, [])
    assert incoming.take(message(ssm_stream.AHEAD_MESSAGES)) == (True, [])
    assert incoming.missing


def test_a_flood_of_early_messages_is_bounded_in_bytes() -> None:
    incoming, kept = Incoming(), 0
    for number in range(1, 400):
        heard, _ = incoming.take(message(number, bytes(256 * 1024)))
        kept += heard
    assert kept * 256 * 1024 <= ssm_stream.AHEAD_BYTES


def test_the_oldest_unacknowledged_message_is_sent_again_unchanged() -> None:
    outgoing = Outgoing()
    first, second = outgoing.add(b"a", 6, 0.0), outgoing.add(b"b", 9, 0.0)
    assert [fake_wire.read(one).sequence for one in (first, second)] == [0, 1]
    assert outgoing.wait(0.15) == pytest.approx(0.05)
    assert outgoing.again(0.2) == first
    outgoing.acknowledged(0, 0.25)
    assert outgoing.again(0.5) == second
    outgoing.acknowledged(1, 0.6)
    outgoing.acknowledged(1, 0.6)
    outgoing.acknowledged(99, 0.6)
    assert outgoing.wait(0.6) is None
    assert outgoing.again(0.6) is None


@given(st.lists(st.floats(0, 5), min_size=1, max_size=50))
def test_the_timeout_follows_the_round_trips_within_its_bounds(trips: list[float]) -> None:
    outgoing, now = Outgoing(), 0.0
    for number, trip in enumerate(trips):
        outgoing.add(b"x", 1, now)
        now += trip
        outgoing.acknowledged(number, now)
        assert ssm_stream.CLOCK <= outgoing.timeout <= ssm_stream.LONGEST_TIMEOUT


def test_steady_fast_round_trips_make_the_timeout_short() -> None:
    outgoing = Outgoing()
    for number in range(60):
        outgoing.add(b"x", 1, float(number))
        outgoing.acknowledged(number, number + 0.02)
    assert outgoing.timeout < 0.05


def test_a_message_nobody_ever_acknowledges_is_given_up() -> None:
    outgoing = Outgoing()
    outgoing.add(b"x", 1, 0.0)
    for number in range(ssm_stream.RESENDS):
        assert outgoing.again(float(number))
    with pytest.raises(TimeoutError):
        outgoing.again(1000.0)
