"""The one script a node runs: registered snippets under the runner in `node_script.sh`, nothing else.

A transport takes a `Request`, never text: `compose` is the only way from a request to bytes, it is called where the bytes
leave the process, and it refuses any collector that is not, object for object, in the closed list (gate.py).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from straggler.engine.gate import admit

if TYPE_CHECKING:
    from straggler.engine.collectors.base import AnyCollector

CAP = 256 * 1024
"""Bytes of one snippet's stdout that are kept; what is longer is cut on the node and said to be cut."""

SSM_LIMIT = 45 * 1024
"""Raw bytes a composed script may have so that it still fits one SSM parameter after encoding."""


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
    admit(request.collectors)
    nonce = secrets.token_hex(8)
    return Script(nonce, _render(request, nonce).encode())


def _render(request: Request, nonce: str) -> str:
    """The text; only `compose`, behind the closed list, may hand it on.

    The frames' nonce stays in the shell's memory: scratch and processes, which others on the node can see, carry a mark of
    their own. Functions a login shell exports (bash) must not stand in for the programs we mean.
    """
    collectors = request.collectors
    names = sorted({*_RUNNER_STARTS, *(name for one in collectors for name in one.commands)})
    head = [
        f"S_NONCE={nonce} S_MARK={secrets.token_hex(8)} S_CAP={CAP}",
        f"S_SINCE={int(request.since)} S_UNTIL={int(request.until)} S_SUDO={int(request.sudo)}",
        f"S_COUNT={len(collectors)} S_ALL='{' '.join(map(str, range(len(collectors))))}'",
        " ".join(f"S_MAX_{at}={one.seconds}" for at, one in enumerate(collectors)) or ":",
        "export S_SINCE S_UNTIL",
        f"unset -f {' '.join(names)}",
    ]
    body = [
        f"s_{at}() {{\n: straggler-collector {one.id}\n{one.snippet.strip()}\n}}"
        for at, one in enumerate(collectors)
    ]
    return "\n".join([*head, _runner(), *body, "s_main", ""])


_RUNNER_STARTS = (
    "cat",
    "cksum",
    "date",
    "grep",
    "head",
    "id",
    "kill",
    "mkdir",
    "printf",
    "rm",
    "sleep",
    "sudo",
    "tail",
    "wc",
)
"""What the runner calls by name: a test holds this to the file."""


@cache
def _runner() -> str:
    """The runner without its comment lines: they are for readers of the file, not for the node."""
    text = files("straggler.engine").joinpath("node_script.sh").read_text()
    return "\n".join(line for line in text.splitlines() if line and not line.lstrip().startswith("#"))
