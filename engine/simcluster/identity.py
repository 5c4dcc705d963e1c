"""Identity of a simulated EC2 instance as IMDS, /proc and the PCI bus would give it."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def say(node: SimNode) -> Reply:
    draw = node.random("identity")
    boot = draw.randbytes(16).hex()
    uptime = 900_000 + draw.randrange(40_000)
    lines = [
        f"hostname ip-10-1-{node.number // 250}-{node.number % 250 + 1}",
        "kernel 6.1.112-124.190.amzn2023.x86_64",
        f"boot_id {boot[:8]}-{boot[8:12]}-{boot[12:16]}-{boot[16:20]}-{boot[20:]}",
        f"uptime {uptime}",
        f"clock {node.now}",
        "pci_gpus 8",
        "pci_neuron 0",
        f"instance_type {node.instance_type}",
        f"az {node.az}",
        "end",
    ]
    return Reply("\n".join(lines) + "\n")
