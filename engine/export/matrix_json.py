"""The matrix as JSON, schema 1 of the command-line contract. Scripts depend on every name here; no number in it is NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.matrix import STATES, Matrix
from straggler.engine.bandwidth.model import Blame, Run
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.safetext import safe


def render(view: MatrixView) -> str:
    """One JSON document and a newline, a line per pair. File text is escaped by JSON and neutralised besides."""
    whole = document(view)
    encode = json.JSONEncoder(allow_nan=False).encode
    lines = ",\n  ".join(map(encode, whole["pairs"]))
    parts = [
        f'"pairs": [\n  {lines}\n ]' if name == "pairs" and lines else f'"{name}": {_indented(value)}'
        for name, value in whole.items()
    ]
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def _indented(value: object) -> str:
    return json.dumps(value, indent=1, allow_nan=False).replace("\n", "\n ")


def document(view: MatrixView) -> dict[str, Any]:
    matrix, found = view.matrix, view.attribution
    names = [safe(name) for name in matrix.nodes]
    return {
        "schema": 1,
        "metric": matrix.metric.value,
        "lower_is_better": matrix.metric.lower_is_better,
        "collective": None if matrix.collective is None else safe(matrix.collective),
        "size_bytes": matrix.size or None,
        "nodes": names,
        "pairs": _pairs(matrix, names),
        **_middle(view),
        "verdicts": [_verdict(one) for one in found.verdicts],
        "doubts": [
            {"pair": [safe(name) for name in one.pair], "effect": number(one.effect), "why": safe(one.why)}
            for one in found.doubts
        ],
        "below_mean": [[safe(one), safe(other)] for one, other in found.below_mean],
        "standings": {safe(name): standing.value for name, standing in found.standings.items()},
        "scores": {safe(name): number(score) for name, score in found.scores.items()},
        "alone": _alone(matrix, names),
        "groups": [_group(run) for run in matrix.groups],
        "expected": {
            "low": number(view.expected.low),
            "high": number(view.expected.high),
            "what": safe(view.expected.what),
            "source": safe(view.expected.source),
        },
        "ceiling": number(view.expected.ceiling),
        "earlier": None
        if view.earlier is None
        else {
            "source": safe(view.earlier.session),
            "usual": number(view.earlier.usual),
            "change": number(telling.since(view)),
        },
        "notes": [safe(note) for note in dict.fromkeys((*matrix.notes, *found.notes))],
        "settled": found.settled,
    }


def number(value: float | None) -> float | None:
    """Six digits tell any two runs apart; what is no finite number is null."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")


def _middle(view: MatrixView) -> dict[str, float | None]:
    """A latency has names of its own: nothing that is called GB/s is ever µs."""
    median, mean = number(view.attribution.median), number(view.attribution.mean)
    if view.matrix.metric.lower_is_better:
        return {"median_gbs": None, "mean_gbs": None, "median_us": median, "mean_us": mean}
    return {"median_gbs": median, "mean_gbs": mean}


def _pairs(matrix: Matrix, names: Sequence[str]) -> list[dict[str, Any]]:
    states = [STATES[code].value for code in matrix.state.tolist()]
    columns = (matrix.a, matrix.b, matrix.value, matrix.runs)
    latency = matrix.metric.lower_is_better
    pairs = []
    for a, b, value, runs, state in zip(*(column.tolist() for column in columns), states, strict=True):
        shown = number(value) if state == "ok" else None
        own = {"busbw_gbs": None, "latency_us": shown} if latency else {"busbw_gbs": shown}
        pairs.append({"a": names[a], "b": names[b], **own, "status": state, "runs": runs})
    return pairs


def _verdict(one: Blame) -> dict[str, Any]:
    return {
        "kind": one.kind.value,
        "subjects": [safe(name) for name in one.subjects],
        "effect": number(one.effect),
        "confidence": round(one.confidence, 3),
        "why": safe(one.why),
        "next_pair": None if one.next_pair is None else [safe(name) for name in one.next_pair],
        "slow": one.slow,
        "of": one.of,
        "alone": one.alone,
        "evidence": [safe(line) for line in one.evidence],
    }


def _alone(matrix: Matrix, names: Sequence[str]) -> dict[str, Any]:
    return {
        "size_bytes": matrix.alone_size or None,
        "nodes": [
            {
                "node": names[at],
                "value": number(float(matrix.alone[at])),
                "status": STATES[int(matrix.alone_state[at])].value,
                "runs": int(matrix.alone_runs[at]),
            }
            for at in range(len(names))
            if matrix.alone_runs[at]
        ],
    }


def _group(run: Run) -> dict[str, Any]:
    largest = max(run.points, default=None)
    return {
        "hosts": [safe(host) for host in run.hosts],
        "status": run.state.value,
        "size_bytes": largest or None,
        "value": None if largest is None else number(run.points[largest]),
        "source": safe(run.source),
        "why": safe(run.why),
    }
