"""Two samples of /proc/stat on a node whose CPUs are half busy and wait for nothing."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def say(node: SimNode) -> Reply:
    draw = node.random("cpu-load")
    cpus = node.cpus
    # Eight kinds of CPU, repeated: drawing each of 192 anew made the demo the slowest thing on the screen.
    kinds = [_cpu(draw.randrange(10**6, 10**7), draw.randrange(60, 140)) for _ in range(8)]
    first = [(f"cpu{at}", kinds[at % 8][0]) for at in range(cpus)]
    second = [(f"cpu{at}", kinds[at % 8][1]) for at in range(cpus)]
    lines = ["first", *_table(first), "second", *_table(second), "end"]
    return Reply("\n".join(lines) + "\n")


def _cpu(base: int, busy: int) -> tuple[list[int], list[int]]:
    """user nice system idle iowait irq softirq steal guest guest_nice, at two moments 2 s (200 ticks) apart."""
    before = [base, 0, base // 9, 4 * base, base % 977, 0, 900, 0, 0, 0]
    after = [before[0] + busy, 0, before[2] + 4, before[3] + 196 - busy, before[4], 0, 900, 0, 0, 0]
    return before, after


def _table(rows: list[tuple[str, list[int]]]) -> list[str]:
    total = [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]
    return [f"{name} {' '.join(map(str, numbers))}" for name, numbers in [("cpu ", total), *rows]]
