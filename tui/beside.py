"""Work beside the event loop that may hang, such as a directory on a dead file server."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def beside(work: Callable[[], T]) -> T:
    """Run in a thread of its own that keeps nobody: neither the screen while it works nor the program when it ends."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[T] = loop.create_future()

    def hand_over(result: T | None, error: BaseException | None) -> None:
        if told.done():
            return
        if error is not None:
            told.set_exception(error)
        else:
            told.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work()
        except Exception as one:  # noqa: BLE001 - it belongs to whoever waits
            error = one
        # The loop may have closed meanwhile: then nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(hand_over, result, error)

    threading.Thread(target=run, daemon=True, name="beside").start()
    return await told
