"""Driving the terminal UI in tests: a frozen clock, the demo at once, and waiting for what is seen rather than for time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot

from straggler.engine.model import Node
from straggler.engine.script import Script
from straggler.engine.targets.base import Target
from straggler.engine.targets.demo import demo_target
from straggler.engine.transports.base import Transport
from straggler.tui.app import StragglerApp
from straggler.tui.live import Live
from straggler.tui.screens.main import MainScreen
from straggler.tui.start import Start

NOW = 1_796_083_200.0
"""The demo's clock: 2026-12-01T00:00:00Z."""

PATIENCE = 20.0
"""Seconds until a condition that never comes true is a failed test."""


class Held:
    """A transport that keeps some nodes waiting for ever, as a hung node does."""

    def __init__(self, inner: Transport, held: frozenset[str]) -> None:
        self._inner, self._held = inner, held
        self.name, self.limit = inner.name, inner.limit
        self.left: set[str] = set()

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        if node.id in self._held:
            try:
                await asyncio.Event().wait()
            finally:
                self.left.add(node.id)
        async for data in self._inner.run(node, script):
            yield data

    async def close(self) -> None:
        await self._inner.close()


def holding(target: Target, *held: str) -> Target:
    """Some nodes never answer, and no pairwise run comes between what the others say."""
    return replace(target, transport=Held(target.transport, frozenset(held)), results=None)


def hosts_only(scenario: str, count: int = 16) -> Target:
    """The demo without its pairwise runs: what the nodes say of themselves."""
    return replace(demo_target(scenario, count), results=None)


def app_for(
    target: Target | str | None = "xid-79", state: Path | None = None, *, count: int = 16, **more: object
) -> StragglerApp:
    """The app as the command line would start it, with everything frozen that moves by itself; a scenario's name without its
    pairwise runs."""
    if isinstance(target, str):
        target = hosts_only(target, count)
    start = Start(
        target=target,
        symptom="everything",
        state_dir=state,
        clock=lambda: NOW,
        shown_session="20261201T000000Z-a1b2c3",
    )
    return StragglerApp(start=replace(start, **more))  # type: ignore[arg-type]


async def until(pilot: Pilot[None], what: Callable[[], object]) -> None:
    """Let the app work until something holds."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while not what():
        if asyncio.get_running_loop().time() > end:
            raise AssertionError("it never came to that")
        await pilot.pause()
        await asyncio.sleep(0.01)


def live_of(pilot: Pilot[None]) -> Live:
    live = pilot.app.live  # type: ignore[attr-defined]
    assert isinstance(live, Live)
    return live


def main_of(pilot: Pilot[None]) -> MainScreen:
    return next(one for one in pilot.app.screen_stack if isinstance(one, MainScreen))


async def gathered(pilot: Pilot[None]) -> MainScreen:
    """Wait until every node was read and judged and the panes show it."""
    await until(pilot, lambda: any(isinstance(one, MainScreen) for one in pilot.app.screen_stack))
    live = live_of(pilot)
    await until(pilot, lambda: not live.running and live.report is not None)
    return await shown(pilot)


async def shown(pilot: Pilot[None]) -> MainScreen:
    """Everything known is judged and on the panes."""
    await live_of(pilot).settled()
    screen = main_of(pilot)
    screen.beat()
    await pilot.pause()
    return screen


def painted(pilot: Pilot[None]) -> str:
    """What stands on the screen, as text."""
    width, height = pilot.app.size
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(one.text for one in strip)[:width].rstrip() for strip in strips[:height])
