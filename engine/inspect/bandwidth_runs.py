"""The other outputs of bandwidth tools, inspected: nccl-tests' JSON, tables of pairs, fi_pingpong and iperf3, as runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from straggler.engine.bandwidth.model import Run, RunState
from straggler.engine.bandwidth.readers import aws_csv, fi_pingpong, iperf3, nccl_json, pairs_csv
from straggler.engine.inspect.model import Kind, Part, Said
from straggler.engine.inspect.words import size
from straggler.engine.model import Level, Verdict

FINDS = ("nccl-tests.incomplete", "nccl-tests.wrong-results", "nccl-tests.no-rows")

_SHOWN = 8
"""Runs told one by one in text; JSON has them all."""

Reader = Callable[[str, str], list[Run]]


def _kind(name: str, reader: Reader, finds: tuple[str, ...] = ()) -> Kind:
    def read(text: str, source: str) -> tuple[Part, ...]:
        runs = reader(text, source)
        if not runs:
            return ()
        said = tuple(_said(runs)) if finds else ()
        last = max(1, text.rstrip("\n").count("\n") + 1)
        return (Part(name, 1, last, {"runs": [as_json(run) for run in runs]}, said, _gist(runs)),)

    return Kind(name, lambda text: bool(reader(text, "")), read, finds)


def as_json(run: Run) -> dict[str, Any]:
    """One run under the names scripts know; `points` are pairs of message size in bytes and value in `unit`."""
    return {
        "hosts": list(run.hosts),
        "state": run.state.value,
        "why": run.why,
        "unit": run.metric.value,
        "points": [[bytes_, value] for bytes_, value in run.points.items()],
        "collective": run.collective,
        "ranks": run.ranks,
        "directed": run.directed,
    }


def _gist(runs: list[Run]) -> str:
    bad = sum(run.state is not RunState.OK for run in runs)
    lead = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    told = "; ".join(_told(run) for run in runs[:_SHOWN])
    more = f"; and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return f"{lead}, {bad} without a good end: {told}{more}" if bad else f"{lead}: {told}{more}"


def _told(run: Run) -> str:
    who = (" to " if run.directed else " and ").join(run.hosts[:4]) or "hosts not named"
    if run.state is not RunState.OK or not run.points:
        return f"{who} {run.state.value}" + (f" ({run.why})" if run.why else "")
    largest = max(run.points)
    at = f" at {size(largest)}" if largest else ""
    return f"{who} {run.points[largest]:.4g} {run.metric.value}{at}"


def _said(runs: list[Run]) -> Iterator[Said]:
    for run in runs:
        if run.state is RunState.TRUNCATED:
            title = "The output stops before its closing lines"
            yield Said(Verdict("nccl-tests.incomplete", Level.WARN, title, run.why), (), run.hosts)
        elif run.why == nccl_json.WRONG:
            title = "Results were wrong: data arrived that was not what was sent"
            yield Said(Verdict("nccl-tests.wrong-results", Level.FAIL, title), (), run.hosts)
        elif run.state is RunState.FAILED and not run.points:
            title = "Not one message size was measured"
            yield Said(Verdict("nccl-tests.no-rows", Level.WARN, title, run.why), (), run.hosts)


KINDS: tuple[Kind, ...] = (
    _kind("nccl-tests-json", nccl_json.read, FINDS),
    _kind("nccl-tests-csv", aws_csv.read, FINDS),
    _kind("iperf3", iperf3.read),
    _kind("fi-pingpong", fi_pingpong.read),
    _kind("pairs-csv", pairs_csv.read),
)
