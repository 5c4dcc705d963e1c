"""The rate of sessions: never above it, hardly below it, slower when told to, and fair."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine.transports.ssm_bucket import SLOWEST, TokenBucket
from tests.ssm.virtual_time import run


def now() -> float:
    return asyncio.get_running_loop().time()


async def taken(bucket: TokenBucket, count: int) -> list[float]:
    times: list[float] = []

    async def one() -> None:
        await bucket.take()
        times.append(now())

    await asyncio.gather(*(one() for _ in range(count)))
    return times


@given(st.floats(0.5, 50), st.integers(1, 60))
@settings(deadline=None)
def test_tokens_come_at_the_rate_and_no_faster(rate: float, count: int) -> None:
    times = run(taken(TokenBucket(rate), count))
    for start in times:
        inside = sum(start <= at < start + 1 - 1e-6 for at in times)
        assert inside <= rate + 1
    assert times[-1] <= count / rate + 1e-6


def test_a_thousand_tokens_take_as_long_as_the_rate_says() -> None:
    times = run(taken(TokenBucket(30), 1000))
    assert times[-1] == pytest.approx(1000 / 30, rel=0.01)


def test_what_is_not_taken_is_not_saved_up() -> None:
    async def idle_then_hurry() -> list[float]:
        bucket = TokenBucket(3)
        await bucket.take()
        await asyncio.sleep(60)
        begun = now()
        return [at - begun for at in await taken(bucket, 6)]

    times = run(idle_then_hurry())
    assert times == pytest.approx([0, 1 / 3, 2 / 3, 1, 4 / 3, 5 / 3])


def test_what_the_event_loop_was_late_by_is_made_up_for_and_no_more() -> None:
    async def stalled(seconds: float) -> list[float]:
        bucket = TokenBucket(10)
        tasks = [asyncio.ensure_future(bucket.take()) for _ in range(30)]
        times: list[float] = []
        for task in tasks:
            task.add_done_callback(lambda _: times.append(now()))
        await asyncio.sleep(0.45)
        asyncio.get_running_loop()._at += seconds  # type: ignore[attr-defined]
        await asyncio.gather(*tasks)
        return times

    assert run(stalled(0.3))[-1] == pytest.approx(2.9)
    asleep = run(stalled(60))
    assert sum(60.4 <= at < 60.5 for at in asleep) <= 7


def test_the_most_urgent_goes_first_then_whoever_came_first() -> None:
    async def order() -> list[str]:
        bucket, went = TokenBucket(3), []
        await bucket.take()

        async def one(name: str, urgency: float) -> None:
            await bucket.take(urgency)
            went.append(name)

        names = [("a", 1.0), ("b", 1.0), ("suspect", 0.0), ("c", 1.0), ("again", float("-inf"))]
        await asyncio.gather(*(one(*each) for each in names))
        return went

    assert run(order()) == ["again", "suspect", "a", "b", "c"]


def test_a_refusal_halves_the_rate_and_success_gives_it_back_slowly() -> None:
    async def refused() -> tuple[float, float, list[float]]:
        bucket = TokenBucket(4)
        await bucket.take()
        bucket.refused()
        low = bucket.rate
        times = await taken(bucket, 200)
        return low, bucket.rate, times

    low, end, times = run(refused())
    assert low == 2
    assert end == 4
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps[0] > 0.45
    assert gaps[-1] == pytest.approx(0.25)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(gaps))


def test_many_refusals_at_once_count_as_one() -> None:
    async def flood() -> float:
        bucket = TokenBucket(8)
        for _ in range(50):
            bucket.refused()
        return bucket.rate

    assert run(flood()) == 4


def test_however_often_it_is_refused_it_goes_on() -> None:
    async def long() -> float:
        bucket = TokenBucket(3)
        for _ in range(100):
            bucket.refused()
            await asyncio.sleep(1)
        before = now()
        await bucket.take()
        assert now() - before <= 1 / SLOWEST
        return bucket.rate

    assert run(long()) >= SLOWEST


def test_against_a_service_that_allows_less_it_settles_below_and_all_are_served() -> None:
    async def serve() -> tuple[int, float]:
        bucket, starts, refused = TokenBucket(10), [], 0

        async def one() -> None:
            nonlocal refused
            urgency = 0.0
            while True:
                await bucket.take(urgency)
                if sum(now() - at < 1 for at in starts) < 5:
                    starts.append(now())
                    return
                refused += 1
                urgency = float("-inf")
                bucket.refused()

        await asyncio.gather(*(one() for _ in range(300)))
        return refused, now()

    refused, seconds = run(serve())
    assert seconds < 2 * 300 / 5
    assert refused < 300 / 5


def test_whoever_is_cancelled_takes_no_token() -> None:
    async def cancelled() -> list[float]:
        bucket = TokenBucket(2)
        await bucket.take()
        waiting = [asyncio.ensure_future(bucket.take()) for _ in range(100)]
        await asyncio.sleep(0)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return await taken(bucket, 2)

    assert run(cancelled())[0] <= 0.5 + 1e-9


def test_no_rate_is_no_bucket() -> None:
    with pytest.raises(ValueError, match="above 0"):
        TokenBucket(0)
