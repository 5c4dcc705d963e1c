"""CPUs that wait for storage, or that the hypervisor takes away, over a sample; not the mean since boot."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import cpu_load
from straggler.engine.collectors.cpu_load import Share
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(cpu_load.COLLECTOR)
    limit, steal = view.known.number("cpu.iowait"), view.known.number("cpu.steal")
    if facts.all.iowait >= limit:
        detail = (
            f"{facts.all.iowait:.0f} % over all {facts.cpus} CPUs; worst {_one(facts.worst_iowait, 'iowait')}"
        )
        yield Verdict("cpu.iowait-high", Level.WARN, "the CPUs wait for storage", detail, confidence=0.8)
    elif facts.worst_iowait.iowait >= limit:
        # One stuck reader among 192 CPUs is half a percent overall: told, not accused.
        detail = f"{_one(facts.worst_iowait, 'iowait')}; all CPUs {facts.all.iowait:.1f} %"
        yield Verdict("cpu.iowait-one", Level.INFO, "a single CPU waits for storage", detail, confidence=0.6)
    else:
        yield Verdict("cpu.iowait-ok", Level.PASS, "the CPUs do not wait for storage")
    if facts.all.steal >= steal:
        detail = f"{facts.all.steal:.0f} % over all {facts.cpus} CPUs"
        yield Verdict(
            "cpu.steal-high", Level.WARN, "the hypervisor takes CPU time away", detail, confidence=0.8
        )


def _one(share: Share, what: str) -> str:
    return f"{share.name} {getattr(share, what):.0f} %"


RULE = Rule(
    id="iowait",
    reads=(cpu_load.COLLECTOR,),
    judge=judge,
    finds=("cpu.iowait-high", "cpu.iowait-one", "cpu.iowait-ok", "cpu.steal-high"),
    unknown="cpu.iowait-ok",
    spec=("B5",),
)
