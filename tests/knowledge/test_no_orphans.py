"""The references hold together: nothing is named that does not exist, and nothing exists that nobody reaches."""

from __future__ import annotations

import pytest

from tests.knowledge import orphans
from tests.knowledge.house import house


@pytest.mark.parametrize("check", orphans.CHECKS, ids=lambda check: check.__name__)
def test_there_are_no(check: orphans.Check) -> None:
    assert check(house()) == []
