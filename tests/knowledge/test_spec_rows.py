"""The rows of the specification of node checks: all are listed, and each has a rule or a reason."""

from __future__ import annotations

from tests.knowledge.house import house

PERFORMANCE = [*(f"A{at}" for at in range(1, 8)), *(f"B{at}" for at in range(1, 6))]
PERFORMANCE += [*(f"G{at}" for at in range(1, 11)), "I1", "I2"]
NODE_ROWS = 41
PAIR_ROWS = 30


def test_every_row_is_in_the_table() -> None:
    rows = house().rows
    assert [one for one in rows if not one.startswith(("node.", "pairs.", "cluster."))] == PERFORMANCE
    assert len([one for one in rows if one.startswith("node.")]) == NODE_ROWS
    assert len([one for one in rows if one.startswith("pairs.")]) == PAIR_ROWS


def test_every_row_says_what_it_is() -> None:
    assert [name for name, one in house().rows.items() if not one.get("what", "").strip()] == []
    assert [name for name, one in house().rows.items() if one.keys() - {"what", "why_not", "section"}] == []
