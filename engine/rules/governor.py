"""CPUs that clock down when idle feed their GPUs later than their peers do."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import governor
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    """One CPU seen on a wrong governor is enough to warn; to pass, every CPU that has one must show it."""
    wanted = view.known.word("cpu.governor")
    by_cpu = view.read(governor.COLLECTOR).by_cpu
    shown = set(by_cpu.values()) - {"-"}
    if wrong := sorted(shown - {wanted, "?"}):
        cpus = [cpu for cpu, one in by_cpu.items() if one in wrong]
        yield Verdict(
            "cpu.governor",
            Level.WARN,
            f"the CPU governor is not {wanted}",
            f"{', '.join(wrong)} on {len(cpus)} of {len(by_cpu)} CPUs",
            evidence=tuple(f"{cpu} {by_cpu[cpu]}" for cpu in cpus[:3]),
            values={"wanted": wanted},
        )
    elif shown == {wanted}:
        yield Verdict("cpu.governor", Level.PASS, f"every CPU's governor is {wanted}")
    elif shown:
        yield Verdict("cpu.governor", Level.UNKNOWN, "a CPU hides its governor")
    else:
        yield Verdict(
            "cpu.governor", Level.INFO, "no CPU governor: the hypervisor or firmware sets the clock"
        )


RULE = Rule(
    id="cpu-governor",
    reads=(governor.COLLECTOR,),
    judge=judge,
    finds=("cpu.governor",),
    unknown="cpu.governor",
    spec=("A7",),
)
