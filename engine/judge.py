"""From observations to findings: asks every rule of every node, answers UNKNOWN where a reading is missing, and folds.

Verdicts with the same id, level and title become one finding, its nodes the subjects: one cause, one finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from straggler.engine.collectors import BY_ID
from straggler.engine.coverage import section_for
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import (
    Evidence,
    Finding,
    Level,
    Node,
    Observation,
    Status,
    Uncovered,
    Unread,
    Verdict,
    Window,
)
from straggler.engine.nodesets import fold
from straggler.engine.rules import pairs
from straggler.engine.rules.base import NodeView, Rule
from straggler.engine.rules.peers import peer_findings

EVIDENCE_KEPT = 12
"""Lines of evidence a finding carries; the rest is in the observations."""


SILENT = frozenset({Status.UNREACHABLE, Status.TIMED_OUT, Status.TRUNCATED, Status.DENIED, Status.CANCELLED})
"""Statuses that a node's whole silence has; all other statuses are an answer."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a set of observations amounts to. `levels`: the worst fault per node; UNKNOWN while anything wanted is unread.

    `waiting`: nodes that owe a reading: not answered yet, or the session ended before they did.
    `coverage`: percent of the readings the rules wanted that could be had; what does not apply to a node is not wanted.
    """

    findings: tuple[Finding, ...]
    uncovered: tuple[Uncovered, ...]
    levels: Mapping[str, Level]
    nodes_read: int
    nodes_total: int
    coverage: float
    waiting: tuple[str, ...] = ()


def facts_of(seen: Observation) -> object:
    """The facts of one observation, or Unread with the reason: the only place where text becomes facts."""
    if seen.status is not Status.OK:
        return Unread(seen.status, seen.why or seen.status.value)
    if seen.collector not in BY_ID:
        return Unread(
            Status.GARBLED, f"this version does not know the collector {seen.collector}, a recording has it"
        )
    return BY_ID[seen.collector].read(seen.text)


class Facts:
    """Parsed facts of a session, kept beside the observations so that each text is parsed once."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, Observation]] = defaultdict(dict)
        self.facts: dict[str, dict[str, object]] = defaultdict(dict)
        self._asked: tuple[Sequence[Rule], Knowledge, Window] | None = None
        self._verdicts: dict[str, list[tuple[Verdict, Rule]]] = {}

    def add(self, one: Observation) -> object:
        """Take in one observation; a later one of the same collector and node replaces it (a re-run)."""
        facts = facts_of(one)
        self.seen[one.node][one.collector] = one
        self.facts[one.node][one.collector] = facts
        self._verdicts.pop(one.node, None)
        return facts

    def verdicts(
        self, node: Node, rules: Sequence[Rule], known: Knowledge, window: Window
    ) -> list[tuple[Verdict, Rule]]:
        """What the rules say of one node: asked again only when the node has said something new."""
        asked = (rules, known, window)
        if self._asked is None or any(old is not new for old, new in zip(self._asked, asked, strict=True)):
            self._asked, self._verdicts = asked, {}
        if node.id not in self._verdicts:
            self._verdicts[node.id] = _verdicts(node, self, rules, known, window)
        return self._verdicts[node.id]


def judge(
    nodes: Sequence[Node],
    facts: Facts,
    rules: Sequence[Rule],
    known: Knowledge,
    window: Window,
    breathe: Callable[[], None] = lambda: None,
    more: Sequence[Finding] = (),
    gaps: tuple[Uncovered, ...] = (),
) -> Report:
    """Ask `rules` of `nodes`. A collector a node has not answered yet leaves that rule unasked: nothing is invented.

    `more`: findings made of something else than the nodes' own readings; `gaps`: what of that could not be had.
    `breathe` is called between nodes: a thread that judges beside a screen lets the screen go first there.
    """
    folded: dict[tuple[str, Level, str], list[tuple[Node, Verdict, Rule]]] = defaultdict(list)
    for node in nodes:
        breathe()
        for verdict, rule in facts.verdicts(node, rules, known, window):
            folded[verdict.id, verdict.level, verdict.title].append((node, verdict, rule))
    findings = []
    for key, group in folded.items():
        breathe()
        findings.append(_finding(key, group, facts, known))
    findings += peer_findings(nodes, facts.facts, known, breathe)
    findings += more
    breathe()
    report = _report(nodes, findings, facts, rules)
    return replace(report, uncovered=(*report.uncovered, *gaps))


def _verdicts(
    node: Node, facts: Facts, rules: Sequence[Rule], known: Knowledge, window: Window
) -> list[tuple[Verdict, Rule]]:
    have = facts.facts.get(node.id, {})
    seen = facts.seen.get(node.id, {})
    view = NodeView(node, have, seen, known, window)
    # A node that answered nothing is the reachability rule's single finding, not one UNKNOWN per rule.
    silent = bool(seen) and all(one.status in SILENT for one in seen.values())
    asked = (
        rule for rule in rules if not (silent and rule.reads) and all(one.id in have for one in rule.reads)
    )
    return [(verdict, rule) for rule in asked for verdict in _ask(rule, view)]


