"""One node, held for one sweep: its lock, what is at work on it, and the end of whatever a run left there.

The session stays open from before the first run until after the last. When it breaks, the node ends the load by itself.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from straggler.engine.compat import timeout
from straggler.engine.errors import TransportError
from straggler.engine.load_gate import Order
from straggler.engine.model import Node, Status

CHECK_SECONDS = 60
"""How long a node may take to say what is at work on it."""

END_SECONDS = 20
"""How long it may take to end what is left of a run: it asks for 3 s and insists for 5 (hold.sh)."""

LINE_BYTES = 4_000


class Talk(Protocol):
    """An open session with a script on a node; `LoadTalk` is the one by SSH."""

    nonce: str

    async def read(self) -> bytes: ...
    def say(self, word: bytes) -> None: ...


class LoadTransport(Protocol):
    """A transport that can carry load: it takes orders, never text, and composes them where they leave."""

    def talk(self, node: Node, order: Order) -> AbstractAsyncContextManager[Talk]: ...


@dataclass(frozen=True, slots=True)
class Work:
    """What a node says of itself. `busy`: what is at work there; `unread`: what could not be looked at, so is not known idle."""

    gpus: int = 0
    busy: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


KINDS = {
    "gpu": "a process has a GPU open",
    "pod": "a pod has a GPU open",
    "slurm": "a Slurm job step runs",
    "mpi": "an MPI or nccl-tests run is going on",
}
"""What the words of hold.sh mean, for the operator."""


class NotHeld(Exception):
    """Raised when a node cannot be held; str() is the reason, as a clause."""


class Holding:
    """The open session of one node. After a TransportError or a time-out it is of no more use."""

    def __init__(self, talk: Talk) -> None:
        self._talk, self._unread = talk, b""
        self._mark = f"@@straggler {talk.nonce} ".encode()
        self._turn = asyncio.Lock()

    async def take(self) -> Work:
        """The first words of the session: the lock, then what is at work. Raises NotHeld, TransportError."""
        async with timeout(CHECK_SECONDS):
            first = await self._next()
            if first == "locked":
                return await self._work()
        kind, _, words = first.partition(" ")
        if kind == "held":
            raise NotHeld(f"held by another sweep: {words or 'it did not write whose'}")
        raise NotHeld(words if kind == "nolock" else "it could not be locked")

    def beat(self) -> None:
        self._talk.say(b".")

    async def check(self) -> Work:
        """What is at work there now, beside this sweep's own runs. Raises TransportError."""
        async with self._turn, timeout(CHECK_SECONDS):
            self._talk.say(b"c")
            return await self._work()

    async def clean(self) -> int:
        """End what this sweep started there; how many processes would not end. Raises TransportError."""
        return await self._ended(b"k", "clean")

    async def let_go(self) -> int:
        """The same, and the lock is released."""
        return await self._ended(b"q", "gone")

    async def _ended(self, word: bytes, answer: str) -> int:
        async with self._turn, timeout(END_SECONDS):
            self._talk.say(word)
            while True:
                kind, _, left = (await self._next()).partition(" ")
                if kind == answer and left.isdigit():
                    return int(left)

    async def _work(self) -> Work:
        gpus, busy, unread = 0, [], []
        while (line := await self._next()) != "checked":
            kind, _, words = line.partition(" ")
            if kind == "gpus" and words.isdigit():
                gpus = int(words)
            elif kind == "busy":
                what, _, which = words.partition(" ")
                busy.append(f"{KINDS.get(what, what)} ({which})")
            elif kind == "unread":
                unread.append(words)
        return Work(gpus, tuple(dict.fromkeys(busy)), tuple(unread))

    async def _next(self) -> str:
        """The script's next line without its nonce; a banner or anything else that speaks is not heard."""
        while True:
            while b"\n" in self._unread:
                line, _, self._unread = self._unread.partition(b"\n")
                if line.startswith(self._mark):
                    return line[len(self._mark) :].decode("utf-8", "replace").rstrip("\r")
            data = await self._talk.read()
            if not data:
                raise TransportError(Status.TRUNCATED, "its session ended")
            self._unread = self._unread[-LINE_BYTES:] + data
