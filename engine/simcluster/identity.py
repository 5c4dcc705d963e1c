"""Identity of a simulated EC2 instance as IMDS, /proc and the PCI bus would give it."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode

NEURON_CHIPS = {"trn1.32xlarge": 16, "trn1n.32xlarge": 16, "trn2.48xlarge": 16, "inf2.48xlarge": 12}
"""Devices on the PCI bus, by type."""


def uptime(node: SimNode) -> int:
    """Seconds since the node booted, the same for every collector that shows it."""
    return 900_000 + node.random("uptime").randrange(40_000)


def say(node: SimNode) -> Reply:
    boot = node.random("identity").randbytes(16).hex()
    lines = [
        f"hostname ip-10-1-{node.number // 250}-{node.number % 250 + 1}",
        "kernel 6.1.112-124.190.amzn2023.x86_64",
        f"boot_id {boot[:8]}-{boot[8:12]}-{boot[12:16]}-{boot[16:20]}-{boot[20:]}",
        f"uptime {uptime(node)}",
        f"clock {node.now}",
        f"pci_gpus {node.has.gpus}",
        f"pci_neuron {NEURON_CHIPS.get(node.instance_type, 0)}",
        f"instance_type {node.instance_type}",
        f"az {node.az}",
        "end",
    ]
    return Reply("\n".join(lines) + "\n")
