"""What may go wrong between a node's agent and its client, as plain data: the same plan does the same again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """Numbers in sets are sequence numbers of the agent's messages; only their first copy is touched."""

    drop: frozenset[int] = frozenset()
    damage: frozenset[int] = frozenset()
    double: frozenset[int] = frozenset()
    hold: frozenset[int] = frozenset()
    """Sent after the next message: out of order."""
    kill: frozenset[int] = frozenset()
    """The socket is cut right after this message."""
    barred: frozenset[int] = frozenset()
    """The socket is cut instead of sending this message, however often it is tried."""
    drop_acks: int = 0
    """So many of the client's first messages are not heard of."""
    chunk: int = 1024
    """Bytes of output in one message."""
    delay: float = 0.0
    """Seconds before each message."""
    pause: int | None = None
    """`pause_publication` before this message, `start_publication` after the next."""
    cut: int | None = None
    """The agent stops reading the command's output after so many bytes, and ends as if all were well."""
    silent: bool = False
    """The agent never says a word."""
    reason: str = ""
    """The channel is closed with this text instead of running anything."""
    kms: bool = False
    challenge: bool = True
    wrong_key: bool = False
    """The agent seals with another key than the client's."""
    early_end: bool = False
    """The channel is closed though not all has been acknowledged."""
    lose_session: bool = False
    """A cut session cannot be resumed."""
    action: str = ""
    """One more action the agent asks for, which nobody knows."""
    banner: bytes = b""
    """Printed before the command's own output."""
