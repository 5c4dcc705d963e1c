"""The one script a node runs: registered snippets under the runner in `node_script.sh`, nothing else.

A transport takes a `Request`, never text: `compose` is the only way from a request to bytes, it is called where the bytes
leave the process, and it refuses any collector that is not, snippet for snippet, in the closed list `COLLECTORS`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from straggler.engine.collectors.base import AnyCollector
from straggler.engine.errors import FatalError

CAP = 256 * 1024
"""Bytes of one snippet's stdout that are kept; what is longer is cut on the node and said to be cut."""

SSM_LIMIT = 45 * 1024
"""Raw bytes a composed script may have so that it still fits one SSM parameter after encoding (DESIGN.md §3)."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of one node. `since` and `until` are Unix seconds."""

    collectors: tuple[AnyCollector, ...]
    since: int = 0
    until: int = 0
    sudo: bool = False

    def without(self, ids: frozenset[str]) -> Request:
        """The same request for what is still missing (a retry asks for nothing twice)."""
        left = tuple(one for one in self.collectors if one.id not in ids)
        return Request(left, self.since, self.until, self.sudo)

    @property
    def seconds(self) -> int:
        """How long the node may take by its own watchdogs: the longest snippet and its grace."""
        return max((one.seconds for one in self.collectors), default=0) + 4


@dataclass(frozen=True, slots=True)
class Script:
    """Bytes for `sh` on stdin, and the nonce its frames carry."""

    nonce: str
    body: bytes


def compose(request: Request) -> Script:
    """The script for one node and one try. Raises FatalError for a collector outside the closed list."""
    from straggler.engine.collectors import COLLECTORS

    known = {one.id: one for one in COLLECTORS}
    for one in request.collectors:
        if known.get(one.id) is not one:
            raise FatalError(f"refused: collector {one.id!r} is not in the closed list of what may run on a node")
    nonce = secrets.token_hex(8)
    return Script(nonce, _render(request, nonce, request.collectors).encode())


def _render(request: Request, nonce: str, collectors: Sequence[AnyCollector]) -> str:
    numbers = range(len(collectors))
    head = [
        f"S_NONCE={nonce} S_CAP={CAP} S_SINCE={int(request.since)} S_UNTIL={int(request.until)}",
        f"S_SUDO={int(request.sudo)} S_COUNT={len(collectors)} S_ALL='{' '.join(map(str, numbers))}'",
        " ".join(f"S_MAX_{at}={one.seconds}" for at, one in enumerate(collectors)) or ":",
        "export S_SINCE S_UNTIL",
    ]
    body = [f"s_{at}() {{\n: straggler-collector {one.id}\n{one.snippet.strip()}\n}}" for at, one in enumerate(collectors)]
    return "\n".join([*head, _runner(), *body, "s_main", ""])


@cache
def _runner() -> str:
    """The runner without its comment lines: they are for readers of the file, not for the node."""
    text = files("straggler.engine").joinpath("node_script.sh").read_text()
    return "\n".join(line for line in text.splitlines() if line and not line.lstrip().startswith("#"))
