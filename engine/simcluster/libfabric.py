"""`fi_info -p efa` on a simulated node: a reliable and a datagram endpoint for every EFA device, or no such provider."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode
from straggler.engine.simcluster.efa import devices


def say(node: SimNode) -> Reply:
    names = devices(node)
    if not names:
        return Reply("", "fi_info is not installed\n", 120)
    if "tcp-fallback" in node.faults:
        return Reply("fi_info begin\nfi_getinfo: -61 (No data available)\nfi_info end 61\n")
    lines = ["fi_info begin"]
    for name in names:
        for kind, domain in (("RDM", "rdm"), ("DGRAM", "dgrm")):
            lines += [
                "provider: efa",
                "    fabric: efa",
                f"    domain: {name}-{domain}",
                "    version: 201.0",
                f"    type: FI_EP_{kind}",
                "    protocol: FI_PROTO_EFA",
            ]
    return Reply("\n".join([*lines, "fi_info end 0"]) + "\n")
