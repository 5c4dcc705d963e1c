"""From what hurts to what is read."""

from __future__ import annotations

import pytest

from straggler.engine import knowledge, triage
from straggler.engine.collectors import COLLECTORS
from straggler.engine.errors import UsageError
from straggler.engine.rules import RULES

KNOWN = knowledge.load()


def test_not_knowing_asks_everything() -> None:
    plan = triage.plan("everything", KNOWN)
    assert plan.rules == RULES
    assert plan.collectors == COLLECTORS


def test_every_symptom_leads_to_rules_and_to_all_they_read() -> None:
    for name in KNOWN.symptoms:
        plan = triage.plan(name, KNOWN)
        assert plan.rules
        read = {one.id for one in plan.collectors}
        assert {one.id for rule in plan.rules for one in rule.collectors} <= read
        assert "identity" in read


def test_a_misspelt_symptom_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="did you mean gpu-errors"):
        triage.plan("gpu-error", KNOWN)


def test_a_word_that_is_no_symptom_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match="everything"):
        triage.plan("zzz", KNOWN)


@pytest.mark.parametrize(
    ("text", "symptom"),
    [
        ("NVRM: GPU at 0000:53:00.0 has fallen off the bus.", "gpu-errors"),
        ("worker-1: NCCL INFO Using network Socket", "efa-not-used"),
        ("fi_getinfo: -61 (No data available)", "efa-not-used"),
        ("nothing anyone has seen", None),
    ],
)
def test_a_pasted_error_finds_its_symptom(text: str, symptom: str | None) -> None:
    assert triage.symptom_of_error(text, KNOWN) == symptom
