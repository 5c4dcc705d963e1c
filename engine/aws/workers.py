"""Threads for calls that block. They keep nobody: a program that ends does not wait for an endpoint that does not answer."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Workers:
    """At most `count` daemon threads, started as they are needed. The standard pool is joined at exit; this one is not."""

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()

    async def do(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; cancelling gives up waiting for it, and takes it back when it has not begun."""
        told: Future[T] = Future()

        def job() -> None:
            if not told.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                told.set_exception(error)
            else:
                told.set_result(result)

        self._start(job)
        return await asyncio.wrap_future(told)

    def _start(self, job: Callable[[], None]) -> None:
        with self._lock:
            self._jobs.put(job)
            if self._jobs.qsize() > self._idle and len(self._threads) < self._count:
                thread = threading.Thread(target=self._work, daemon=True, name=self._name)
                self._threads.append(thread)
                thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
            if job is None:
                return
            job()

    def close(self) -> None:
        """Let idle threads end; nobody waits for the others."""
        with self._lock:
            for _ in self._threads:
                self._jobs.put(None)
            self._threads = []
