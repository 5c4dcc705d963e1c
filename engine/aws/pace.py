"""How fast each operation may be called, so that a diagnosis does not take the account's quota from a running job."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType

CALLS_A_SECOND: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        # Not published. Two seconds for a page of nodes; throttling slows it down.
        ("sagemaker", "DescribeClusterNode"): 50.0,
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html (2026-12-01): the quota of the
        # smaller regions, where it is 5, 10 and 5; half of each is left to others.
        ("logs", "FilterLogEvents"): 2.5,
        ("logs", "GetLogEvents"): 5.0,
        ("logs", "DescribeLogStreams"): 2.5,
    }
)

FLOOR = 0.5
"""Calls a second below which throttling does not push an operation."""


class Pace:
    """One operation's calls, spread evenly. Usable from any event loop: it holds times, not tasks."""

    def __init__(self, a_second: float) -> None:
        self.a_second = a_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    async def turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            mine = max(self._free_at, now)
            self._free_at = mine + 1 / self.a_second
        if mine > now:
            await asyncio.sleep(mine - now)

    def slower(self) -> None:
        """The service throttled: half as fast from now on."""
        with self._lock:
            self.a_second = max(FLOOR, self.a_second / 2)
