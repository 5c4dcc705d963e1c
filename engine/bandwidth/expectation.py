"""How fast a run can be at most, how fast others saw it, and when it is too small to say. Pure; GB/s are 10^9 bytes a second.

**The ceiling.** A node sends and receives at most R = its line rate at a time, each way. What must cross its network cards
takes at least (bytes / R), whatever algorithm, protocol or helpful switch is used; busbw is a fixed factor times size / time
(https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md). With n ranks on k nodes and messages of S bytes:

- all_reduce: the sum depends on every other node's data, so each node takes in at least S. Time ≥ S/R, size/time ≤ R,
  busbw ≤ 2(n-1)/n · R, for two nodes and for any number of them. Two nodes can come near it (a tree sends each byte once),
  which is why busbw of a pair may exceed the line rate. Over more nodes no algorithm of the hosts gets beyond
  (n-1)/n · k/(k-1) · R; but a switch that adds up could, so the wider bound is used: it is never wrong.
- all_gather, reduce_scatter: of S bytes in all, (k-1)/k S must come into (go out of) each node if ranks are spread evenly.
  busbw = (n-1)/n · size/time ≤ (n-1)/n · k/(k-1) · R.
- alltoall: each of a node's n/k ranks sends (k-1)/k of its S bytes out. busbw ≤ (n-1)/n · k²/(n(k-1)) · R.
- sendrecv with one rank per node: everybody's S bytes come over the wire. busbw ≤ R. With more ranks per node only some of
  them use the wire, the others run ahead, and the printed time mixes both: no bound.
- broadcast, reduce, gather, scatter: the rank whose time is printed may be done while data is still in buffers
  (https://github.com/NVIDIA/nccl-tests/issues/82): no bound.

Ranks are known to be spread evenly where all GPUs of all nodes take part, for no node can hold more. On one node the same
argument holds with the NVLinks of one GPU instead of the cards of one node. Nodes that NVLink joins (an UltraServer) need not
use their network cards at all, or may use both: a GPU takes in what its NVLinks and the cards bring, unless the caller knows
that no NVLink joins the nodes.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass

from straggler.engine.errors import UsageError
from straggler.engine.knowledge import Instance, Knowledge, MeasuredBusbw

_EVEN = ("all_gather", "reduce_scatter", "alltoall")


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds of this file. `spread`: percent by which a healthy fleet may differ from what was published; `small`:
    bytes below which a message says nothing of a 400 Gbit/s node; `slack`: percent by which rounding may pass a ceiling."""

    spread: float
    small: float
    slack: float

    @classmethod
    def of(cls, known: Knowledge) -> Limits:
        return cls(
            known.number("bandwidth.expected-spread"),
            known.number("bandwidth.too-small-bytes"),
            known.number("bandwidth.ceiling-slack"),
        )


@dataclass(frozen=True, slots=True)
class Expectation:
    """Where busbw of a healthy run lies, in GB/s. `measured`: the message sizes it was published for (two: in between)."""

    low: float
    high: float
    source: str
    date: datetime.date
    size: int
    nodes: int
    measured: tuple[int, ...]


def line_rate(instance: Instance) -> float:
    """What a node of this type can send, and at the same time receive, in GB/s: the ceiling of a rate between two nodes."""
    return instance.line_gbps / 8


def ceiling(
    instance: Instance | None, ranks: int | None, nodes: int, collective: str | None, *, apart: bool = False
) -> float | None:
    """Busbw no run of this kind can exceed, or None where nothing can be proven (see above).

    `ranks`: of the whole run; None where unknown: then all_reduce has the bound of any number of ranks. `apart`: the nodes
    are known to share no NVLink domain.
    """
    if instance is None or nodes < 1 or (ranks is not None and ranks < max(2, nodes)):
        return None
    if nodes == 1 or (instance.nvlink_nodes > 1 and not apart):
        return _over_nvlink(instance, ranks, collective, line_rate(instance) if nodes > 1 else 0.0)
    rate = line_rate(instance)
    if collective == "all_reduce":
        return _all_reduce(ranks) * rate
    if collective == "sendrecv":
        return rate if ranks == nodes else None
    if collective in _EVEN and ranks is not None and ranks == nodes * instance.gpus:
        spread = (ranks - 1) / ranks * nodes / (nodes - 1)
        return (spread * nodes / ranks if collective == "alltoall" else spread) * rate
    return None


