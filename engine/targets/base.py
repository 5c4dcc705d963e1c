"""What a target is: the nodes to read and the way to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from straggler.engine.model import Node

if TYPE_CHECKING:
    from straggler.engine.aws.reading import HyperPod
    from straggler.engine.bandwidth.results import Source
    from straggler.engine.readings import Reading
    from straggler.engine.transports.base import Transport


@dataclass(frozen=True)
class Target:
    """Nodes and a transport. `kind` is `demo`, `hosts`, `hyperpod`, `local` or `replay`; `title` is what the header shows.

    `spec` is what a session records to say what was asked (plain values, no secrets). `starts` lists the local programs that
    reaching this target starts (ProxyCommand, Match exec, credential_process): they are shown before anything runs.
    `now` is the target's own clock where that is simulated (Unix seconds); None: the real one.
    `notes` are lines about the target itself, worth a word before it is read. `hyperpod` is the cluster as AWS's APIs tell it.
    `results` gives the results of pairwise runs on these nodes, where there are any; `follow`: more may appear at any time.
    `readings` are the questions about the cluster as a whole, asked beside the nodes.
    """

    kind: str
    title: str
    nodes: tuple[Node, ...]
    transport: Transport
    spec: Mapping[str, str | int] = field(default_factory=dict)
    starts: tuple[str, ...] = ()
    now: float | None = None
    results: Source | None = None
    notes: tuple[str, ...] = ()
    hyperpod: HyperPod | None = None
    follow: bool = False
    readings: tuple[Reading, ...] = ()
