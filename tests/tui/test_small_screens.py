"""A terminal that is too small, and the question for a passphrase."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from straggler.tui.screens.intake import IntakeScreen
from straggler.tui.screens.main import MainScreen
from straggler.tui.screens.prompt import PromptScreen
from straggler.tui.screens.too_small import TooSmallScreen
from tests.tui.asking_driving import Asking, until
from tests.tui.driving import app_for, gathered, painted

SECRET = "zqxj7-kvzw9"


async def test_too_small_comes_and_goes_with_the_size_and_reading_goes_on(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        await pilot.resize_terminal(50, 12)
        await until(pilot, lambda: "50×12 is too small" in painted(pilot))
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: "40×10 is too small" in painted(pilot))
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        await until(pilot, lambda: "an EFA port is not ACTIVE" in painted(pilot))


async def test_a_session_that_starts_too_small_says_so_and_then_asks(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path, symptom=None)
    async with app.run_test(size=(50, 12)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TooSmallScreen))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: isinstance(app.screen, IntakeScreen))
        await until(pilot, lambda: "What hurts?" in painted(pilot))
        assert not any(isinstance(one, TooSmallScreen) for one in app.screen_stack)


async def test_a_passphrase_arrives_and_is_never_drawn() -> None:
    app = Asking(PromptScreen("Passphrase for ~/.ssh/[b]id[/b]", secret=True))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query(Input))
        await pilot.press(*SECRET)
        await pilot.pause()
        drawn = painted(pilot)
        assert "~/.ssh/[b]id[/b]" in drawn
        assert app.screen.query_one(Input).value == SECRET
        assert not [SECRET[at : at + 3] for at in range(len(SECRET) - 2) if SECRET[at : at + 3] in drawn]
        await pilot.press("enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [SECRET]


async def test_a_passphrase_can_be_left_unanswered() -> None:
    app = Asking(PromptScreen("Passphrase for x", secret=True))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query(Input))
        await pilot.press(*"abc", "escape")
        await until(pilot, lambda: app.answers)
    assert app.answers == [None]
