"""What `all_reduce_perf` of nccl-tests 2.19.6 prints on simulated nodes, started by Open MPI 4.1 with NCCL_DEBUG=INFO.

The table is built as the tool builds it (src/util.cu of https://github.com/NVIDIA/nccl-tests, read 2026-12-01), so that the same
reader takes it. Of NCCL's own lines only those about its network are there.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from straggler.engine.simcluster import fabric
from straggler.engine.simcluster.fabric import SIZES, Network
from straggler.engine.simcluster.gpu import ADDRESSES, NAMES

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Round
    from straggler.engine.simcluster.base import SimNode

PROGRAM = "all_reduce_perf"
VERSION, NCCL = "2.19.6", "2.26.5"
NCCL_CODE = 22605

ROUND_SECONDS = 90
"""From one round to the next on the simulated clock: the timestamps of NCCL's warnings."""

RULE = "-" * 74
LAUNCH_FAILED = """\
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
  settings, or configure OMPI with --enable-orterun-prefix-by-default

* lack of authority to execute on one or more specified nodes.
  Please verify your allocation and authorities.

* the inability to write startup files into /tmp (--tmpdir/orte_tmpdir_base).
  Please check with your sys admin to determine the correct location to use.

*  compilation of the orted with dynamic libraries when static are required
  (e.g., on Cray). Please check your configure cmd line and consider using
  one of the contrib/platform definitions for your system type.

* an inability to create a connection back to mpirun due to a
  lack of common network interfaces and/or no route found between
  them. Please check network connectivity (including firewalls
  and network routing requirements)."""
ABORTED = """\
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted."""
EXITED = """\
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:
"""


def runs(sims: Mapping[str, SimNode], rounds: Iterable[Round]) -> Iterator[tuple[str, str]]:
    """(file name, its text) of every run of these rounds, one after the other as they are asked for.

    `round-00/A.txt` is a node alone, `round-01/A__B.txt` a pair. KeyError: a round names a node that is not there.
    ValueError: a run over more than two nodes, which this fabric has no figures for.
    """
    for one in rounds:
        for member in one.members:
            nodes = [sims[name] for name in dict.fromkeys(member)]
            yield f"round-{one.number:02}/{'__'.join(node.id for node in nodes)}.txt", log(nodes, one.number)


def log(nodes: list[SimNode], number: int) -> str:
    """The output of the run over one node (its GPUs in one process) or two (a process for each GPU) in that round."""
    if not 1 <= len(nodes) <= 2:
        raise ValueError(f"a run is over one node or two, not {len(nodes)}")
    for node in nodes:
        if fabric.broken(node) == "unreachable":
            return _not_started(node)
    alone = len(nodes) == 1
    draw = nodes[0].random(f"nccl-tests/{number}/{nodes[-1].id}")
    ranks = _ranks(nodes, draw, one_process=alone)
    lines = [
        f"# nccl-tests version {VERSION} nccl-headers={NCCL_CODE} nccl-library={NCCL_CODE}",
        f"# Collective test starting: {PROGRAM}",
        f"# nThread 1 nGpus {len(ranks) if alone else 1} minBytes {SIZES[0]} maxBytes {SIZES[-1]} step: 2(factor) "
        "warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0",
        "#",
        "# Using devices",
        *(rank.line(at) for at, rank in enumerate(ranks)),
        f"NCCL version {NCCL}+cuda12.8",
    ]
    for node in nodes:
        if fabric.broken(node) is not None:
            return _said([*lines, *_failed(node, ranks, draw)])
    began = datetime.fromtimestamp(nodes[0].now + ROUND_SECONDS * number, timezone.utc) + timedelta(seconds=3)
    taken = fabric.network(nodes[0], nodes[-1])
    for rank in ranks:
        lines += rank.network(taken, began)
    table = fabric.rows(nodes[0], nodes[-1], number)
    return _said([*lines, *_table(table, len(ranks))])


