"""When a kernel line was written by the operator's clock, and whether that is inside the window asked about."""

from __future__ import annotations

from straggler.engine.collectors import kernel_log
from straggler.engine.collectors.kernel_log import KernelLog
from straggler.engine.kernel_lines import Line
from straggler.engine.rules.base import NodeView


def ours(view: NodeView, log: KernelLog, at: float) -> float:
    """A moment of the node's clock in the operator's time: the reply carries the node's clock, the observation ours."""
    return view.seen[kernel_log.COLLECTOR.id].started - (log.clock - at)


def age(view: NodeView, log: KernelLog, line: Line) -> float | None:
    """Seconds from the line to the end of the window, or to the reading where that was before it; None without a stamp."""
    if line.at is None:
        return None
    end = min(view.window.until, view.seen[kernel_log.COLLECTOR.id].started)
    return end - ours(view, log, line.at)


def inside(view: NodeView, log: KernelLog, line: Line) -> bool:
    """A line without a time is taken to be inside: it may not be explained away by a clock it does not have.

    A window that ends about now is open towards the reading, which comes a little later than the question.
    """
    if line.at is None:
        return True
    at = ours(view, log, line.at)
    return view.window.since <= at <= view.window.until + view.known.number("window.open-end")


def gone(seconds: float) -> str:
    """`3 d`, `5 h`, `12 min`: how long ago, in one unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
