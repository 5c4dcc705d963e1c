"""The demo's scenarios: which faults the simulated nodes carry. The same seed and size give the same cluster."""

from __future__ import annotations

import random
from dataclasses import dataclass

from straggler.engine.simcluster.base import SimNode


@dataclass(frozen=True, slots=True)
class Scenario:
    """`faults` maps a fault word to how many nodes carry it (a share above 1 is a count)."""

    title: str
    faults: tuple[tuple[str, int], ...] = ()


SCENARIOS = {
    "healthy": Scenario("nothing is wrong"),
    "efa-down": Scenario("one EFA port of one node is down", (("efa-down", 1),)),
    "xid-79": Scenario("one GPU of one node fell off the bus", (("xid-79", 1),)),
    "unreachable-nodes": Scenario("some nodes do not answer", (("unreachable", 3),)),
}


def build(scenario: str, count: int, seed: int) -> dict[str, SimNode]:
    """`count` nodes worker-001.. with the scenario's faults on nodes drawn by `seed`."""
    draw = random.Random(f"{scenario}/{count}/{seed}")  # noqa: S311 - repeatable, not secret
    width = max(3, len(str(count)))
    numbers = list(range(1, count + 1))
    faults: dict[int, set[str]] = {number: set() for number in numbers}
    for word, many in SCENARIOS[scenario].faults:
        for number in draw.sample(numbers, min(many, count)):
            faults[number].add(word)
    nodes = (
        SimNode(f"worker-{number:0{width}}", number, faults=frozenset(faults[number]), seed=seed)
        for number in numbers
    )
    return {node.id: node for node in nodes}
