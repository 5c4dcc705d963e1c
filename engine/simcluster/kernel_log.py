"""The kernel log of a simulated node: what the driver prints while booting and, on a faulty node, the Xid lines.

Times are `first boot line + seconds since boot` in dmesg and Unix time in the journal, as the real tools print them.
"""

from __future__ import annotations

from straggler.engine.simcluster import gpu
from straggler.engine.simcluster.base import Reply, SimNode

DRIVER = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build  (dvs-builder@U22-I3-AE18-09-6)"


def messages(node: SimNode, uptime: int) -> list[tuple[float, str]]:
    """(seconds since boot, text) of every message of interest."""
    draw = node.random("kernel_log")
    said = [
        (9.1 + draw.random(), DRIVER),
        (10.2 + draw.random(), "nvidia-nvlink: Nvlink Core is being initialized, major device number 240"),
        (14.8 + draw.random(), "efa 0000:4f:00.0 rdmap79s0: Setup irq:62 name:efa-comp0@pci:0000:4f:00.0"),
    ]
    has = {"NVRM:": node.has.gpus > 0, "nvidia-nvlink:": node.has.gpus > 0, "efa": node.has.efa > 0}
    said = [one for one in said if has[one[1].split()[0]]]
    if "xid-79" in node.faults:
        at = uptime - gpu.FELL_AGO - draw.random()
        address = gpu.lost_address(node)
        pid = 30_000 + draw.randrange(9_000)
        said += [
            (
                at,
                f"NVRM: GPU at PCI:{address[:-2]}: GPU-{draw.randbytes(4).hex()}-4f1c-9b1e-52d1-1c7fe0a43b5e",
            ),
            (at, f"NVRM: Xid (PCI:{address[:-2]}): 79, pid={pid}, name=python3, GPU has fallen off the bus."),
            (at + 0.002, f"NVRM: GPU {address}: GPU has fallen off the bus."),
            (
                at + 0.9,
                f"NVRM: Xid (PCI:{address[:-2]}): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
            ),
        ]
    return said


def say(node: SimNode) -> Reply:
    from straggler.engine.simcluster import identity

    uptime = identity.uptime(node)
    boot = node.now - uptime
    said = messages(node, uptime)
    first = "Linux version 6.1.112-124.190.amzn2023.x86_64 (mockbuild@ip-10-0-38-29) (gcc 11.4.1) #1 SMP PREEMPT_DYNAMIC"
    host = f"ip-10-1-{node.number // 250}-{node.number % 250 + 1}"
    ring = [f"first [    0.000000] {first}", *(f"[{at:12.6f}] {text}" for at, text in said)]
    journal = [
        f"first {boot + 0.4:.6f} {host} kernel: {first}",
        *(f"{boot + at:.6f} {host} kernel: {text}" for at, text in said),
    ]
    lines = [
        f"clock {node.now} {uptime}",
        "from dmesg",
        *ring,
        "ended",
        "from journal 0",
        *journal,
        "ended",
        "from journal -1",
        "first Data from the specified boot (-1) is not available: No such boot ID in journal",
        "failed 1",
        "ended",
        "end",
    ]
    return Reply("\n".join(line[:300] for line in lines) + "\n")
