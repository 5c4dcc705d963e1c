"""nccl-tests' own JSON (`-J FILE`, from version 2.17): one document per run.

Shape: config (with devices, one entry per process), results (size, out_of_place and in_place with bus_bw and nwrong), out_of_bounds,
errors, end_time. It also holds the whole environment, which is not looked at.
Source: github.com/NVIDIA/nccl-tests src/util.cu (file version 3), read 2026-12-01.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from straggler.engine.bandwidth.model import NO_POINTS, Metric, Run, RunState
from straggler.engine.bandwidth.readers import names
from straggler.engine.bandwidth.readers.nccl_tests import TOOL

WRONG = "computed wrong results"

_BEGINS = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"')
_HOST = re.compile(r'"hostname"\s*:\s*"([^"\\\s]{1,255})"')
_PROGRAM = re.compile(r"(\w+?)_perf")


def read(text: str, source: str) -> list[Run]:
    """One run, or none where the text is no such document. A document that is cut is a truncated run."""
    if not _BEGINS.match(text):
        return []
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        hosts = names.settle(tuple(dict.fromkeys(_HOST.findall(text))), (), source, whole=False)
        return [Run(source, TOOL, hosts, RunState.TRUNCATED, "its JSON stops before its end")]
    return [_run(given, source)] if isinstance(given, dict) else []


def _run(given: dict[str, Any], source: str) -> Run:
    config = _object(given.get("config"))
    devices = [_object(one) for one in _list(config.get("devices"))]
    listed = [host for one in devices if isinstance(host := one.get("hostname"), str) and host]
    results = [_object(one) for one in _list(given.get("results"))]
    state, why = _state(given, results)
    cpu_time = any("cpu_time" in _object(row.get("out_of_place")) for row in results)
    if cpu_time and state is RunState.OK:
        state, why = RunState.IMPLAUSIBLE, "measured the CPU's time (-C), which says nothing about the wire"
    per_process = _whole(config.get("nthreads"), 1) * _whole(config.get("ngpus"), 1)
    return Run(
        source=source,
        tool=TOOL,
        hosts=names.settle(tuple(dict.fromkeys(listed)), (), source, whole=state is RunState.OK),
        state=state,
        why=why,
        metric=Metric.BUSBW,
        points=NO_POINTS if cpu_time else MappingProxyType(_points(results)),
        collective=_collective(given.get("args")),
        ranks=len(devices) * per_process or None,
    )


def _state(given: dict[str, Any], results: list[dict[str, Any]]) -> tuple[RunState, str]:
    bounds = _object(given.get("out_of_bounds"))
    wrong = [
        cell.get("nwrong")
        for row in results
        for cell in (_object(row.get("out_of_place")), _object(row.get("in_place")))
    ]
    if _number(bounds.get("count")) or bounds.get("okay") == "false" or any(_number(one) for one in wrong):
        return RunState.FAILED, WRONG
    errors = [one for one in _list(given.get("errors")) if isinstance(one, str) and one.strip()]
    if not bounds or "end_time" not in given:
        if errors:
            return RunState.FAILED, f"failed in NCCL: {errors[0]}"
        if not results:
            return RunState.FAILED, "ended or was cut before its first result"
        return RunState.TRUNCATED, "its output stops before its closing fields"
    if not results:
        return RunState.FAILED, "ended without a single result"
    return RunState.OK, f"nccl-tests printed an error: {errors[0]}" if errors else ""


def _points(results: list[dict[str, Any]]) -> dict[int, float]:
    best: dict[int, float] = {}
    for row in results:
        size = _whole(row.get("size"), 0)
        value = next(_values(row), 0.0)
        if size and value > best.get(size, 0.0):
            best[size] = value
    return best


def _values(row: dict[str, Any]) -> Iterator[float]:
    """Bus bandwidth out of place, then in place, whichever is there."""
    for place in ("out_of_place", "in_place"):
        value = _number(_object(row.get(place)).get("bus_bw"))
        if value is not None:
            yield value


def _collective(args: object) -> str | None:
    words = _list(args)
    found = _PROGRAM.match(words[0].rpartition("/")[2]) if words and isinstance(words[0], str) else None
    return found[1] if found else None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float | None:
    """A finite number, or None: text, true and NaN are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return None
    return float(value) if math.isfinite(value) else None


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise
