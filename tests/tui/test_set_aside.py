"""Setting a finding aside: with a note and an end; it comes back when it changes, when the time is over, or when asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from straggler.engine.acknowledge import Acks
from straggler.engine.model import Finding
from straggler.tui.screens.acknowledge import Acknowledged, AcknowledgeScreen
from straggler.tui.screens.choices import Choices
from tests.tui.asking_driving import NOW, Asking, until
from tests.tui.driving import app_for, gathered, live_of, main_of, painted, shown

TITLE = "an EFA port is not ACTIVE"


async def set_aside(pilot: Pilot[None], *keys: str) -> Finding:
    screen = await gathered(pilot)
    finding = next(one for one in live_of(pilot).report.findings if one.level.is_fault)  # type: ignore[union-attr]
    await pilot.press("a")
    await until(pilot, lambda: isinstance(pilot.app.screen, AcknowledgeScreen))
    await pilot.press(*keys, "enter")
    await until(pilot, lambda: pilot.app.screen is screen and screen.acks and screen.acks.by_fingerprint)
    await shown(pilot)
    return finding


async def test_it_is_kept_with_note_and_end_and_leaves_the_list(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        finding = await set_aside(pilot, "2", "n", *"ticket", "enter")
        await until(pilot, lambda: f"FAIL  {TITLE}" not in painted(pilot))
    ack = Acks.load(tmp_path).of(finding, NOW)
    assert ack is not None
    assert (ack.note, ack.until) == ("ticket", NOW + 8 * 3600)


async def test_with_the_only_fault_set_aside_nothing_claims_there_is_none(tmp_path: Path) -> None:
    async with app_for("unreachable-nodes", tmp_path).run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        await set_aside(pilot)
        await shown(pilot)
        assert "every fault that was found is acknowledged" in painted(pilot)
        assert "no fault was found" not in painted(pilot)


async def test_it_comes_back_when_the_time_is_over_or_it_changed(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        finding = await set_aside(pilot, "1")
    acks = Acks.load(tmp_path)
    assert acks.is_acknowledged(finding, NOW + 3599)
    assert not acks.is_acknowledged(finding, NOW + 3600)
    assert not acks.is_acknowledged(replace(finding, subjects=[*finding.subjects, "worker-016"]), NOW)
    later = app_for("efa-down", tmp_path, clock=lambda: NOW + 3601)
    async with later.run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        await until(pilot, lambda: TITLE in painted(pilot))


@pytest.mark.parametrize(("digit", "hours"), [("1", 1), ("2", 8), ("3", 24), ("4", 168)])
async def test_a_digit_takes_its_line(digit: str, hours: int) -> None:
    app = Asking(AcknowledgeScreen(TITLE, NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query(Choices))
        await pilot.press(digit, "enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Acknowledged(NOW + hours * 3600, "")]


async def test_esc_leaves_it_as_it_is(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AcknowledgeScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert not main_of(pilot).acks.by_fingerprint  # type: ignore[union-attr]


async def test_digits_in_the_note_are_part_of_the_note() -> None:
    app = Asking(AcknowledgeScreen(TITLE, NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query(Choices))
        await pilot.press("n", *"4711")
        assert app.screen.query_one(Input).value == "4711"
        await pilot.press("enter", "enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Acknowledged(NOW + 3600, "4711")]


async def test_a_hostile_title_is_drawn_letter_by_letter() -> None:
    app = Asking(AcknowledgeScreen("[red]x[/red] [@click=app.quit]y[/]", NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "[red]x[/red] [@click=app.quit]y[/]" in painted(pilot))
