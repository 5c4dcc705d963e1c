"""Not knowing has a page of its own: why this is not "fine", and what to do to read it."""

from __future__ import annotations

import pytest

from straggler.engine import knowledge
from straggler.engine.coverage import section_for
from straggler.engine.judge import Facts, judge
from straggler.engine.model import Level, Node, Observation, Status, Vantage, Window
from straggler.engine.rules import governor
from straggler.engine.sections import Sections

SECTIONS = Sections.load()
REASONS = [one for one in Status if one is not Status.OK]


@pytest.mark.parametrize("status", REASONS)
def test_every_way_of_not_knowing_says_what_it_means_and_what_to_do(status: Status) -> None:
    body = SECTIONS.get(section_for(status)).body
    assert "**What it means.**" in body
    assert "**What to do.**" in body


@pytest.mark.parametrize("status", REASONS)
def test_an_unread_check_keeps_its_id_and_points_to_the_reason(status: Status) -> None:
    facts = Facts()
    facts.add(Observation("governor", "w-1", Vantage.HOST_USER, status, "because"))
    facts.add(Observation("identity", "w-1", Vantage.HOST_USER, Status.OK, text="x"))
    found = judge([Node("w-1")], facts, [governor.RULE], knowledge.load(), Window(0.0, 1.0)).findings
    [one] = [one for one in found if one.id == "cpu.governor"]
    assert one.level is (Level.INFO if status is Status.NOT_APPLICABLE else Level.UNKNOWN)
    assert one.reference == section_for(status)
    assert not one.commands


def test_what_was_read_needs_no_such_page() -> None:
    with pytest.raises(KeyError):
        section_for(Status.OK)
