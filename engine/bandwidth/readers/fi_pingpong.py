"""libfabric's fi_pingpong and the pingpongs of its fabtests: time of one transfer by size, in µs; lower is better.

The tool prints one row per size and no closing line, and names no host: the pair is in the file's name.
Source: github.com/ofiwg/libfabric util/pingpong.c and fabtests/common/shared.c, read 2026-12-01.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.bandwidth.readers import endings, names

TOOL = "fi_pingpong"

_TITLES = re.compile(r"(?a)\bbytes\s+(?:#sent\s+#ack|iters)\s+total\s+time\s+MB/sec\s+usec/xfer\s+Mxfers/sec")
_ROW = re.compile(
    r"(?a)(?:^|\s)(\d{1,12}(?:\.\d{1,6})?)([kKmMgG]?)\s+\d+(?:\.\d+)?[kKmMgG]?\s+(?:[=+-]?\d+(?:\.\d+)?[kKmMgG]?\s+)?\d+(?:\.\d+)?[kKmMgG]?\s+"
    r"\d+(?:\.\d+)?s\s+\d+(?:\.\d+)?\s+(\d+(?:\.\d+)?)\s+\d+(?:\.\d+)?\s*$"
)
_ERROR = re.compile(r"(?a)^.*\b(?:fi|pp|ft)_\w{1,40}(?:\(\))?: ?-?\d+\b.*$|^.*\[error\].*$", re.MULTILINE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def read(text: str, source: str) -> list[Run]:
    """One run, or none where the text has no table of a pingpong."""
    titles = _TITLES.search(text)
    if not titles and "fi_pingpong" not in text:
        return []
    failed = _ERROR.search(text)
    if not titles and not failed:
        return []
    points: dict[int, float] = {}
    for line in text.split("\n") if text.endswith("\n") else text.split("\n")[:-1]:
        found = _ROW.search(line)
        if found is not None and 0 < float(found[3]) < 1e300:
            size = int(float(found[1]) * _UNITS[found[2].lower()])
            points[size] = min(float(found[3]), points.get(size, float("inf")))
    how, line = endings.sign(text)
    state, why = RunState.OK, ""
    if failed:
        state, why = RunState.FAILED, f"failed: {failed[0].strip()[:300]}"
    elif how:
        state, why = RunState.FAILED, f"{how}: {line}"
    elif not text.endswith("\n"):
        state, why = RunState.TRUNCATED, "its output stops within a line"
    elif not points:
        state, why = RunState.FAILED, "ended without a single result"
    return [
        Run(source, TOOL, names.hosts_of(source), state, why, Metric.LATENCY, MappingProxyType(points)),
    ]
