"""What one run printed, and how it ended: the result file as a reader finds it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from straggler.engine.bandwidth.holding import Talk
from straggler.engine.bandwidth.plans.base import CLOSING, HEAD, Load
from straggler.engine.compat import timeout

MOST_BYTES = 16_000_000
"""The longest output that is kept of one run; what is beyond is cut, and said to be."""


@dataclass
class Output:
    """`status`: what the command exited with; None: its end was never heard of. `why`: what went wrong, as a clause."""

    status: int | None = None
    seconds: int = 0
    why: str = ""
    text: bytearray = field(default_factory=bytearray)
    cut: int = 0

    def timed_out(self, load: Load) -> bool:
        """Status 124 is the deadline's; 137 is, too, unless it came before: then somebody else killed it."""
        return self.status == 124 or (self.status == 137 and self.seconds >= load.deadline)

    @property
    def failed(self) -> bool:
        return self.status != 0 or bool(self.why)

    async def take(self, talk: Talk, seconds: float) -> None:
        """Listen until the script says that the run has ended, its session ends, or the time is up."""
        try:
            async with timeout(seconds):
                await self._listen(talk)
        except (asyncio.TimeoutError, TimeoutError):
            self.why = "the node did not end it at its deadline, and no longer answers"

    async def _listen(self, talk: Talk) -> None:
        begun = f"@@straggler {talk.nonce} begun\n".encode()
        ended = f"\n@@straggler {talk.nonce} ended ".encode()
        held, speaking = b"", False
        while data := await talk.read():
            held += data
            if not speaking:
                before, speaking, rest = _split(held, begun)
                held = rest if speaking else before[-len(begun) :]
                if not speaking:
                    continue
            output, found, rest = _split(held, ended)
            if found and b"\n" in rest:
                self._keep(output)
                status, _, seconds = rest.partition(b"\n")[0].strip().partition(b" ")
                if status.isdigit() and seconds.isdigit():
                    self.status, self.seconds = int(status), int(seconds)
                return
            if not found:
                spared = len(ended) - 1
                self._keep(held[:-spared])
                held = held[-spared:]
        self._keep(held if speaking else b"")
        self.why = "the connection to its first node was lost" if speaking else "its first node ran nothing"

    def _keep(self, output: bytes) -> None:
        room = max(0, MOST_BYTES - len(self.text))
        self.text += output[:room]
        self.cut += max(0, len(output) - room)


def _split(text: bytes, at: bytes) -> tuple[bytes, bool, bytes]:
    before, found, rest = text.partition(at)
    return before, bool(found), rest


def finished(output: Output, member: Sequence[str], load: Load) -> bytes:
    """The result file: whose it is, what was printed, byte for byte, and how it ended."""
    head = f"{HEAD} {' '.join(member)}\n".encode()
    tail = ""
    if output.cut:
        tail += f"# straggler: {output.cut} bytes more were printed and are not kept\n"
    if output.timed_out(load):
        tail += f"# straggler: timed out after {load.deadline} s\n"
    elif output.status is None:
        tail += f"# straggler: {' '.join(output.why.split())}\n"
    # 255: how ssh, too, says that it knows no status.
    tail += f"{CLOSING} {255 if output.status is None else output.status}\n"
    lead = b"" if not output.text or output.text.endswith(b"\n") else b"\n"
    return head + bytes(output.text) + lead + tail.encode()
