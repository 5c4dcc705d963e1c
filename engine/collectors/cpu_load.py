"""How the CPUs spent two seconds: waiting for disks, stolen by the hypervisor; over all CPUs and on the worst one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

SNIPPET = r"""
if [ ! -r /proc/stat ]; then absent "this node has no /proc/stat"; fi
echo first
grep '^cpu' /proc/stat
sleep 2
echo second
grep '^cpu' /proc/stat
echo end
"""


@dataclass(frozen=True, slots=True)
class Share:
    """Percent of the sample; `name` is `cpu` for all of them together."""

    name: str
    iowait: float
    steal: float


@dataclass(frozen=True, slots=True)
class CpuLoad:
    """`all` over every CPU; `worst_iowait` and `worst_steal` the CPU that waits most."""

    all: Share
    worst_iowait: Share
    worst_steal: Share
    cpus: int


def parse(text: str) -> CpuLoad | Unread:
    lines = text.splitlines()
    if not lines or lines[0] != "first" or lines[-1] != "end" or "second" not in lines:
        return garbled("the reply does not hold two whole samples")
    at = lines.index("second")
    before, after = _sample(lines[1:at]), _sample(lines[at + 1 : -1])
    if before.keys() != after.keys() or "cpu" not in before:
        return garbled("the two samples are not of the same CPUs")
    shares = [_share(name, before[name], after[name]) for name in before]
    known = [one for one in shares if one is not None]
    whole = next((one for one in known if one.name == "cpu"), None)
    if whole is None:
        return garbled("the counters did not move between the samples")
    singles = [one for one in known if one.name != "cpu"] or [whole]
    return CpuLoad(
        whole,
        max(singles, key=lambda one: one.iowait),
        max(singles, key=lambda one: one.steal),
        len(before) - 1,
    )


def _sample(lines: list[str]) -> dict[str, tuple[int, ...]]:
    found = {}
    for line in lines:
        name, *numbers = line.split()
        found[name] = tuple(int(number) for number in numbers)
        if len(numbers) < 8:
            raise ValueError("a line of /proc/stat is short")
    return found


def _share(name: str, before: tuple[int, ...], after: tuple[int, ...]) -> Share | None:
    """user nice system idle iowait irq softirq steal; guest time is inside user. iowait may run backwards: never below 0."""
    deltas = [max(0, late - early) for early, late in zip(before[:8], after[:8], strict=True)]
    total = sum(deltas)
    return Share(name, 100.0 * deltas[4] / total, 100.0 * deltas[7] / total) if total else None


def fields(facts: CpuLoad) -> Mapping[str, str | None]:
    return {"CPUs online": str(facts.cpus)}


COLLECTOR = Collector(
    id="cpu-load",
    what="how much the CPUs wait for disks (iowait) or for the hypervisor (steal), over two seconds",
    snippet=SNIPPET,
    parse=parse,
    commands=("grep", "sleep"),
    fields=fields,
)
