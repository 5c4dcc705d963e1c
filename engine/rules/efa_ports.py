"""Whether every port of every EFA device is ACTIVE: all of them, not the first."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import efa
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(efa.COLLECTOR)
    ports = facts.efa_ports
    portless = [name for name in facts.devices if all(port.device != name for port in ports)]
    if not facts.devices:
        yield Verdict("efa.ports", Level.INFO, "no EFA port to look at")
        return
    active = sum(port.state == "ACTIVE" for port in ports)
    if down := [port for port in ports if port.state not in ("ACTIVE", None)]:
        states = ", ".join(f"{port.device} {port.state}" for port in down[:3]) + (
            " …" if len(down) > 3 else ""
        )
        yield Verdict(
            "rdma.port-down",
            Level.FAIL,
            "an EFA port is not ACTIVE",
            f"{active} of {len(ports)} ports ACTIVE; {states}",
            tuple(port.line for port in down[:4]),
            values={"device": down[0].device},
        )
    if hidden := [port.device for port in ports if port.state is None] + portless:
        yield Verdict(
            "efa.ports", Level.UNKNOWN, "an EFA port does not show its state", ", ".join(hidden[:4])
        )
    elif not down:
        yield Verdict("efa.ports", Level.PASS, "every EFA port is ACTIVE")


RULE = Rule(
    id="efa-ports",
    reads=(efa.COLLECTOR,),
    judge=judge,
    finds=("rdma.port-down", "efa.ports"),
    unknown="efa.ports",
    spec=("A3",),
)
