"""What runs between simulated nodes would reach: a pair is as fast as the slowest of its two nodes and the way between them.

Only the words in `SimNode.faults`, the node's place and the number of the round decide. Bandwidth is bus bandwidth in GB/s
(10^9 bytes a second), message sizes are bytes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from straggler.engine.simcluster.base import SimNode

MIB = 1024 * 1024

PAIR_GBS = {
    8 * MIB: 76.80,
    16 * MIB: 105.52,
    32 * MIB: 143.09,
    64 * MIB: 209.19,
    128 * MIB: 289.16,
    256 * MIB: 342.81,
    512 * MIB: 393.34,
    1024 * MIB: 436.95,
    2048 * MIB: 443.72,
    4096 * MIB: 465.87,
    8192 * MIB: 479.28,
}
"""All-reduce over two p5.48xlarge, all 16 GPUs, as published (micro-benchmarks/nccl-tests/README.md of
https://github.com/awslabs/awsome-distributed-ai, read 2026-12-01). Types with another line rate are taken in proportion."""

ALONE_GBS = {
    8 * MIB: 131.0,
    16 * MIB: 193.0,
    32 * MIB: 254.0,
    64 * MIB: 317.0,
    128 * MIB: 372.0,
    256 * MIB: 415.0,
    512 * MIB: 443.0,
    1024 * MIB: 460.0,
    2048 * MIB: 471.0,
    4096 * MIB: 477.0,
    8192 * MIB: 480.0,
}
"""All-reduce over the eight GPUs of one p5.48xlarge with NVLink SHARP: 480 GB/s at the top
(https://github.com/NVIDIA/nccl/issues/1442, read 2026-12-01), the way up to it our own drawing."""

NVLINK_SHARE = {"ampere": 0.48, "hopper": 1.0, "blackwell": 1.76}
"""NVLink of a generation beside Hopper's: 231 GB/s on A100 (https://github.com/NVIDIA/nccl/issues/527); Blackwell's
is our own estimate. Other generations have no NVLink to ask for: KeyError."""

SIZES = tuple(PAIR_GBS)
TOP = SIZES[-1]

P5_LINE_GBPS = 3200
TCP_GBS = 6.8
"""What NCCL's sockets carry over one 100 Gbit/s network card between nodes of one zone; between two zones a tenth less.
Our own estimate."""

NOISE, SPREAD = 0.02, 0.004
"""Standard deviation from run to run, and between healthy nodes."""


class Network(str, Enum):
    """Which of its networks NCCL takes for a run, and for a socket, why."""

    EFA = "efa"
    NO_PROVIDER = "sockets: libfabric offers no efa provider"
    OTHER_ZONE = "sockets: EFA's traffic does not leave its availability zone"


def broken(node: SimNode) -> str | None:
    """The fault that keeps any run with this node from starting."""
    return next((word for word in ("unreachable", "xid-79") if word in node.faults), None)


def network(one: SimNode, other: SimNode) -> Network:
    if "tcp-fallback" in one.faults or "tcp-fallback" in other.faults:
        return Network.NO_PROVIDER
    # A job across zones cannot use EFA at all (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html): such runs are
    # started with NCCL_NET=Socket, as EFA would not reach the other node.
    return Network.EFA if one.az == other.az else Network.OTHER_ZONE


@lru_cache(maxsize=16_384)  # Asked for every pair of a matrix: half of the time otherwise.
def capability(node: SimNode) -> float:
    """How much of its type's network bandwidth a node has, 1.0 = all of it."""
    share = 1.0 - abs(node.random("fabric").gauss(0.0, SPREAD))
    if "efa-down" in node.faults:
        share *= 1.0 - 1.0 / node.has.efa
    if "slow-node" in node.faults:
        share *= 1.0 - node.random("slow-node").uniform(0.25, 0.35)
    if "majority-slow" in node.faults:
        share *= 1.0 - node.random("majority-slow").uniform(0.20, 0.40)
    return share


def link(one: SimNode, other: SimNode) -> float:
    """What the way between two nodes lets through, whatever these could do with others."""
    if "slow-link" in one.faults and "slow-link" in other.faults:
        return 1.0 - _draw(one, other, "link").uniform(0.35, 0.50)
    return 1.0


def value(one: SimNode, other: SimNode, number: int, size: int = TOP) -> float | None:
    """GB/s of a pair in that round, out of place; None where the run fails. Which node is named first changes nothing."""
    if broken(one) or broken(other):
        return None
    return _pair(one, other, size, _noise(_draw(one, other, number)))


def alone(node: SimNode, number: int, size: int = TOP) -> float | None:
    """GB/s of a node's own GPUs, no network in it; None where the run fails."""
    if broken(node):
        return None
    return _alone(node, size, _noise(_draw(node, node, number)))


def rows(one: SimNode, other: SimNode, number: int) -> list[tuple[int, float, float]]:
    """(size, GB/s out of place, GB/s in place) for every size; `one` is `other`: the node alone. The run must not be broken."""
    draw = _draw(one, other, number)
    noise = _noise(draw)
    table = []
    for size in SIZES:
        middle = _alone(one, size, noise) if one is other else _pair(one, other, size, noise)
        first = middle if size == TOP else middle * _noise(draw, NOISE / 6)
        table.append((size, first, middle * _noise(draw, NOISE / 8)))
    return table


def _draw(one: SimNode, other: SimNode, subject: object) -> random.Random:
    low, high = sorted((one.id, other.id))
    return random.Random(f"{one.seed}/{low}/{high}/{subject}")  # noqa: S311 - repeatable, not secret


def _noise(draw: random.Random, width: float = NOISE) -> float:
    return math.exp(draw.gauss(0.0, width))


def _pair(one: SimNode, other: SimNode, size: int, noise: float) -> float:
    taken = network(one, other)
    if taken is Network.EFA:
        share = min(capability(one), capability(other), link(one, other)) * noise
        return _slowed(PAIR_GBS, size, share) * one.has.line_gbps / P5_LINE_GBPS
    share = TCP_GBS / PAIR_GBS[TOP] * (0.9 if taken is Network.OTHER_ZONE else 1.0)
    return _slowed(PAIR_GBS, size, share * noise)


def _alone(node: SimNode, size: int, noise: float) -> float:
    share = (1.0 - abs(node.random("nvlink").gauss(0.0, SPREAD / 2))) * noise
    return _slowed(ALONE_GBS, size, share) * NVLINK_SHARE[node.has.generation]


def _slowed(whole: Mapping[int, float], size: int, share: float) -> float:
    """What is left of `whole` with that share of the wire. Half of what the smallest message takes is latency, which no
    wire makes shorter: a slow one shows less the smaller the message."""
    start = SIZES[0] / whole[SIZES[0]] / 2
    return size / (start + (size / whole[size] - start) / share)
