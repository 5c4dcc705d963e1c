"""CPU governors: every CPU of a node on `performance`."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def say(node: SimNode) -> Reply:
    word = "powersave" if "powersave" in node.faults else "performance"
    return Reply("".join(f"cpu{at} {word}\n" for at in sorted(range(node.cpus), key=str)) + "end\n")