def _ask(rule: Rule, view: NodeView) -> Iterable[Verdict]:
    for one in rule.reads:
        facts = view.facts[one.id]
        if isinstance(facts, Unread):
            level = Level.INFO if facts.status is Status.NOT_APPLICABLE else Level.UNKNOWN
            title = f"{one.id} not read: {facts.status.value}"
            return [Verdict(rule.unknown, level, title, facts.why, confidence=1.0, unread=facts.status)]
    absent = {
        one.id: Unread(Status.NOT_VISIBLE, "not asked") for one in rule.uses if one.id not in view.facts
    }
    if absent:
        view = NodeView(view.node, {**view.facts, **absent}, view.seen, view.known, view.window)
    return rule.judge(view)


def _finding(
    key: tuple[str, Level, str], group: list[tuple[Node, Verdict, Rule]], facts: Facts, known: Knowledge
) -> Finding:
    name, level, title = key
    kind = known.finding_kind(name)
    by_detail: dict[str, list[str]] = defaultdict(list)
    for node, verdict, _ in group:
        by_detail[verdict.detail].append(node.id)
    evidence = [
        Evidence(f"{node.id}: {rule.reads[0].id if rule.reads else rule.id}", line)
        for node, verdict, rule in group
        for line in verdict.evidence
    ]
    worst = min((v.priority for _, v, _ in group if v.priority), default=kind.priority)
    first = group[0][1]
    told: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for node, verdict, _ in group:
        told[node.id].append(verdict.values)
    by_node = {name: _agreed(each) for name, each in told.items()}
    return Finding(
        id=name,
        level=level,
        priority=worst if level in (Level.WARN, Level.FAIL, Level.UNKNOWN) else None,
        title=title,
        subjects=tuple(node.id for node, _, _ in group),
        details=tuple((fold(names), detail) for detail, names in by_detail.items() if detail),
        evidence=tuple(evidence[:EVIDENCE_KEPT]),
        confidence=min(verdict.confidence for _, verdict, _ in group),
        why=kind.why,
        false_alarm=kind.false_alarm,
        next_step=kind.next_step,
        reference=section_for(first.unread) if first.unread else f"remedies/{kind.section}",
        route="" if first.unread else kind.route,
        unread=first.unread,
        rule=group[0][2].id,
        also=tuple(dict.fromkeys(other for _, verdict, _ in group for other in verdict.also)),
        values=_agreed(by_node.values()),
        node_values={name: one for name, one in by_node.items() if one},
    )


def _agreed(told: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What all of them say alike; a value that one lacks or has otherwise must fill no command for all."""
    first, *others = told
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}


def _report(nodes: Sequence[Node], findings: list[Finding], facts: Facts, rules: Sequence[Rule]) -> Report:
    levels = dict.fromkeys((node.id for node in nodes), Level.UNKNOWN)
    read = {
        node.id for node in nodes if any(o.status is Status.OK for o in facts.seen.get(node.id, {}).values())
    }
    missing = uncovered(nodes, facts, rules)
    wanted = {one.id for rule in rules for one in rule.reads}
    waiting = tuple(node.id for node in nodes if not wanted <= facts.facts.get(node.id, {}).keys())
    # Fine is only a node of which everything wanted could be read.
    for name in read - {name for one in missing for name in one.subjects} - set(waiting):
        levels[name] = Level.PASS
    for finding in findings:
        if finding.level.is_fault:
            for name in levels.keys() & set(finding.subjects):
                levels[name] = min(levels[name], finding.level, key=lambda level: level.rank)
    # What a host says of itself is nearer the cause than what others measure of it.
    order = sorted(
        findings,
        key=lambda f: (f.level.rank, f.priority or "P9", f.rule == pairs.ID, -f.confidence, f.id, f.title),
    )
    return Report(
        findings=tuple(order),
        uncovered=missing,
        levels=levels,
        nodes_read=len(read),
        nodes_total=len(nodes),
        coverage=_coverage(nodes, facts, rules),
        waiting=waiting,
    )


def _coverage(nodes: Sequence[Node], facts: Facts, rules: Sequence[Rule]) -> float:
    wanted = {one.id for rule in rules for one in rule.reads}
    asked = answered = 0
    for node in nodes:
        have = facts.facts.get(node.id, {})
        for name in wanted:
            one = have.get(name)
            if isinstance(one, Unread) and one.status is Status.NOT_APPLICABLE:
                continue
            asked += 1
            answered += one is not None and not isinstance(one, Unread)
    return 100.0 * answered / asked if asked else 0.0


def uncovered(nodes: Sequence[Node], facts: Facts, rules: Sequence[Rule]) -> tuple[Uncovered, ...]:
    """What the rules wanted and could not have, grouped by collector, status and reason."""
    wanted = {one.id for rule in rules for one in rule.reads}
    groups: dict[tuple[str, Status, str], list[str]] = defaultdict(list)
    for node in nodes:
        for name, one in facts.facts.get(node.id, {}).items():
            if name in wanted and isinstance(one, Unread) and one.status is not Status.NOT_APPLICABLE:
                groups[name, one.status, one.why].append(node.id)
    return tuple(Uncovered(*key, tuple(names)) for key, names in groups.items())
