"""How often sessions may be started: a token bucket with a queue, which slows down when the service says so.

One bucket per account and region. Tokens go to whoever is most urgent, then to whoever came first.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

SLOWER = 0.5
"""What the rate is multiplied with when the service throttles; at most once a second, for many are refused at once."""

SLOWEST = 0.1
"""The rate it never falls below, a second."""

RECOVERY = 0.02
"""Share of the full rate that each token granted without a refusal gives back."""


CATCH_UP = 0.5
"""Seconds of a busy event loop's lateness that are made up for; a machine that slept does not burst when it wakes."""


class TokenBucket:
    """`rate` tokens a second, and none saved up while nobody asks: the service counts calls in each second."""

    def __init__(self, rate: float, clock: Callable[[], float] | None = None) -> None:
        if rate <= 0:
            raise ValueError("a rate must be above 0")
        self.full, self.rate = rate, rate
        self._clock = clock
        self._queue: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()
        self._next = 0.0
        self._slowed = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self.refusals = 0

    async def take(self, urgency: float = 0.0) -> None:
        """Wait for a token; lower `urgency` goes first."""
        got: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._queue:
            self._next = max(self._next, self._now())
        heapq.heappush(self._queue, (urgency, next(self._count), got))
        self._serve()
        try:
            await got
        except asyncio.CancelledError:
            # A token granted in the very moment of the cancelling goes to the next one.
            if got.done() and not got.cancelled():
                self._next -= 1 / self.rate
            self._serve()
            raise

    def refused(self) -> None:
        """The service throttled a call: all that wait, wait longer."""
        self.refusals += 1
        now = self._now()
        if now - self._slowed < 1:
            return
        self._slowed = now
        self.rate = max(min(SLOWEST, self.full), self.rate * SLOWER)
        self._next = max(self._next, now + 1 / self.rate)
        self._serve()

    def _serve(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._now()
        while self._queue:
            if self._queue[0][2].done():
                heapq.heappop(self._queue)
                continue
            if self._next > now:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._next - now, self._serve)
                return
            self._queue[0][2].set_result(None)
            heapq.heappop(self._queue)
            self._next = max(self._next, now - CATCH_UP) + 1 / self.rate
            self.rate = min(self.full, self.rate + RECOVERY * self.full)

    def _now(self) -> float:
        return self._clock() if self._clock is not None else asyncio.get_running_loop().time()
