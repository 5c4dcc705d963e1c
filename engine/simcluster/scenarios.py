"""The demo's scenarios: which faults the simulated nodes carry. The same seed and size give the same cluster."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from straggler.engine.simcluster.base import SimNode


@dataclass(frozen=True, slots=True)
class Scenario:
    """`faults` maps a fault word to how many nodes carry it: a whole number is a count, a float a share of the fleet."""

    title: str
    faults: tuple[tuple[str, int | float], ...] = ()


SCENARIOS = {
    "healthy": Scenario("nothing is wrong"),
    "efa-down": Scenario("one EFA port of one node is down", (("efa-down", 1),)),
    "xid-79": Scenario("one GPU of one node fell off the bus", (("xid-79", 1),)),
    "unreachable-nodes": Scenario("some nodes do not answer", (("unreachable", 3),)),
    "slow-node": Scenario("one node is slow with every other, and looks well by itself", (("slow-node", 1),)),
    "slow-link": Scenario("two nodes are slow with each other, and with nobody else", (("slow-link", 2),)),
    "cross-az": Scenario("a quarter of the nodes stands in another availability zone", (("other-az", 0.25),)),
    "tcp-fallback": Scenario(
        "no node's libfabric offers efa: everything runs over TCP", (("tcp-fallback", 1.0),)
    ),
    "majority-slow": Scenario(
        "most nodes are slow, so that no comparison shows it", (("majority-slow", 0.7),)
    ),
}

OTHER_AZ = "us-west-2c"
"""Where the nodes with the word `other-az` stand."""


def build(scenario: str, count: int, seed: int) -> dict[str, SimNode]:
    """`count` nodes worker-001.. with the scenario's faults on nodes drawn by `seed`."""
    draw = random.Random(f"{scenario}/{count}/{seed}")  # noqa: S311 - repeatable, not secret
    width = max(3, len(str(count)))
    numbers = list(range(1, count + 1))
    faults: dict[int, set[str]] = {number: set() for number in numbers}
    for word, many in SCENARIOS[scenario].faults:
        carriers = max(1, round(many * count)) if isinstance(many, float) else many
        for number in draw.sample(numbers, min(carriers, count)):
            faults[number].add(word)
    nodes = (
        SimNode(f"worker-{number:0{width}}", number, faults=frozenset(faults[number]), seed=seed)
        for number in numbers
    )
    return {node.id: replace(node, az=OTHER_AZ) if "other-az" in node.faults else node for node in nodes}
