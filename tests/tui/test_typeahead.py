"""Keys that arrive in one piece, as they do over a slow link, do what they would do one by one."""

from __future__ import annotations

import asyncio

from textual import events
from textual.pilot import Pilot

from straggler.engine import knowledge
from straggler.tui.screens.choices import Choices
from straggler.tui.screens.chooser import Choice, ChooserScreen
from straggler.tui.screens.intake import Intake, IntakeScreen
from straggler.tui.screens.offers import Offer, Offers, Source
from tests.tui.asking_driving import NOW, Asking, until
from tests.tui.driving import app_for, gathered


def burst(pilot: Pilot[None], text: str) -> None:
    """Everything is in the queue before the app deals with the first of it. `\\n` is Enter."""
    for one in text:
        key = {"\n": "enter", "/": "slash", "?": "question_mark"}.get(one, one)
        pilot.app.post_message(events.Key(key, one if one.isprintable() else None))


def chooser() -> ChooserScreen:
    demo = tuple(Offer(name, name) for name in ("healthy", "efa-down", "xid-79"))
    return ChooserScreen([Source("demo", "Simulated cluster", lambda: Offers(demo))])


async def test_a_filter_and_its_word_and_what_follows_may_come_at_once() -> None:
    screen = chooser()
    app = Asking(screen)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: screen.is_attached and "demo" in screen.offers)
        burst(pilot, "/xid\n\n")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Choice("demo", ("xid-79",))]


async def test_an_error_pasted_right_behind_its_key_finds_its_symptom() -> None:
    screen = IntakeScreen(knowledge.load(), "demo", NOW)
    app = Asking(screen)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: screen.is_attached and screen.query(Choices))
        burst(pilot, "e")
        app.post_message(events.Paste("NVRM: Xid (PCI:0000:53:00): 79"))
        burst(pilot, "\n\n")
        await until(pilot, lambda: app.answers)
    [told] = app.answers
    assert isinstance(told, Intake)
    assert told.symptom == "gpu-errors"
    assert "79" in told.error_text


async def test_a_key_whose_widget_is_gone_holds_up_no_other() -> None:
    app = app_for("xid-79")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        burst(pilot, "?")
        burst(pilot, "2")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        burst(pilot, "24242")
        await until(pilot, lambda: screen.active == "nodes")
        await asyncio.wait_for(pilot.pause(), 5)
