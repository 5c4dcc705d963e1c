"""One node, what it said, and what the rules make of it."""

from __future__ import annotations

from collections.abc import Mapping

from straggler.engine import knowledge
from straggler.engine.judge import Facts, Report, judge
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Finding, Node, Observation, Status, Vantage, Window
from straggler.engine.rules.base import Rule

NOW = 1_796_083_200.0
"""The simulated nodes' clock, and the end of the window the tests ask about."""

WINDOW = Window(NOW - 7200, NOW)
SHIPPED = knowledge.load()


def judged(
    rule: Rule,
    replies: Mapping[str, str],
    *,
    instance_type: str | None = "p5.48xlarge",
    vantage: Vantage = Vantage.HOST_ROOT,
    known: Knowledge = SHIPPED,
    window: Window = WINDOW,
    read_at: float = NOW,
) -> Report:
    """`replies`: collector id -> stdout. `read_at`: when it was read, by the operator's clock."""
    facts = Facts()
    for collector, text in replies.items():
        facts.add(
            Observation(collector, "w-1", vantage, Status.OK, text=text, started=read_at, ended=read_at + 1)
        )
    return judge([Node("w-1", instance_type=instance_type)], facts, [rule], known, window)


def ids(report: Report) -> set[str]:
    """Every id and second id of the findings, good news left out."""
    shown = [one for one in report.findings if one.level.value != "PASS"]
    return {one.id for one in shown} | {other for one in shown for other in one.also}


def only(report: Report, finding: str) -> Finding:
    [found] = [one for one in report.findings if one.id == finding]
    return found
