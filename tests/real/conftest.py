"""Fixtures of the tests on real hosts: started once, read once, looked at by many."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from straggler.engine.collectors import COLLECTORS
from straggler.engine.gather import Event, NodeEnded, NodeNoise, gather
from straggler.engine.model import Observation
from straggler.engine.script import Request
from straggler.engine.targets.base import Target
from straggler.engine.targets.hosts import hosts_target
from tests.real.fleet import FLEET
from tests.real.hosts import Hosts, running, why_not


@dataclass
class Heard:
    """Everything one gathering emitted. `seen` keeps every observation, so that one given twice shows."""

    seen: dict[tuple[str, str], list[Observation]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    noise: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def take(self, event: Event) -> None:
        if isinstance(event, Observation):
            self.seen.setdefault((event.node, event.collector), []).append(event)
        elif isinstance(event, NodeEnded):
            self.ended[event.node] = event.why
        elif isinstance(event, NodeNoise):
            self.noise[event.node] = self.noise.get(event.node, "") + event.text

    def one(self, node: str, collector: str) -> Observation:
        [only] = self.seen[node, collector]
        return only

    def of(self, node: str) -> dict[str, Observation]:
        return {collector: self.one(name, collector) for name, collector in self.seen if name == node}


def read(hosts: Hosts, target: Target, times: int = 1) -> list[Heard]:
    """Gather everything there is from a target, from the head node; connections are kept between the times."""

    async def all_of_it() -> list[Heard]:
        rounds = []
        try:
            for _ in range(times):
                heard, begun = Heard(), time.monotonic()
                await gather(
                    target.nodes, Request(COLLECTORS, 0, int(time.time())), target.transport, heard.take
                )
                heard.seconds = time.monotonic() - begun
                rounds.append(heard)
        finally:
            await target.transport.close()
        return rounds

    return hosts.inside(lambda: asyncio.run(all_of_it()))


@pytest.fixture(scope="session")
def fleet() -> Iterator[Hosts]:
    if why := why_not():
        if os.environ.get("CI") == "true":
            pytest.fail(f"the tests on real hosts cannot run here: {why}")
        pytest.skip(f"real hosts: {why}")
    with running(FLEET) as hosts:
        yield hosts


@pytest.fixture(scope="session")
def heard(fleet: Hosts) -> Heard:
    """One gathering over the whole fleet at once."""
    return read(fleet, hosts_target(",".join(fleet.hosts), ssh_config_file=fleet.ssh_config))[0]
