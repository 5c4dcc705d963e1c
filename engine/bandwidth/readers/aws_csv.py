"""The CSV that AWS's sample scripts make of one nccl-tests log (nccl_to_csv.py, called by process_nccl_results.sh).

One row per message size and no host: the pair is in the file's name or nowhere. The script converts complete logs only and turns
a check that was not made (N/A) into 0 errors.
Source: github.com/aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests, read 2026-12-01.
"""

from __future__ import annotations

import csv
from types import MappingProxyType

from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.bandwidth.readers import names
from straggler.engine.bandwidth.readers.nccl_tests import TOOL

_SIZE, _OOP, _IP = "Size_Bytes", "OOP_BusBW_GBps", "IP_BusBW_GBps"
_ERRORS = ("OOP_Errors", "IP_Errors")


def read(text: str, source: str) -> list[Run]:
    lines = text.strip("\n").split("\n")
    header = lines[0].split(",")
    if not {_SIZE, _OOP, *_ERRORS} <= set(header):
        return []
    state, why = RunState.OK, ""
    points: dict[int, float] = {}
    try:
        rows = list(csv.DictReader(lines, strict=True))
        for row in rows:
            if None in row or None in row.values():
                raise ValueError("a row is cut")
            if any(int(row[name]) for name in _ERRORS):
                state, why = RunState.FAILED, "computed wrong results"
            value = float(row[_OOP]) or float(row.get(_IP) or 0)
            if 0 < value < 1e300 and int(row[_SIZE]) > 0:
                points[int(row[_SIZE])] = max(value, points.get(int(row[_SIZE]), 0.0))
    except (ValueError, csv.Error):
        state, why = RunState.TRUNCATED, "a row is not whole"
    if not points and state is RunState.OK:
        state, why = RunState.FAILED, "no row"
    hosts = names.hosts_of(source)
    return [Run(source, TOOL, hosts, state, why, Metric.BUSBW, MappingProxyType(points))]
