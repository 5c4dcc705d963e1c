"""Two samples of /proc/stat on a node whose CPUs are half busy and wait for nothing."""

from __future__ import annotations

from straggler.engine.simcluster.base import Reply, SimNode


def say(node: SimNode) -> Reply:
    draw = node.random("cpu-load")
    cpus = 192 if node.instance_type.startswith("p") else 8
    first, second = [], []
    for at in range(cpus):
        base = [draw.randrange(10**6, 10**7) for _ in range(4)] + [draw.randrange(10**3), 0, 900, 0, 0, 0]
        busy = draw.randrange(60, 140)
        later = [base[0] + busy, base[1], base[2] + 4, base[3] + 196 - busy, base[4], 0, base[6], 0, 0, 0]
        first.append((f"cpu{at}", base))
        second.append((f"cpu{at}", later))
    lines = ["first", *_table(first), "second", *_table(second), "end"]
    return Reply("\n".join(lines) + "\n")


def _table(rows: list[tuple[str, list[int]]]) -> list[str]:
    total = [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]
    return [f"{name} {' '.join(map(str, numbers))}" for name, numbers in [("cpu ", total), *rows]]
