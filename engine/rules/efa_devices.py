"""Whether the EFA driver is loaded and every EFA device of the instance type is there."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import efa, identity
from straggler.engine.model import Level, Vantage, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(efa.COLLECTOR)
    want = view.instance
    have = len(facts.devices)
    unsure = [name for name, driver in facts.drivers.items() if driver is None]
    if want is not None and want.efa == 0 and not have:
        yield Verdict(
            "efa.devices", Level.INFO, "no EFA, as this instance type has none", str(view.instance_type)
        )
        return
    if not facts.module_seen or unsure:
        yield Verdict(
            "efa.devices", Level.UNKNOWN, "the EFA devices could not all be told from others", _unsure(unsure)
        )
        return
    if facts.drivers and facts.module is None and have == 0 and (want is None or want.efa == 0):
        yield Verdict(
            "efa.devices", Level.INFO, "RDMA devices of other drivers, no EFA", ", ".join(facts.drivers)
        )
    elif want is None:
        known = "no EFA device" if not have else f"{have} EFA devices"
        yield Verdict(
            "efa.devices",
            Level.INFO,
            "how many EFA devices it should have is not known",
            f"{known}, type {view.instance_type or 'unknown'}",
        )
    elif facts.module is None:
        detail = f"0 of {want.efa} EFA devices on {view.instance_type}"
        yield Verdict(
            "efa.module-missing",
            Level.FAIL,
            "the EFA driver is not loaded",
            detail,
            ("module none",),
            also=("rdma.not-found",),
        )
    elif have < want.efa:
        seen = view.vantage in (Vantage.HOST_ROOT, Vantage.HOST_USER)
        title = "fewer EFA devices than the instance type has"
        detail = f"{have} of {want.efa} EFA devices on {view.instance_type}"
        yield Verdict(
            "efa.devices",
            Level.FAIL if seen else Level.UNKNOWN,
            title,
            detail,
            (f"devices: {' '.join(facts.devices) or 'none'}",),
        )
    elif have > want.efa:
        detail = f"{have} EFA devices, {want.efa} expected on {view.instance_type}"
        yield Verdict("efa.devices", Level.INFO, "more EFA devices than expected", detail)
    else:
        yield Verdict("efa.devices", Level.PASS, "every EFA device of the instance type is there")


def _unsure(names: list[str]) -> str:
    return f"driver not readable for {', '.join(names[:4])}" if names else "/sys/module is hidden"


RULE = Rule(
    id="efa-devices",
    reads=(efa.COLLECTOR,),
    uses=(identity.COLLECTOR,),
    judge=judge,
    finds=("efa.devices", "efa.module-missing"),
    unknown="efa.devices",
    spec=("node.efa-module", "node.efa-count"),
)
