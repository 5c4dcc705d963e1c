"""The time of interest, as people type it."""

from __future__ import annotations

import pytest

from straggler.engine.errors import UsageError
from straggler.engine.window import utc, window

NOW = 1_796_083_200.0  # 2026-12-01T00:00:00Z


@pytest.mark.parametrize(
    ("since", "until", "start", "end"),
    [
        (None, None, "2026-11-30T22:00:00Z", "2026-12-01T00:00:00Z"),
        ("30m", None, "2026-11-30T23:30:00Z", "2026-12-01T00:00:00Z"),
        ("3d", "1h", "2026-11-28T00:00:00Z", "2026-11-30T23:00:00Z"),
        ("2026-11-30T03:12Z", None, "2026-11-30T03:12:00Z", "2026-12-01T00:00:00Z"),
        ("2026-11-30T03:12+02:00", "2026-11-30 05:00", "2026-11-30T01:12:00Z", "2026-11-30T05:00:00Z"),
        ("2026-11-30", None, "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"),
    ],
)
def test_times_are_read_as_people_type_them(
    since: str | None, until: str | None, start: str, end: str
) -> None:
    chosen = window(since, until, NOW)
    assert (utc(chosen.since), utc(chosen.until)) == (start, end)


@pytest.mark.parametrize("text", ["yesterday", "2x", "-2h", "", "99999999d", "2026-13-01"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="2h"):
        window(text or " ", None, NOW)


def test_a_window_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(UsageError, match="before"):
        window("1h", "2h", NOW)


@pytest.mark.parametrize("moment", [1e18, -1e18, 1e300, float("nan"), float("inf")])
def test_a_moment_no_calendar_has_is_no_exception(moment: float) -> None:
    assert utc(moment) == "(no date)"
