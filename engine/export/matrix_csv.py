"""The matrix as CSV, `a,b,busbw_gbs,size_bytes,status,runs`: opens in a spreadsheet without running anything, and reads back here."""

from __future__ import annotations

import csv
import io

from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.export import matrix_json
from straggler.engine.safetext import safe

COLUMNS = ("a", "b", "busbw_gbs", "size_bytes", "status", "runs")


def render(view: MatrixView) -> str:
    """A header and one line per pair that was run; a pair without a value has an empty field, never a 0."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    measured = "latency_us" if view.matrix.metric.lower_is_better else "busbw_gbs"
    writer.writerow([measured if name == "busbw_gbs" else name for name in COLUMNS])
    document = matrix_json.document(view)
    size = view.matrix.size or ""
    harmless = {name: cell(name) for name in document["nodes"]}
    for one in document["pairs"]:
        value = "" if one[measured] is None else one[measured]
        writer.writerow([harmless[one["a"]], harmless[one["b"]], value, size, one["status"], one["runs"]])
    return out.getvalue()


def cell(text: str) -> str:
    """A spreadsheet takes what begins with one of these for a formula; with a quote in front it is text."""
    shown = safe(text)
    return f"'{shown}" if shown.lstrip()[:1] in ("=", "+", "-", "@") else shown
