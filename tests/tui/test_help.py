"""`?`: only keys that work, in an operator's words, and every term on the screen or typed explained."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from straggler.engine import knowledge
from straggler.engine.knowledge import Term
from straggler.tui.screens.help import Group, HelpScreen
from straggler.tui.screens.intake import IntakeScreen
from tests.tui.asking_driving import NOW, Asking, until
from tests.tui.driving import app_for, gathered, painted

GLOSSARY = {
    "EFA": Term("AWS's network device."),
    "blast radius": Term("What else a command touches."),
    "Xid": Term("The number of an error of a GPU.", also=("Xids",)),
}


async def opened(pilot: Pilot[None]) -> HelpScreen:
    await pilot.press("question_mark")
    await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen) and pilot.app.screen.query(Input))
    await pilot.pause()
    screen = pilot.app.screen
    assert isinstance(screen, HelpScreen)
    return screen


async def test_help_on_the_main_screen_has_its_keys_and_explains_its_words(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await gathered(pilot)
        screen = await opened(pilot)
        shown = painted(pilot)
        assert [one.title for one in screen.groups] == ["Here", "On this screen", "Everywhere"]
        for words in (
            "v  ",
            "evidence",
            "acknowledge",
            "re-read what is unread",
            "redraw",
            "EFA  Elastic Fabric Adapter",
        ):
            assert words in shown
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen)


async def test_no_key_of_the_framework_and_no_key_a_terminal_eats_is_named(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await gathered(pilot)
        screen = await opened(pilot)
    named = " ".join(key for group in screen.groups for key, _ in group.keys).split()
    assert not {"Ctrl-Q", "Ctrl-C", "Ctrl-S", "Ctrl-O", "Ctrl-D", "[", "{", "@", "less_than_sign"} & set(
        named
    )
    assert not [key for key in named if "_" in key or "+" in key]


async def test_every_key_that_is_named_is_named_once_with_what_it_does() -> None:
    app = Asking(IntakeScreen(knowledge.load(), "x", NOW))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.asked in app.screen_stack and app.screen.focused is not None)
        screen = await opened(pilot)
    keys = [key for group in screen.groups for names, _ in group.keys for key in names.split()]
    assert len(keys) == len(set(keys))
    assert all(what for group in screen.groups for _, what in group.keys)


async def test_a_term_is_found_by_part_of_its_name_or_another_name() -> None:
    app = Asking(HelpScreen((Group("Here", (("Enter", "open"),)),), GLOSSARY, "EFA"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "AWS's network device" in painted(pilot))
        await pilot.press(*"blast")
        await until(pilot, lambda: "What else a command touches." in painted(pilot))
        assert "AWS's" not in painted(pilot)
        app.screen.query_one(Input).value = "xids"
        await until(pilot, lambda: "The number of an error of a GPU." in painted(pilot))
        app.screen.query_one(Input).value = "[b]zz[/b]"
        await until(pilot, lambda: "The glossary has no [b]zz[/b]" in painted(pilot))


async def test_more_keys_and_terms_than_fit_can_be_scrolled_to() -> None:
    many = {f"term{at}": Term(f"meaning number {at}.") for at in range(60)}
    app = Asking(HelpScreen((Group("Here", (("Enter", "open"),)),), many, " ".join(many)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "meaning number 0." in painted(pilot))
        assert "meaning number 59." not in painted(pilot)
        await pilot.press(*(["pagedown"] * 8))
        await until(pilot, lambda: "meaning number 59." in painted(pilot))
