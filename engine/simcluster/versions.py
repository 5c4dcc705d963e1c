"""The software stack of a simulated node."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def say(node: SimNode) -> Reply:
    nvidia = node.has.accelerator == "nvidia"
    driver = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build  (dvs-builder@U16-I3-B03-4-2)"
    efa = node.has.efa > 0
    lines = [
        f"driver {driver}" if nvidia else "driver -",
        'cuda       "version" : "12.8.1"' if nvidia else "cuda -",
        "efa_installer # EFA installer version: 1.43.2" if efa else "efa_installer -",
        "libfabric libfabric-aws-2.1.0amzn5.0" if efa else "libfabric -",
        "ofi libnccl-ofi-1.16.2-1" if efa else "ofi -",
        "efa_module 2.13.2g" if efa else "efa_module -",
        "nccl libnccl.so.2.26.5" if nvidia else "nccl -",
        "container_toolkit 1.17.8" if nvidia else "container_toolkit -",
        'os "Amazon Linux 2023.7.20250512"',
        "end .",
    ]
    return Reply("\n".join(lines) + "\n")
