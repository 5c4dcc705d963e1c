"""The efa driver's devices and ports on a simulated node, as many as its instance type has."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def devices(node: SimNode) -> list[str]:
    """Named as udev names them, after PCI bus and slot."""
    return [f"rdmap{79 + 17 * (at // 4)}s{at % 4}" for at in range(node.has.efa)]


def say(node: SimNode) -> Reply:
    names = devices(node)
    down = node.random("efa").choice(names) if names and "efa-down" in node.faults else None
    lines = ["module efa 2.13.2g" if names else "module none"]
    for name in names:
        state = "1: DOWN / 3: Disabled" if name == down else "4: ACTIVE / 5: LinkUp"
        lines += [f"device {name} efa 0.0.0.0", f"port {name} 1 {state}"]
    return Reply("\n".join([*lines, "end"]) + "\n")
