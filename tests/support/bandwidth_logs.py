"""Logs as nccl-tests prints them, for tests and benchmarks: every column where the tool puts it, values from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

GPU = "NVIDIA H100 80GB HBM3"
PLACES = "out-of-place                       in-place          "


def width(value: float, room: int) -> str:
    """As many decimals as fit."""
    return next(
        (text for digits in (2, 1, 0) if len(text := f"{value:{room}.{digits}f}") <= room), f"{value:.0e}"
    )


def pair_log(
    hosts: Sequence[str],
    *,
    peak: float = 480.0,
    sizes: Sequence[int] = tuple(8 << at for at in range(31)),
    gpus: int = 8,
    seed: int = 0,
    program: str = "all_reduce_perf",
    version: str | None = "2.17.6",
    checked: bool = True,
    closed: bool = True,
    ending: str = "",
) -> str:
    """One run over `hosts`; its bus bandwidth rises to `peak` GB/s. `closed` False: it stops after its last row."""
    noise = random.Random(seed)
    ranks = gpus * len(hosts)
    lines = []
    if version:
        lines += [
            f"# nccl-tests version {version} nccl-headers=22703 nccl-library=22703",
            f"# Collective test starting: {program}",
        ]
    lines += [
        f"# nThread 1 nGpus 1 minBytes {sizes[0]} maxBytes {sizes[-1]} step: 2(factor) warmup iters: 5 iters: 20 "
        f"agg iters: 1 validation: {checked:d} graph: 0",
        "#",
        "# Using devices",
    ]
    for rank in range(ranks):
        host, device = hosts[rank // gpus], rank % gpus
        lines.append(
            f"#  Rank {rank:2d} Group  0 Pid {3491113 + rank:6d} on {host:>10} device {device:2d} [0000:{16 * device + 10:02x}:00] {GPU}"
        )
    lines += [
        "#",
        f"#                                                              {PLACES}",
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ",
    ]
    lines += [_row(size, peak, ranks, noise, "0" if checked else "N/A") for size in sizes]
    if closed:
        lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 112.345 ", "#"]
        lines += [f"# Collective test concluded: {program}", "#", ""] if version else [""]
    return "\n".join(lines) + "\n" + ending


def _row(size: int, peak: float, ranks: int, noise: random.Random, wrong: str) -> str:
    factor = 2 * (ranks - 1) / ranks if ranks > 1 else 0.0
    row = f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}"
    for _ in range(2):
        micro = 30 + size / (peak * 1e3 / (factor or 1.0)) * noise.uniform(1.0, 1.02)
        algbw = size / micro / 1e3
        row += f"  {width(micro, 7):>7}  {width(algbw, 6):>6}  {width(algbw * factor, 6):>6}  {wrong:>6}"
    return row
