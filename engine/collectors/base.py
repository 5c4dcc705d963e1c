"""What a collector is: a declaration of what is read, and a pure function from the text to facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from straggler.engine.model import F, Status, Unread


@dataclass(frozen=True)
class Collector(Generic[F]):
    """One subject read on a node.

    `snippet` is POSIX sh (dash, busybox), read-only, and prints to stdout. Helpers of the node script it may call:
    `missing TOOL` (ends it: tool missing), `denied WHAT` (needs root), `absent WHY` (not applicable here), `priv CMD...`
    (runs CMD, through `sudo -n` when --sudo was given), `have TOOL`. `$S_SINCE`/`$S_UNTIL` hold the window as Unix seconds.
    `parse` gets the whole stdout and returns facts, or Unread when the text is not whole or not ours: never an exception.
    `fields` names what is compared over the nodes of a group: field -> printable value; None for what was not readable.
    `seconds` bounds the run on the node. `commands` lists every program the snippet may start (a test holds it to that).
    """

    id: str
    what: str
    snippet: str
    parse: Callable[[str], F | Unread]
    commands: tuple[str, ...]
    fields: Callable[[F], Mapping[str, str | None]] | None = None
    seconds: int = 15
    params: tuple[str, ...] = ()

    def read(self, text: str) -> F | Unread:
        """Parse hostile text: a parser that trips is a bug of ours, and still never a PASS or a crash."""
        try:
            return self.parse(text)
        except (
            ValueError,
            KeyError,
            IndexError,
            TypeError,
            AttributeError,
            RecursionError,
            OverflowError,
        ) as error:
            return Unread(Status.GARBLED, f"the reply could not be understood ({type(error).__name__})")


AnyCollector = Collector[Any]


def garbled(why: str) -> Unread:
    return Unread(Status.GARBLED, why)
