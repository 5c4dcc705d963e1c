"""One CPU on a wrong governor warns; to pass, every CPU that has one must show the right one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.model import Level
from straggler.engine.rules import governor
from tests.support.judging import judged, only


def level(*words: str) -> Level:
    text = "".join(f"cpu{at} {word}\n" for at, word in enumerate(words)) + "end\n"
    return only(judged(governor.RULE, {"governor": text}), "cpu.governor").level


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["performance"] * 192, Level.PASS),
        (["performance"] * 191 + ["powersave"], Level.WARN),
        (["performance", "-"], Level.PASS),
        (["performance", "?"], Level.UNKNOWN),
        (["powersave", "?"], Level.WARN),
        (["?", "?"], Level.UNKNOWN),
        (["-", "-"], Level.INFO),
    ],
)
def test_every_cpu_counts(words: list[str], found: Level) -> None:
    assert level(*words) is found


@given(st.text())
def test_no_text_but_a_whole_list_passes(text: str) -> None:
    report = judged(governor.RULE, {"governor": text})
    assert Level.PASS not in {one.level for one in report.findings}
