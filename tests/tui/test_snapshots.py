"""Every pane and state as a picture, at 80x24 and 120x40, in colour, mono and ASCII. Look at a changed one before accepting it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from straggler.tui.app import StragglerApp
from straggler.tui.panes.findings import FindingsPane
from straggler.tui.panes.output import OutputPane
from straggler.tui.panes.remedy import RemedyPane
from tests.tui.driving import app_for, gathered, holding, hosts_only, live_of, main_of, painted, shown, until

Before = Callable[[Pilot[None]], Awaitable[None]]
SIZES = ((80, 24), (120, 40))
FRAME = 0.05
"""Seconds between two looks at a screen that is coming to rest: a few of its frames."""


def pressing(*keys: str) -> Before:
    async def before(pilot: Pilot[None]) -> None:
        await gathered(pilot)
        await settle(pilot)
        for key in keys:
            # What a key opens may be made beside the event loop; the next key is for what it opened.
            await pilot.press(key)
            await settle(pilot)

    return before


async def settle(pilot: Pilot[None]) -> None:
    """The remedy beside a list is drawn once the cursor rests; a picture waits for it."""
    screen = main_of(pilot)
    if screen.query_one(FindingsPane).finding is not None:
        pane = screen.query_one(RemedyPane)
        if pane.parent is not None and pane.parent.display:
            await until(pilot, lambda: pane.remedy is not None)
    if screen.query_one("#output-side").display:
        await until(pilot, lambda: screen.query_one(OutputPane).lines)
    await pilot.pause()
    await shown(pilot)
    # Scroll bars are drawn a frame after what they belong to.
    before, now = "", painted(pilot)
    while now != before:
        await pilot.pause(FRAME)
        before, now = now, painted(pilot)


async def while_reading(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: pilot.app.live and live_of(pilot).progress.done == 13)  # type: ignore[attr-defined]
    await shown(pilot)
    await settle(pilot)


async def stopped(pilot: Pilot[None]) -> None:
    await while_reading(pilot)
    await pilot.press("2", "escape")
    await gathered(pilot)


STATES: dict[str, tuple[str, Before]] = {
    "findings": ("xid-79", pressing()),
    "findings-unfolded": ("xid-79", pressing("end", "enter")),
    "nothing-wrong": ("healthy", pressing()),
    "nodes": ("xid-79", pressing("2")),
    "nodes-unreachable": ("unreachable-nodes", pressing("2")),
    "findings-unreachable": ("unreachable-nodes", pressing("5")),
    "nodes-filtered": ("xid-79", pressing("2", "slash", "0", "1", "1", "enter")),
    "output-of-one": ("xid-79", pressing("2", "enter")),
    "output-of-all": ("xid-79", pressing("3", "o", "n", "n")),
    "evidence": ("xid-79", pressing("v")),
    "remedy": ("xid-79", pressing("enter")),
    "remedy-command": ("xid-79", pressing("enter", "n")),
    "symptom": ("xid-79", pressing("1")),
    "reading": ("held", while_reading),
    "stopped": ("held", stopped),
}


def make(scenario: str, state: Path, **more: Any) -> StragglerApp:
    if scenario.startswith("held"):
        inner = hosts_only("healthy" if scenario == "held-healthy" else "efa-down", 16)
        return app_for(holding(inner, "worker-003", "worker-009", "worker-012"), state, **more)
    return app_for(scenario, state, **more)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", STATES)
def test_in_colour(snap_compare: Any, tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    scenario, before = STATES[name]
    assert snap_compare(make(scenario, tmp_path), terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["found", "nothing-wrong", "reading"])
def test_guided(snap_compare: Any, tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    scenario, before = {
        "found": ("xid-79", pressing()),
        "nothing-wrong": ("healthy", pressing()),
        "reading": ("held-healthy", while_reading),
    }[name]
    assert snap_compare(make(scenario, tmp_path, guided=True), terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["findings", "nodes-unreachable", "remedy-command", "reading"])
def test_mono(
    snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    scenario, before = STATES[name]
    assert snap_compare(make(scenario, tmp_path), terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    "name", ["findings", "nodes-unreachable", "output-of-one", "remedy-command", "reading"]
)
def test_ascii(snap_compare: Any, tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    scenario, before = STATES[name]
    assert snap_compare(make(scenario, tmp_path, ascii_only=True), terminal_size=size, run_before=before)


def test_on_a_light_terminal(snap_compare: Any, tmp_path: Path) -> None:
    app = make("xid-79", tmp_path, theme="straggler-light")
    assert snap_compare(app, terminal_size=(120, 40), run_before=pressing())
