"""What hurts: a pasted error finds its symptom, the window is checked, and every answer arrives."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from straggler.engine import knowledge
from straggler.tui.screens.choices import Choices
from straggler.tui.screens.intake import Intake, IntakeScreen
from tests.tui.asking_driving import NOW, Asking, until
from tests.tui.driving import painted


def asking(about: str = "128 hosts") -> Asking:
    return Asking(IntakeScreen(knowledge.load(), about, NOW))


async def up(pilot: Pilot[None]) -> Choices:
    await until(pilot, lambda: isinstance(pilot.app.screen, IntakeScreen) and pilot.app.screen.query(Choices))
    choices = pilot.app.screen.query_one(Choices)
    await until(pilot, lambda: choices.current is not None)
    return choices


@pytest.mark.parametrize(
    ("error", "symptom"),
    [
        ("NVRM: Xid (PCI:0000:b9:00): 79, GPU has fallen off the bus.", "gpu-errors"),
        ("NCCL INFO Using network Socket", "efa-not-used"),
        ("OSError: [Errno 28] No space left on device", "slow-filesystem"),
        ("ssh: connect to host n1 port 22: No route to host", "node-down"),
        ("the moon is in the wrong place", "everything"),
    ],
)
async def test_a_pasted_error_lands_on_its_symptom(error: str, symptom: str) -> None:
    app = asking()
    async with app.run_test(size=(80, 24)) as pilot:
        choices = await up(pilot)
        await pilot.press("e")
        app.screen.query_one(Input).post_message(events.Paste(error))
        await pilot.press("enter")
        await until(pilot, lambda: choices.has_focus)
        assert choices.current is not None
        assert choices.current.id == symptom
        await pilot.press("enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Intake(symptom, error, "2h", sudo=False, guided=False)]


async def test_every_line_of_a_pasted_traceback_counts() -> None:
    app = asking()
    async with app.run_test(size=(80, 24)) as pilot:
        choices = await up(pilot)
        await pilot.press("e")
        app.screen.query_one(Input).post_message(
            events.Paste("Traceback:\n  File x\nRuntimeError: CUDA error: 719\x1b[0m\n")
        )
        await pilot.press("enter")
        await until(pilot, lambda: choices.has_focus)
        assert choices.current is not None
        assert choices.current.id == "gpu-errors"
        assert "\x1b" not in painted(pilot)


async def test_the_window_goes_round() -> None:
    app = asking()
    async with app.run_test(size=(80, 24)) as pilot:
        await up(pilot)
        seen = []
        for _ in range(5):
            await pilot.press("s")
            seen.append(app.screen.since)  # type: ignore[attr-defined]
        await until(pilot, lambda: "since 2h" in painted(pilot))
    assert seen == ["6h", "1d", "3d", "30m", "2h"]


async def test_a_window_that_means_nothing_is_refused_and_stays_to_be_mended() -> None:
    app = asking()
    async with app.run_test(size=(80, 24)) as pilot:
        await up(pilot)
        await pilot.press("S", *(["backspace"] * 2), *"soon", "enter")
        await until(pilot, lambda: "soon" in painted(pilot).splitlines()[1])
        line = app.screen.query_one(Input)
        assert line.has_focus
        assert line.value == "soon"
        await pilot.press(*(["backspace"] * 4), *"45m", "enter")
        await until(pilot, lambda: "since 45m" in painted(pilot))


async def test_a_digit_goes_to_its_line_and_the_answers_arrive() -> None:
    app = asking()
    async with app.run_test(size=(80, 24)) as pilot:
        choices = await up(pilot)
        second = list(knowledge.load().symptoms)[1]
        await pilot.press("2", "u", "G")
        await until(pilot, lambda: choices.current is not None and choices.current.id == second)
        await until(pilot, lambda: "sudo on the nodes yes   mode guided" in painted(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: app.answers)
    assert app.answers == [Intake(second, "", "2h", sudo=True, guided=True)]


async def test_guided_says_what_will_be_read_and_why() -> None:
    app = asking()
    known = knowledge.load()
    async with app.run_test(size=(120, 40)) as pilot:
        await up(pilot)
        step = next(iter(known.symptoms.values())).steps[0]
        assert step[:60] not in painted(pilot)
        await pilot.press("G")
        await until(pilot, lambda: step[:60] in painted(pilot))


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40)])
async def test_every_symptom_can_be_read_whole_at_every_size(size: tuple[int, int]) -> None:
    app = asking()
    known = knowledge.load()
    async with app.run_test(size=size) as pilot:
        choices = await up(pilot)
        for one in known.symptoms.values():
            await until(pilot, lambda one=one: one.title in painted(pilot) and one.hint in painted(pilot))  # type: ignore[misc]
            choices.action_move(1)


async def test_a_hostile_cluster_name_is_drawn_letter_by_letter() -> None:
    app = asking("[b]trn[/b]\x1b]52;c;aaaa\x07 [link=file:///etc]x[/link]")
    async with app.run_test(size=(120, 40)) as pilot:
        await up(pilot)
        title = painted(pilot).splitlines()[0]
    assert "[b]trn[/b]" in title
    assert "[link=file:///etc]x[/link]" in title
    assert "\x1b" not in title


async def test_esc_leaves_the_question_without_an_answer() -> None:
    app = asking()
    async with app.run_test() as pilot:
        await up(pilot)
        await pilot.press("e", "escape")
        assert not app.answers
        await pilot.press("escape")
        await until(pilot, lambda: app.answers)
    assert app.answers == [None]
