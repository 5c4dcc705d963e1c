"""Two samples of /proc/stat on a node whose CPUs are half busy and wait for nothing."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def say(node: SimNode) -> Reply:
    draw = node.random("cpu-load")
    cpus = node.cpus
    # Eight kinds of CPU, repeated: drawing each of 192 anew made the demo the slowest thing on the screen.
    kinds = [_cpu(draw.randrange(10**6, 10**7), draw.randrange(60, 140)) for _ in range(8)]
    lines = [
        "first",
        *_table([kind[0] for kind in kinds], cpus),
        "second",
        *_table([kind[1] for kind in kinds], cpus),
        "end",
    ]
    return Reply("\n".join(lines) + "\n")


def _cpu(base: int, busy: int) -> tuple[list[int], list[int]]:
    """user nice system idle iowait irq softirq steal guest guest_nice, at two moments 2 s (200 ticks) apart."""
    before = [base, 0, base // 9, 4 * base, base % 977, 0, 900, 0, 0, 0]
    after = [before[0] + busy, 0, before[2] + 4, before[3] + 196 - busy, before[4], 0, 900, 0, 0, 0]
    return before, after


def _table(kinds: list[list[int]], cpus: int) -> list[str]:
    """/proc/stat of `cpus` CPUs of these kinds in turn, the sum of all of them first."""
    many = [len(range(at, cpus, len(kinds))) for at in range(len(kinds))]
    total = [
        sum(count * number for count, number in zip(many, column, strict=True))
        for column in zip(*kinds, strict=True)
    ]
    words = [" ".join(map(str, numbers)) for numbers in kinds]
    return [f"cpu  {' '.join(map(str, total))}", *(f"cpu{at} {words[at % len(kinds)]}" for at in range(cpus))]
