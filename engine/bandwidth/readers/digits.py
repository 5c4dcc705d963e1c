"""More digits than a table shows: nccl-tests prints bandwidth with two decimals, which below 1 GB/s is no longer a measurement.

The time of the same row has four digits or more, and bandwidth is computed from it (nccl-tests doc/PERFORMANCE.md, read
2026-12-01): size / time, times a factor of the collective. Without this, two equal pairs of a slow network can stand 0.06
beside 0.07.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

COARSE = 1.0
"""GB/s below which half a unit of the last printed digit is more than 0.5 %."""

_HALF_DIGIT = 0.0051

_FACTORS: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {
        "all_reduce": lambda share: 2 * share,
        **dict.fromkeys(("all_gather", "reduce_scatter", "alltoall"), lambda share: share),
        **dict.fromkeys(("broadcast", "reduce", "sendrecv"), lambda share: 1.0),
    }
)
"""By collective: bus over algorithm bandwidth, of (ranks - 1) / ranks."""


def sharp(
    size: int,
    micro: float | None,
    algbw: float | None,
    busbw: float,
    ranks: int | None,
    collective: str | None = None,
) -> float:
    """The bus bandwidth of one row in GB/s, from its time where the printed value is coarse and both agree; else as printed.

    `micro` is the time in µs. Without the collective's name the factor is the one that gives back what was printed; where
    several do, nothing is gained.
    """
    if busbw >= COARSE or not micro or not algbw or not ranks or ranks < 2:
        return busbw
    exact = size / micro / 1e3
    if abs(exact - algbw) > _HALF_DIGIT:
        return busbw
    share = (ranks - 1) / ranks
    named = _FACTORS.get(collective or "")
    factors = {named(share)} if named is not None else {1.0, share, 2 * share}
    fitting = {exact * factor for factor in factors if abs(exact * factor - busbw) <= _HALF_DIGIT}
    return fitting.pop() if len(fitting) == 1 else busbw
