"""The built-in simulated cluster as a target."""

from __future__ import annotations

import difflib

from straggler.engine.errors import UsageError
from straggler.engine.model import Node, Placement
from straggler.engine.simcluster import HOME_AZ, SimNode
from straggler.engine.simcluster.scenarios import SCENARIOS, build
from straggler.engine.simcluster.sweep import SimulatedSweep
from straggler.engine.targets.base import Target
from straggler.engine.transports.simulated import SimulatedTransport

DEFAULT_SCENARIO = "efa-down"
DEFAULT_NODES = 16
MOST_NODES = 10_000


def demo_target(scenario: str, count: int = DEFAULT_NODES, seed: int = 0, pace: float = 0.0) -> Target:
    """`pace`: seconds a node takes on average, so that a person sees it work. Raises UsageError."""
    if scenario not in SCENARIOS:
        near = difflib.get_close_matches(scenario, SCENARIOS, n=1)
        hint = f"did you mean {near[0]}?" if near else "choose one of: " + " ".join(SCENARIOS)
        raise UsageError(f"unknown demo scenario {scenario!r}; {hint}")
    if not 1 <= count <= MOST_NODES:
        raise UsageError(f"--demo-nodes must be between 1 and {MOST_NODES}, not {count}")
    sims = build(scenario, count, seed)
    nodes = tuple(_node(sim) for sim in sims.values())
    return Target(
        kind="demo",
        title=f"demo {scenario} ({count} simulated nodes)",
        nodes=nodes,
        transport=SimulatedTransport(sims, pace),
        spec={"scenario": scenario, "nodes": count, "seed": seed},
        now=float(next(iter(sims.values())).now),
        results=SimulatedSweep(sims, nodes, seed, pace),
    )


def _node(sim: SimNode) -> Node:
    draw = sim.random("names")
    instance_id = f"i-0{draw.randrange(16**16):016x}"
    address = f"ip-10-1-{sim.number // 250}-{sim.number % 250 + 1}"
    return Node(
        sim.id,
        names=(instance_id, address),
        group="workers",
        instance_type=sim.instance_type,
        placement=_placement(sim),
    )


def _placement(sim: SimNode) -> Placement:
    """Sixteen nodes to a switch, four switches to one above; another zone has a network of its own, from the top."""
    zone = "" if sim.az == HOME_AZ else f"-{sim.az[-1]}"
    return Placement(
        az=sim.az,
        layers=(
            f"nn-1{zone}",
            f"nn-2{zone}-{(sim.number - 1) // 64}",
            f"nn-3{zone}-{(sim.number - 1) // 16}",
        ),
    )
