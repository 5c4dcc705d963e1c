"""An event loop whose clock jumps to the next timer: minutes of waiting pass at once, and always in the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._at = 0.0

    def time(self) -> float:
        return self._at

    def _run_once(self) -> None:
        waiting = [one for one in self._scheduled if not one.cancelled()]  # type: ignore[attr-defined]
        if not self._ready and waiting:  # type: ignore[attr-defined]
            self._at = max(self._at, min(one.when() for one in waiting))
        super()._run_once()  # type: ignore[misc]


def run(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, in no time."""
    loop = _Loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()