def _over_nvlink(
    instance: Instance, ranks: int | None, collective: str | None, besides: float
) -> float | None:
    """One GPU is to NVLink what one node is to the network: with k = n, the factors above become 1 but for all_reduce."""
    if not instance.nvlink_gbs:
        return None
    if collective == "all_reduce":
        return _all_reduce(ranks) * (instance.nvlink_gbs + besides)
    return instance.nvlink_gbs + besides if collective in (*_EVEN, "sendrecv") else None


def _all_reduce(ranks: int | None) -> float:
    return 2.0 if ranks is None else 2 * (ranks - 1) / ranks


def expected(
    instance: Instance | None,
    collective: str | None,
    nodes: int,
    size: int,
    limits: Limits,
    *,
    ranks: int | None = None,
) -> Expectation | None:
    """What others measured for this type, collective, number of nodes and size, widened by `limits.spread`; None: nobody did.

    Between two published sizes it is interpolated along the logarithm of the size; outside of them nothing is said. The upper
    end never exceeds the ceiling. `ranks`, where known: a run with other than all GPUs of its nodes has no expectation.
    """
    if instance is not None and ranks is not None and ranks != nodes * instance.gpus:
        return None
    rows = [
        one
        for one in (instance.busbw if instance else ())
        if (one.collective, one.nodes) == (collective, nodes)
    ]
    smaller = max((one.size_bytes for one in rows if one.size_bytes <= size), default=None)
    larger = min((one.size_bytes for one in rows if one.size_bytes >= size), default=None)
    if instance is None or smaller is None or larger is None:
        return None
    ends = [[one for one in rows if one.size_bytes == at] for at in sorted({smaller, larger})]
    share = math.log(size / smaller) / math.log(larger / smaller) if larger > smaller else 0.0
    low = _between([min(one.low for one in end) for end in ends], share) * (1 - limits.spread / 100)
    high = _between([max(one.high for one in end) for end in ends], share) * (1 + limits.spread / 100)
    most = ceiling(instance, nodes * instance.gpus, nodes, collective)
    used: list[MeasuredBusbw] = [one for end in ends for one in end]
    return Expectation(
        low=low,
        high=high if most is None else min(high, most),
        source=" and ".join(dict.fromkeys(one.source for one in used)),
        date=min(one.date for one in used),
        size=size,
        nodes=nodes,
        measured=tuple(end[0].size_bytes for end in ends),
    )


def _between(ends: Sequence[float], share: float) -> float:
    return ends[0] + share * (ends[-1] - ends[0])


def smallest_size(instance: Instance | None, nodes: int, limits: Limits) -> float:
    """Bytes below which a run is ruled by latency. It grows with the line rate: a faster wire is full later.

    One node, or a type that is not known, has the size of a 400 Gbit/s node.
    """
    if instance is None or nodes < 2:
        return limits.small
    return limits.small * max(1.0, instance.line_gbps / 400)


def too_small(size: int, instance: Instance | None, nodes: int, limits: Limits) -> bool:
    """Whether GPUs' busbw at this message size says nothing of the bandwidth of node or link."""
    return size < smallest_size(instance, nodes, limits)


def plausible(value: float, most: float | None, limits: Limits) -> bool:
    """Whether a value can be true under its ceiling; where there is none, nothing speaks against it."""
    return 0 <= value < math.inf and (most is None or value <= most * (1 + limits.slack / 100))


def check_limit(limit: float, most: float | None) -> None:
    """Raises UsageError for a limit of the user's that no run could reach: everything would be called slow."""
    if not 0 < limit < math.inf:
        raise UsageError(f"a limit of {limit:g} GB/s is none: give a number above 0")
    if most is not None and limit > most:
        raise UsageError(
            f"a limit of {limit:g} GB/s is more than such a run can ever reach ({most:.0f} GB/s)"
        )
