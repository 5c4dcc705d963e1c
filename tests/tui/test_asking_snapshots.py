"""The screens that ask, as pictures: at 80×24 and 120×40, in colour, without colour, in ASCII."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from straggler.engine import knowledge
from straggler.engine.knowledge import Symptom
from straggler.tui.screens.acknowledge import AcknowledgeScreen
from straggler.tui.screens.chooser import ChooserScreen
from straggler.tui.screens.help import HelpScreen
from straggler.tui.screens.intake import IntakeScreen
from straggler.tui.screens.offers import Offer, Offers, Source
from straggler.tui.screens.prompt import PromptScreen
from tests.tui.asking_driving import NOW, Asking, until
from tests.tui.driving import painted

Compare = Callable[..., bool]
Before = Callable[[Pilot[None]], Awaitable[None]]


def chooser() -> Screen[Any]:
    scenarios = (
        ("efa-down", "one EFA port of one node is down"),
        ("xid-79", "one GPU of one node fell off the bus"),
    )
    return ChooserScreen(
        (
            Source(
                "hosts", "Hosts by SSH", lambda: Offers((Offer("@/x/trn.hosts", "@trn.hosts", "128 hosts"),))
            ),
            Source("local", "This machine", lambda: Offers((Offer("", "local", "login-1"),))),
            Source("session", "Past sessions", lambda: Offers(note="none on this machine yet")),
            Source(
                "demo",
                "Simulated cluster",
                lambda: Offers(tuple(Offer(a, a, b) for a, b in scenarios)),
                hint="nothing real is touched",
            ),
            Source(
                "ssh",
                "From ~/.ssh/config",
                lambda: Offers(tuple(Offer(one, one) for one in ("gpu-a", "gpu-b"))),
                hint="Space chooses several",
                several=True,
            ),
        )
    )


SYMPTOMS = {
    "slow": Symptom(
        title="Some nodes make the job slower than others",
        hint="same code, different step time",
        asked="One slow node sets the pace of all. It is found by comparing every node with its peers.",
        steps=(
            "GPU clocks: a hot GPU makes every other one wait.",
            "Versions, compared over the nodes: the odd one out is the first suspect.",
        ),
    ),
    "gpu": Symptom(
        title="GPU errors",
        hint="Xid, ECC, CUDA error, fell off the bus",
        asked="Some Xids are the program's fault and some are the hardware's.",
        steps=("The kernel log of this boot and the one before: every Xid with its time.",),
    ),
    "everything": Symptom(
        title="I don't know",
        hint="reads everything and judges all of it",
        asked="It decides what is read first.",
    ),
}
"""Made up, so that these pictures change with the screens and not with every word of the references."""


def intake() -> Screen[Any]:
    known = replace(knowledge.load(), symptoms=SYMPTOMS)
    starts = ("ProxyCommand aws ssm start-session …",)
    return IntakeScreen(known, "128 hosts by SSH: worker-[001-128]", NOW, starts=starts)


def acknowledge() -> Screen[Any]:
    return AcknowledgeScreen("an EFA port is not ACTIVE", NOW)


def prompt() -> Screen[Any]:
    return PromptScreen("Passphrase for /home/me/.ssh/id_ed25519", secret=True)


SCREENS: dict[str, Callable[[], Screen[Any]]] = {
    "chooser": chooser,
    "intake": intake,
    "acknowledge": acknowledge,
    "prompt": prompt,
}
SIZES = {"80x24": (80, 24), "120x40": (120, 40)}


async def settled(pilot: Pilot[None], then: tuple[str, ...] = ()) -> None:
    """The screen is up, its list has come, the keys were answered."""
    screen = pilot.app.asked  # type: ignore[attr-defined]
    await until(pilot, lambda: screen in pilot.app.screen_stack and screen.is_mounted)
    if isinstance(screen, ChooserScreen):
        await until(pilot, lambda: len(screen.offers) == len(screen.sources))
    if then:
        await pilot.press(*then)
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SCREENS)
def test_in_colour(snap_compare: Compare, name: str, size: str) -> None:
    assert snap_compare(Asking(SCREENS[name]()), terminal_size=SIZES[size], run_before=settled)


@pytest.mark.parametrize("name", SCREENS)
def test_without_colour(snap_compare: Compare, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(Asking(SCREENS[name]()), run_before=settled)


@pytest.mark.parametrize("name", SCREENS)
def test_in_ascii(snap_compare: Compare, name: str) -> None:
    assert snap_compare(Asking(SCREENS[name](), ascii_only=True), run_before=settled)


def test_on_a_light_background(snap_compare: Compare) -> None:
    assert snap_compare(Asking(intake(), theme="straggler-light"), run_before=settled)


@pytest.mark.parametrize("size", SIZES)
def test_guided_says_what_will_be_read(snap_compare: Compare, size: str) -> None:
    assert snap_compare(
        Asking(intake()), terminal_size=SIZES[size], run_before=partial(settled, then=("G", "j"))
    )


def test_hosts_that_are_ticked(snap_compare: Compare) -> None:
    keys = ("end", "space", "up", "space")
    assert snap_compare(Asking(chooser()), run_before=partial(settled, then=keys))


@pytest.mark.parametrize("size", SIZES)
def test_help_over_the_intake(snap_compare: Compare, size: str) -> None:
    async def open_help(pilot: Pilot[None]) -> None:
        await settled(pilot, then=("question_mark",))
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await pilot.pause()

    assert snap_compare(Asking(intake()), terminal_size=SIZES[size], run_before=open_help)


def test_a_terminal_that_is_too_small(snap_compare: Compare) -> None:
    async def said(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "too small" in painted(pilot))

    assert snap_compare(Asking(intake()), terminal_size=(50, 12), run_before=said)