class _Rank:
    """One GPU of a run. `pid` and `tid`: its process and the thread NCCL logs from."""

    __slots__ = ("device", "node", "pid", "tid")

    def __init__(self, node: SimNode, device: int, pid: int, tid: int) -> None:
        self.node, self.device, self.pid, self.tid = node, device, pid, tid

    def line(self, at: int) -> str:
        gpu = self.node.has.gpu
        return (
            f"#  Rank {at:2d} Group {0:2d} Pid {self.pid:6d} on {self.node.id:>10} device {self.device:2d} "
            f"[{ADDRESSES[self.device][:-2]}] NVIDIA {NAMES.get(gpu, gpu)}"
        )

    def network(self, taken: Network, began: datetime) -> list[str]:
        """NCCL's lines on the network it takes; a warning has an empty line before it and the time, as NCCL prints them."""
        info = f"{self.node.id}:{self.pid}:{self.tid} [{self.device}] NCCL INFO "
        if taken is Network.EFA:
            count = self.node.has.efa
            return [
                f"{info}NET/OFI Initializing aws-ofi-nccl 1.16.2",
                f"{info}NET/OFI Selected provider is efa, fabric is efa (found {count} nics)",
                f"{info}Using network Libfabric",
            ]
        address = f"10.1.{self.node.number // 250}.{self.node.number % 250 + 1}"
        sockets = [f"{info}NET/Socket : Using [0]ens32:{address}<0>", f"{info}Using network Socket"]
        if taken is Network.OTHER_ZONE:
            return [f"{info}NCCL_NET set by environment to Socket.", *sockets]
        prefix = f"[{began:%Y-%m-%d %H:%M:%S}] {self.node.id}:{self.pid}:{self.tid} [{self.device}] "
        warnings = (
            "nccl_net_ofi_rdma_init:7978 NCCL WARN NET/OFI OFI fi_getinfo() call failed: No data available",
            "nccl_net_ofi_create_plugin:218 NCCL WARN NET/OFI Failed to initialize rdma protocol",
            "nccl_net_ofi_create_plugin:335 NCCL WARN NET/OFI aws-ofi-nccl initialization failed",
            "nccl_net_ofi_init:155 NCCL WARN NET/OFI Initializing plugin failed",
        )
        said = [line for warning in warnings for line in ("", prefix + warning)]
        return [
            f"{info}NET/OFI Initializing aws-ofi-nccl 1.16.2",
            *said,
            f"{info}NET/IB : No device found.",
            *sockets,
        ]


def _ranks(nodes: list[SimNode], draw: random.Random, one_process: bool) -> list[_Rank]:
    ranks = []
    for node in nodes:
        pid = draw.randrange(20_000, 900_000)
        for device in range(node.has.gpus):
            own = pid if one_process else pid + device
            ranks.append(_Rank(node, device, own, pid + 64 + 7 * device))
    return ranks


def _failed(node: SimNode, ranks: list[_Rank], draw: random.Random) -> list[str]:
    """A GPU of `node` is gone: the communicator is not made. Line numbers are those of src/common.cu in this version."""
    own = [at for at, rank in enumerate(ranks) if rank.node is node]
    at = draw.choice(own)
    pid = ranks[at].pid
    lines = [
        f"{node.id}: Test NCCL failure common.cu:222 "
        "'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '",
        f" .. {node.id} pid {pid}: Test failure common.cu:1620",
        f" .. {node.id} pid {pid}: Test failure common.cu:1454",
    ]
    if len(own) == len(ranks):
        return lines
    job = draw.randrange(1_000, 60_000)
    process = [f"  Process name: [[{job},1],{at}]", "  Exit code:    3"]
    return [*lines, RULE, ABORTED, RULE, RULE, EXITED, *process, RULE]


def _not_started(node: SimNode) -> str:
    return _said([f"ssh: connect to host {node.id} port 22: No route to host", RULE, LAUNCH_FAILED, RULE])


def _table(table: list[tuple[int, float, float]], ranks: int) -> list[str]:
    blank = f"# {'':>10}  {'':>12}  {'':>8}  {'':>6}  {'':>6}"
    names = ("time", "algbw", "busbw", "#wrong")
    units = ("(us)", "(GB/s)", "(GB/s)", "")
    lines = [
        "#",
        f"{blank}           out-of-place                       in-place          ",
        _heading(("size", "count", "type", "redop", "root"), names),
        _heading(("(B)", "(elements)", "", "", ""), units),
    ]
    for size, out_of_place, in_place in table:
        cells = _cells(size, out_of_place, ranks) + _cells(size, in_place, ranks)
        lines.append(f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}{cells}")
    average = sum(row[1] + row[2] for row in table) / (2 * len(table))
    return [
        *lines,
        f"# {'Out of bounds values':<20} : 0 OK",
        f"# {'Avg bus bandwidth':<20} : {average:g} ",
        "#",
        f"# Collective test concluded: {PROGRAM}",
        "#",
        "",
    ]


def _heading(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    size, count, kind, redop, root = left
    cells = "".join(f"  {right[0]:>7}  {right[1]:>6}  {right[2]:>6}  {right[3]:>6}" for _ in range(2))
    return f"# {size:>10}  {count:>12}  {kind:>8}  {redop:>6}  {root:>6}{cells} "


def _cells(size: int, busbw: float, ranks: int) -> str:
    algbw = busbw * ranks / (2 * (ranks - 1))
    return f"  {_float(size / algbw / 1000.0, 7)}  {_float(algbw, 6)}  {_float(busbw, 6)}  {0:6g}"


def _float(value: float, width: int) -> str:
    """As many decimals, two at most, as the width leaves room for."""
    for decimals in (2, 1):
        if len(text := f"{value:{width}.{decimals}f}") <= width:
            return text
    return f"{value:{width}.0f}"


def _said(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
