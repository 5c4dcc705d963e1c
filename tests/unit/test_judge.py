"""From observations to findings: nothing passes from silence, and one cause is one finding."""

from __future__ import annotations

from dataclasses import replace

from straggler.engine import knowledge
from straggler.engine.collectors import COLLECTORS, governor
from straggler.engine.judge import Facts, Report, judge
from straggler.engine.model import Level, Node, Observation, Status, Unread, Vantage, Verdict, Window
from straggler.engine.rules import RULES, Rule, peers
from straggler.engine.rules import governor as governor_rule
from straggler.engine.rules.base import NodeView

KNOWN = knowledge.load()
WINDOW = Window(0.0, 1.0)


def said(
    node: str, text: str = "", status: Status = Status.OK, why: str = "", collector: str = "governor"
) -> Observation:
    return Observation(collector, node, Vantage.HOST_ROOT, status, why, text)


def report(
    *seen: Observation, nodes: tuple[str, ...] = (), rules: tuple[Rule, ...] = (governor_rule.RULE,)
) -> Report:
    facts = Facts()
    for one in seen:
        facts.add(one)
    names = nodes or tuple(dict.fromkeys(one.node for one in seen))
    result = judge([Node(name) for name in names], facts, rules, KNOWN, WINDOW)
    return replace(result, findings=tuple(one for one in result.findings if one.rule != peers.ID))


def test_nodes_with_one_cause_are_one_finding_with_their_names_folded() -> None:
    seen = [said(f"w-{at:03}", "cpu0 powersave\nend\n") for at in range(1, 5)]
    [finding] = report(*seen).findings
    assert finding.level is Level.WARN
    assert finding.subjects == ("w-001", "w-002", "w-003", "w-004")
    assert finding.details == (("w-[001-004]", "powersave on 1 of 1 CPUs"),)


def test_a_collector_that_could_not_be_read_is_unknown_with_its_reason_never_a_pass() -> None:
    for status in Status:
        if status in (Status.OK, Status.NOT_APPLICABLE):
            continue
        result = report(
            said("w-1", "cpu0 performance\nend\n", status, "because"), said("w-1", "x", collector="identity")
        )
        [finding] = result.findings
        assert finding.level is Level.UNKNOWN
        assert "because" in finding.details[0][1]
        assert result.coverage == 0.0


def test_text_that_no_parser_understands_is_unknown() -> None:
    [finding] = report(said("w-1", "Last login: Mon\n")).findings
    assert finding.level is Level.UNKNOWN


def test_a_node_that_is_wholly_silent_is_one_finding_not_one_per_rule() -> None:
    seen = [said("w-1", "", Status.UNREACHABLE, "no route", one.id) for one in COLLECTORS]
    result = report(*seen, rules=RULES)
    assert [one.id for one in result.findings] == ["node.unreachable"]
    assert result.levels["w-1"] is Level.FAIL
    assert result.nodes_read == 0
    assert {one.collector for one in result.uncovered} == {one.id for rule in RULES for one in rule.reads}


def test_a_node_that_has_not_answered_yet_is_not_judged_and_not_fine() -> None:
    result = report(said("w-1", "cpu0 performance\nend\n"), nodes=("w-1", "w-2"))
    assert result.levels == {"w-1": Level.PASS, "w-2": Level.UNKNOWN}
    assert all("w-2" not in one.subjects for one in result.findings)
    assert result.coverage == 50.0


def test_a_second_reading_replaces_the_first() -> None:
    [finding] = report(said("w-1", "cpu0 powersave\nend\n"), said("w-1", "cpu0 performance\nend\n")).findings
    assert finding.level is Level.PASS


def test_worst_findings_come_first() -> None:
    result = report(
        said("w-1", "cpu0 performance\nend\n"), said("w-2", "cpu0 powersave\nend\n"), said("w-3", "?")
    )
    assert [one.level for one in result.findings] == [Level.WARN, Level.UNKNOWN, Level.PASS]


def test_every_rule_answers_unknown_when_what_it_reads_is_missing() -> None:
    for rule in RULES:
        for hole in rule.reads:
            seen = [
                said("w-1", "", Status.TIMED_OUT, "hung", hole.id),
                said("w-1", "x\n", collector=_other(hole.id)),
            ]
            facts = Facts()
            for one in seen:
                facts.add(one)
            facts.facts["w-1"].update(
                {one.id: facts.facts["w-1"].get(one.id, object()) for one in rule.reads}
            )
            result = judge([Node("w-1")], facts, (rule,), KNOWN, WINDOW)
            assert [one.level for one in result.findings] == [Level.UNKNOWN], rule.id


def _other(collector: str) -> str:
    return "identity" if collector != "identity" else governor.COLLECTOR.id


def test_values_are_kept_by_node_and_shared_only_where_all_agree() -> None:
    def judged(view: NodeView) -> list[Verdict]:
        return [
            Verdict("cpu.governor", Level.WARN, "odd", values={"pci": view.node.id, "wanted": "performance"})
        ]

    rule = replace(governor_rule.RULE, judge=judged)
    [finding] = report(
        said("w-1", "cpu0 powersave\nend\n"), said("w-2", "cpu0 powersave\nend\n"), rules=(rule,)
    ).findings
    assert finding.values == {"wanted": "performance"}
    assert [finding.node_values[name]["pci"] for name in ("w-1", "w-2")] == ["w-1", "w-2"]


def test_a_reading_of_a_collector_this_version_does_not_know_is_kept_and_not_judged() -> None:
    """A journal of a newer version: its reading is no crash, and the node that owes one of ours is not fine."""
    facts = Facts()
    kept = facts.add(said("w-1", "x\n", collector="of-tomorrow"))
    assert isinstance(kept, Unread)
    assert "of-tomorrow" in kept.why
    judged = report(said("w-1", "x\n", collector="of-tomorrow"))
    assert judged.findings == ()
    assert judged.levels["w-1"] is not Level.PASS
    assert judged.waiting == ("w-1",)
