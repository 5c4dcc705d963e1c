"""EFA devices, ports and fi_info of a simulated node, as many as its instance type has."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode

DEVICES = {"p4d.24xlarge": 4, "p5.48xlarge": 32, "p5en.48xlarge": 16, "trn1.32xlarge": 8}


def say(node: SimNode) -> Reply:
    count = DEVICES.get(node.instance_type, 0)
    names = [f"rdmap{79 + 17 * (at // 4)}s{at % 4}" for at in range(count)]
    down = node.random("efa").choice(names) if names and "efa-down" in node.faults else None
    lines = ["module efa 2.13.2g" if count else "module none"]
    for name in names:
        state = "1: DOWN / 3: Disabled" if name == down else "4: ACTIVE / 5: LinkUp"
        lines += [f"device {name} efa 0.0.0.0", f"port {name} 1 {state}"]
    if count:
        lines.append("fi_info begin")
        for name in names:
            for fabric, kind, domain in (("efa", "RDM", "rdm"), ("efa", "DGRAM", "dgrm")):
                lines += [
                    "provider: efa",
                    f"    fabric: {fabric}",
                    f"    domain: {name}-{domain}",
                    "    version: 122.0",
                    f"    type: FI_EP_{kind}",
                    "    protocol: FI_PROTO_EFA",
                ]
        lines.append("fi_info end 0")
    else:
        lines.append("fi_info missing")
    return Reply("\n".join([*lines, "end"]) + "\n")
