"""Choosing what to look at: lists that load beside the screen, ticking, typing, filtering, and names that mean harm."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.widgets import Input

from straggler.tui.app import StragglerApp
from straggler.tui.screens.choices import Choices
from straggler.tui.screens.chooser import Choice, ChooserScreen
from straggler.tui.screens.intake import IntakeScreen
from straggler.tui.screens.offers import Offer, Offers, Source
from straggler.tui.start import Start
from tests.tui.asking_driving import NOW, Asking, until
from tests.tui.driving import painted

HOSTILE = "[bold red]x[/] \x1b]0;owned\x07\x1b[31m [@click=app.quit]y[/]"


def source(kind: str, *found: str, note: str = "", several: bool = False) -> Source:
    offers = Offers(tuple(Offer(one, one) for one in found), note)
    return Source(kind, kind.upper(), lambda: offers, several=several)


def loaded(app: Asking) -> bool:
    screen = app.asked
    assert isinstance(screen, ChooserScreen)
    return screen.is_mounted and len(screen.offers) == len(screen.sources)


async def test_a_source_that_fails_costs_only_its_own_line() -> None:
    def fails() -> Offers:
        raise RuntimeError("the disk said no")

    app = Asking(ChooserScreen((Source("session", "Past sessions", fails), source("demo", "efa-down"))))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.pause()
        assert "could not be listed (RuntimeError: the disk said no)" in painted(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Choice("demo", ("efa-down",))]


async def test_a_source_that_hangs_keeps_neither_the_screen_nor_the_end() -> None:
    never = threading.Event()

    def hangs() -> Offers:
        never.wait()
        return Offers()

    app = Asking(ChooserScreen((Source("session", "Past sessions", hangs), source("demo", "efa-down"))))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "efa-down" in painted(pilot))
        assert "looking …" in painted(pilot)
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running)
    never.set()


async def test_the_lists_are_read_away_from_the_event_loop() -> None:
    where: list[str] = []

    def look() -> Offers:
        where.append(threading.current_thread().name)
        return Offers()

    app = Asking(ChooserScreen((Source("demo", "Simulated", look),)))
    async with app.run_test() as pilot:
        await until(pilot, lambda: loaded(app))
    assert where
    assert threading.main_thread().name not in where


async def test_ticked_hosts_are_opened_together() -> None:
    app = Asking(
        ChooserScreen((source("demo", "efa-down"), source("ssh", "gpu-a", "gpu-b", "gpu-c", several=True)))
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("2", "space", "down", "down", "space")
        assert painted(pilot).count("[x]") == 2
        await pilot.press("enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Choice("ssh", ("gpu-a", "gpu-c"))]


async def test_enter_on_a_host_that_is_not_ticked_opens_only_it() -> None:
    app = Asking(ChooserScreen((source("ssh", "gpu-a", "gpu-b", several=True),)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("space", "down", "enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Choice("ssh", ("gpu-b",))]


async def test_what_cannot_be_ticked_says_so() -> None:
    app = Asking(ChooserScreen((source("demo", "efa-down"),)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("space")
        await until(pilot, lambda: "only hosts of the ssh config can be ticked" in painted(pilot))


async def test_typed_hosts_are_handed_back_as_they_were_typed() -> None:
    app = Asking(ChooserScreen((source("hosts"),)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("h", *"me@n", "left_square_bracket", *"1-2", "right_square_bracket", "enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Choice("hosts", ("me@n[1-2]",))]


async def test_the_filter_narrows_and_esc_brings_everything_back() -> None:
    app = Asking(ChooserScreen((source("demo", "efa-down", "xid-79"),)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("slash", *"xid", "enter")
        await until(pilot, lambda: "efa-down" not in painted(pilot))
        assert "xid-79" in painted(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "efa-down" in painted(pilot))
        assert not app.answers


async def test_enter_opens_what_the_filter_found() -> None:
    found = (source("hosts", "trn.hosts"), source("local", "login-1"), source("demo", "efa-down", "xid-79"))
    app = Asking(ChooserScreen(found))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("slash", *"xid", "enter")
        await until(pilot, lambda: "trn.hosts" not in painted(pilot) and "type them" not in painted(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Choice("demo", ("xid-79",))]


async def test_a_digit_goes_to_its_group_also_when_others_are_filtered_out() -> None:
    found = (source("local", "xid-box"), source("session", "old"), source("demo", "efa-down", "xid-79"))
    app = Asking(ChooserScreen(found))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("slash", *"xid", "enter", "3", "enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Choice("demo", ("xid-79",))]


async def test_a_filter_that_finds_nothing_says_so() -> None:
    app = Asking(ChooserScreen((source("demo", "efa-down"),)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.press("slash", *"zebra")
        await until(pilot, lambda: "nothing here has 'zebra'" in painted(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "efa-down" in painted(pilot))


async def test_hostile_names_are_drawn_letter_by_letter() -> None:
    app = Asking(
        ChooserScreen((source("session", HOSTILE, note=HOSTILE), source("ssh", HOSTILE, several=True)))
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: loaded(app))
        await pilot.pause()
        shown = painted(pilot)
    assert shown.count("[bold red]x[/]") == 3
    assert "[@click=app.quit]y[/]" in shown
    assert "\x1b" not in shown


async def test_hosts_that_cannot_be_used_come_back_with_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    app = StragglerApp(start=Start(state_dir=tmp_path / "state", clock=lambda: NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChooserScreen))
        await pilot.press("h", *"no", "left_square_bracket", *"de", "enter")
        await until(pilot, lambda: "is not a host" in painted(pilot))
        line = app.screen.query_one(Input)
        assert line.value == "no[de"
        assert line.has_focus
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.query_one(Choices).has_focus)
        assert "is not a host" not in painted(pilot)


async def test_leaving_the_question_what_hurts_leads_back_to_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    app = StragglerApp(start=Start(state_dir=tmp_path / "state", clock=lambda: NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChooserScreen) and "efa-down" in painted(pilot))
        app.screen.query_one(Choices).land("demo:1")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, IntakeScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChooserScreen))
