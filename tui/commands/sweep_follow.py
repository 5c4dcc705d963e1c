"""`straggler sweep --follow`: what the results say, again whenever some have come, until every planned run has one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.tui.commands import sweep_text

if TYPE_CHECKING:
    from straggler.engine.knowledge import Knowledge


class _AllThere(Exception):
    """Every planned run has its result."""


async def follow(
    out: Path,
    known: Knowledge,
    say: Callable[[str], object],
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    clock: Callable[[], float] = time.time,
) -> None:
    """One line whenever results have come, however many; returns when no planned run is without one.

    The plan is read again each time: somebody may have added to it meanwhile.
    """
    from straggler.engine.bandwidth import so_far, sweep
    from straggler.engine.bandwidth.watch import appearing

    fresh = False

    async def between_looks(seconds: float) -> None:
        nonlocal fresh
        plan = sweep.read(out)
        if fresh and plan is not None:
            fresh = False
            found = await asyncio.to_thread(so_far.judge, plan, out, known, clock())
            say(sweep_text.line(plan, found))
            if not found.progress.missing and not found.going:
                raise _AllThere
        await sleep(seconds)

    try:
        async for name, _ in appearing(out, sleep=between_looks, clock=clock):
            fresh = fresh or name.startswith(("round-", "alone-"))
    except _AllThere:
        return
