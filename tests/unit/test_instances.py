"""The instance table and the simulated nodes made of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from straggler.engine import knowledge
from straggler.engine.collectors import BY_ID
from straggler.engine.judge import Facts, judge
from straggler.engine.model import Level, Node, Observation, Status, Vantage
from straggler.engine.rules import RULES
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.judging import WINDOW

KNOWN = knowledge.load()


@pytest.mark.parametrize(
    ("kind", "efa"),
    [("p4d.24xlarge", 4), ("p4de.24xlarge", 4), ("p5.48xlarge", 32), ("p5e.48xlarge", 32), ("p5en.48xlarge", 16),
     ("p6-b200.48xlarge", 8), ("p6-b300.48xlarge", 16), ("trn1.32xlarge", 8), ("trn1n.32xlarge", 16), ("m5.xlarge", 0)],
)  # fmt: skip
def test_a_type_is_known_with_and_without_hyperpods_prefix(kind: str, efa: int) -> None:
    for name in (kind, f"ml.{kind}"):
        found = KNOWN.instance(name)
        assert found is not None
        assert found.efa == efa


def test_a_type_outside_the_table_is_unknown_and_has_no_default() -> None:
    assert KNOWN.instance("p9.made-up") is None
    assert KNOWN.instance(None) is None


@pytest.mark.parametrize("one", KNOWN.instances.values(), ids=list(KNOWN.instances))
def test_every_row_is_of_a_kind_the_rules_know_and_says_where_it_is_from(one: knowledge.Instance) -> None:
    assert one.accelerator in ("nvidia", "neuron", "none")
    assert (one.gpus > 0) == (one.accelerator == "nvidia")
    assert one.source.startswith("https://")


@pytest.mark.parametrize(
    ("kind", "told"),
    [("p5.48xlarge", "gpu.count"), ("trn1.32xlarge", "gpu.neuron"), ("trn2.48xlarge", "gpu.neuron"), ("m5.xlarge", "gpu.none")],
)  # fmt: skip
def test_a_healthy_node_of_each_kind_is_told_apart_and_not_failed(kind: str, told: str) -> None:
    node = SimNode("w-1", 1, kind)
    facts = Facts()
    for name, say in SAYS.items():
        reply = say(node)
        status = {0: Status.OK, 120: Status.TOOL_MISSING}[reply.code]
        seen = Observation(name, "w-1", Vantage.HOST_ROOT, status, reply.errors, reply.text)
        facts.add(replace(seen, started=node.now, ended=node.now))
    report = judge([Node("w-1")], facts, RULES, KNOWN, WINDOW)
    assert [one.title for one in report.findings if one.level not in (Level.PASS, Level.INFO)] == []
    assert told in {one.id for one in report.findings}


def test_every_collector_has_a_simulated_answer() -> None:
    assert SAYS.keys() == BY_ID.keys()


@pytest.mark.parametrize("kind", list(KNOWN.instances))
def test_a_healthy_simulated_node_of_any_type_has_the_gpus_of_its_type_and_fails_nothing(kind: str) -> None:
    node = SimNode("w-1", 1, kind)
    replies = {name: say(node) for name, say in SAYS.items()}
    facts = Facts()
    for name, reply in replies.items():
        status = {0: Status.OK, 120: Status.TOOL_MISSING}[reply.code]
        seen = Observation(name, "w-1", Vantage.HOST_ROOT, status, reply.errors, reply.text)
        facts.add(replace(seen, started=node.now, ended=node.now))
    report = judge([Node("w-1")], facts, RULES, KNOWN, WINDOW)
    assert [one.title for one in report.findings if one.level not in (Level.PASS, Level.INFO)] == []
    assert replies["gpu"].text.count(" nvidia nvidia\n") == node.has.gpus
    assert ("NVRM" in replies["kernel-log"].text) == (node.has.gpus > 0)
