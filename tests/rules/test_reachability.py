"""A node that said nothing is one finding that names why; a node that said anything was reached."""

from __future__ import annotations

import pytest

from straggler.engine.judge import Facts, Report, judge
from straggler.engine.model import Level, Node, Observation, Status, Vantage
from straggler.engine.rules import reachability
from tests.support.judging import SHIPPED, WINDOW


def report(*statuses: Status) -> Report:
    facts = Facts()
    for name, status in zip(("governor", "identity", "efa"), statuses, strict=False):
        facts.add(Observation(name, "w-1", Vantage.HOST_USER, status, f"because {status.value}"))
    return judge([Node("w-1")], facts, [reachability.RULE], SHIPPED, WINDOW)


@pytest.mark.parametrize(
    ("statuses", "finding", "level"),
    [
        ([Status.UNREACHABLE] * 3, "node.unreachable", Level.FAIL),
        ([Status.TIMED_OUT] * 3, "node.hung", Level.WARN),
        ([Status.TRUNCATED] * 3, "node.hung", Level.WARN),
        ([Status.DENIED] * 3, "node.denied", Level.UNKNOWN),
        ([Status.CANCELLED] * 3, "node.unread", Level.UNKNOWN),
        ([Status.UNREACHABLE, Status.UNREACHABLE, Status.CANCELLED], "node.unreachable", Level.FAIL),
        ([Status.OK, Status.TIMED_OUT, Status.TRUNCATED], "node.reached", Level.PASS),
        ([Status.TOOL_MISSING, Status.TIMED_OUT], "node.reached", Level.PASS),
    ],
)
def test_only_the_silence_of_the_whole_node_is_a_finding(
    statuses: list[Status], finding: str, level: Level
) -> None:
    [found] = report(*statuses).findings
    assert (found.id, found.level) == (finding, level)
    if level is not Level.PASS:
        assert found.details == (("w-1", f"because {statuses[0].value}"),)
