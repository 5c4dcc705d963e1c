"""The GPUs of a simulated node as /sys and nvidia-smi (570 driver) show them: warm, busy, and each a little different."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode
from straggler.engine.simcluster.identity import NEURON_CHIPS

ADDRESSES = (
    "0000:53:00.0",
    "0000:64:00.0",
    "0000:75:00.0",
    "0000:86:00.0",
    "0000:97:00.0",
    "0000:a8:00.0",
    "0000:b9:00.0",
    "0000:ca:00.0",
)

NAMES = {"H100": "H100 80GB HBM3", "A100": "A100-SXM4-40GB"}
"""What nvidia-smi calls a GPU, where that is more than its plain name."""

FELL_AGO = 1_320
"""Seconds before the reading at which the GPU of an `xid-79` node fell off the bus: inside the default window."""

HEAD = (
    "index, name, pci.bus_id, driver_version, pstate, temperature.gpu, temperature.memory, mig.mode.current, "
    "ecc.mode.current, pcie.link.width.current, pcie.link.width.max, clocks.current.sm [MHz], clocks.max.sm [MHz], "
    "ecc.errors.corrected.volatile.total, ecc.errors.uncorrected.volatile.total, ecc.errors.corrected.aggregate.total, "
    "ecc.errors.uncorrected.aggregate.total, clocks_event_reasons.hw_slowdown, clocks_event_reasons.hw_thermal_slowdown, "
    "clocks_event_reasons.sw_thermal_slowdown, clocks_event_reasons.hw_power_brake_slowdown, "
    "clocks_event_reasons.sw_power_cap, gpu_recovery_action"
)
ROWS_HEAD = "gpu_bus_id, remapped_rows.correctable, remapped_rows.uncorrectable, remapped_rows.pending, remapped_rows.failure"


def lost_address(node: SimNode) -> str:
    """The GPU that an `xid-79` node lost."""
    return ADDRESSES[node.random("xid-79").randrange(len(ADDRESSES))]


def say(node: SimNode) -> Reply:
    if node.has.accelerator != "nvidia":
        chips = NEURON_CHIPS.get(node.instance_type, 0)
        return Reply(
            "bus read\n"
            + "".join(f"pci 0000:{16 + at:02x}:1e.0 neuron other\n" for at in range(chips))
            + "end\n"
        )
    draw = node.random("gpu")
    lost = lost_address(node) if "xid-79" in node.faults else None
    table, rows = [HEAD], [ROWS_HEAD]
    addresses = ADDRESSES[: node.has.gpus]
    name = f"NVIDIA {NAMES.get(node.has.gpu, node.has.gpu)}"
    for at, address in enumerate(addresses):
        heat, memory, corrected = (
            draw.randrange(46, 68),
            draw.randrange(50, 74),
            draw.choice((0, 0, 0, 0, 1, 3)),
        )
        capped = draw.choice(("Not Active", "Not Active", "Active"))
        clock = 1_980 - 15 * draw.randrange(6)
        if address == lost:
            continue
        bus_id = f"0000{address.upper()}"
        table.append(
            f"{at}, {name}, {bus_id}, 570.172.08, P0, {heat}, {memory}, Disabled, Enabled, 16, 16, "
            f"{clock}, 1980, {corrected}, 0, {corrected + 2}, 0, Not Active, Not Active, Not Active, Not Active, {capped}, None"
        )
        rows.append(f"{bus_id}, 0, 0, 0, 0")
    if lost is not None:
        table.append(f"Unable to determine the device handle for GPU{lost.upper()}: Unknown Error")
        rows.append(f"Unable to determine the device handle for GPU{lost.upper()}: Unknown Error")
    code = 0 if lost is None else 255
    bus = [f"pci {address} nvidia nvidia" for address in addresses]
    lines = [
        "bus read",
        *bus,
        "asked gpus",
        *table,
        f"code {code}",
        "asked rows",
        *rows,
        f"code {code}",
        "end",
    ]
    return Reply("\n".join(lines) + "\n")
