"""A node that said nothing at all is one finding of its own, not a hole in every other one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from straggler.engine.model import Level, Status, Verdict
from straggler.engine.rules.base import NodeView, Rule

_BY_STATUS = {
    Status.UNREACHABLE: ("node.unreachable", Level.FAIL, "a node cannot be reached from here", 0.8),
    Status.TIMED_OUT: ("node.hung", Level.WARN, "a node was reached but gave no answer in time", 0.7),
    Status.TRUNCATED: ("node.hung", Level.WARN, "a node broke off before it had answered anything", 0.6),
    Status.DENIED: ("node.denied", Level.UNKNOWN, "a node refused us", 1.0),
    Status.CANCELLED: ("node.unread", Level.UNKNOWN, "a node was not read: cancelled", 1.0),
}


def judge(view: NodeView) -> Iterable[Verdict]:
    """Only what concerns the node as a whole: a single unread collector is not the node's silence."""
    statuses = Counter(one.status for one in view.seen.values())
    if not statuses:
        return
    if any(status not in _BY_STATUS for status in statuses):
        yield Verdict("node.reached", Level.PASS, "the node answered", confidence=1.0)
        return
    status = statuses.most_common(1)[0][0]
    name, level, title, confidence = _BY_STATUS[status]
    why = next(one.why for one in view.seen.values() if one.status is status)
    yield Verdict(name, level, title, why, evidence=(why,), confidence=confidence)


RULE = Rule(
    id="reachability",
    reads=(),
    judge=judge,
    finds=("node.reached", "node.unreachable", "node.hung", "node.denied", "node.unread"),
    unknown="node.unread",
    spec=("node.ssm-reachable",),
)
