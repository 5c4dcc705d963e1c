"""Order and loss on a data channel: what is still awaited, what came too early, what nobody has acknowledged yet.

Both halves are plain state without I/O, so they outlive the socket: a resumed session goes on with the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from straggler.engine.transports.ssm_wire import INPUT_DATA, Message, pack

AHEAD_MESSAGES = 10_000
AHEAD_BYTES = 16 * 1024 * 1024
"""What is kept of messages that came before their turn; more is left unacknowledged, so that the agent sends it again."""

FIRST_TIMEOUT = 0.2
LONGEST_TIMEOUT = 1.0
CLOCK = 0.01
"""Seconds until an unacknowledged message is sent again: at first, at most, and the grain of the smoothing. As the public clients."""

RESENDS = 120
"""How often one message is sent again, at least 0.2 s apart, before the other side is taken for gone."""


class Incoming:
    """The agent's messages in their order. Numbers start at 0 and count all stream data, the handshake included."""

    def __init__(self) -> None:
        self.expected = 0
        self._ahead: dict[int, Message] = {}
        self._ahead_bytes = 0

    def take(self, message: Message) -> tuple[bool, list[Message]]:
        """Whether to acknowledge this message, and the messages whose turn has come with it."""
        number = message.sequence
        if number < self.expected or number in self._ahead:
            return True, []
        if number != self.expected:
            return self._keep(number, message), []
        ready = [message]
        self.expected += 1
        while (following := self._ahead.pop(self.expected, None)) is not None:
            self._ahead_bytes -= len(following.payload)
            ready.append(following)
            self.expected += 1
        return True, ready

    @property
    def missing(self) -> bool:
        """Whether something came that stands behind something that has not come."""
        return bool(self._ahead)

    def _keep(self, number: int, message: Message) -> bool:
        size = self._ahead_bytes + len(message.payload)
        if number - self.expected > AHEAD_MESSAGES or size > AHEAD_BYTES:
            return False
        self._ahead[number], self._ahead_bytes = message, size
        return True


@dataclass
class _Sent:
    data: bytes
    at: float
    again: int = 0


class Outgoing:
    """Our messages until the agent has acknowledged them. Times are seconds of one steady clock, handed in."""

    def __init__(self) -> None:
        self._next = 0
        self._unacknowledged: dict[int, _Sent] = {}
        self._trip = 0.1
        self._variation = 0.0
        self.timeout = FIRST_TIMEOUT

    def add(self, payload: bytes, payload_type: int, now: float) -> bytes:
        """The next message as bytes, remembered until it is acknowledged."""
        data = pack(INPUT_DATA, payload, payload_type=payload_type, sequence=self._next)
        self._unacknowledged[self._next] = _Sent(data, now)
        self._next += 1
        return data

    def acknowledged(self, number: int, now: float) -> None:
        """Forget that message, and learn from how long it took; numbers that are not waited for mean nothing."""
        sent = self._unacknowledged.pop(number, None)
        if sent is None:
            return
        took = max(0.0, now - sent.at)
        self._variation += (abs(self._trip - took) - self._variation) / 4
        self._trip += (took - self._trip) / 8
        self.timeout = min(LONGEST_TIMEOUT, self._trip + max(CLOCK, 4 * self._variation))

    @property
    def waiting(self) -> int:
        return len(self._unacknowledged)

    def wait(self, now: float) -> float | None:
        """Seconds until the oldest message is to be sent again; None while all is acknowledged."""
        for sent in self._unacknowledged.values():
            return max(0.0, sent.at + self.timeout - now)
        return None

    def again(self, now: float) -> bytes | None:
        """The oldest message, to be sent once more; None when nothing is open. Raises TimeoutError after RESENDS tries."""
        for sent in self._unacknowledged.values():
            sent.again += 1
            if sent.again > RESENDS:
                raise TimeoutError
            sent.at = now
            return sent.data
        return None
