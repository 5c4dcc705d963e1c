"""What the command line left open, asked on the screen: what to look at, then what hurts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from straggler.engine.errors import StragglerError
from straggler.tui.beside import beside
from straggler.tui.start import Start

if TYPE_CHECKING:
    from straggler.engine.targets.base import Target
    from straggler.tui.app import StragglerApp
    from straggler.tui.screens.chooser import Choice

PACE = 1.2
"""Seconds a simulated node takes, so that a person sees it work."""


async def ask(app: StragglerApp) -> Start:
    """The start with everything a session needs; leaving the second question leads back to the first."""
    start = app.start
    while True:
        if start.target is None and start.replay is None:
            start = await ask_target(app, start)
        if start.replay is not None or start.target is None or start.symptom or start.error_text:
            return start
        told = await ask_symptom(app, start, start.target)
        if told is not None:
            return told
        start = replace(start, target=None)


async def ask_target(app: StragglerApp, start: Start) -> Start:
    """The start with a target or a replay in it. Asks again until something could be opened."""
    from straggler.tui.screens.chooser import ChooserScreen
    from straggler.tui.screens.offers import sources

    trouble = typed = ""
    while True:
        screen = ChooserScreen(
            sources(start.state_dir, region=start.region, profile=start.profile), trouble, typed
        )
        choice = await app.push_screen_wait(screen)
        try:
            return await _opened(app, start, choice)
        except StragglerError as error:
            trouble = str(error)
            typed = choice.values[0] if choice.kind == "hosts" else ""


async def _opened(app: StragglerApp, start: Start, choice: Choice) -> Start:
    """Raises UsageError or FatalError with the line to show."""
    if choice.kind == "session":
        from straggler.engine.targets.replay import Replay, replay_session

        recovered = await beside(partial(replay_session, choice.values[0], start.state_dir))
        return replace(start, replay=Replay(recovered))
    return replace(start, target=await beside(partial(_target, app, choice, asyncio.get_running_loop())))


def _target(app: StragglerApp, choice: Choice, loop: asyncio.AbstractEventLoop) -> Target:
    """In a thread: reading ssh config and keys may take a while, and may ask for a passphrase."""
    if choice.kind == "demo":
        from straggler.engine.targets.demo import demo_target

        return demo_target(choice.values[0], pace=PACE)
    if choice.kind == "hyperpod":
        from straggler.engine import knowledge
        from straggler.engine.targets.hyperpod import hyperpod_target
        from straggler.tui.commands.options import config_dir

        rate = knowledge.load(config_dir()).number("ssm.sessions-a-second")
        return hyperpod_target(choice.values[0], profile=app.start.profile, rate=rate, ask=False)
    if choice.kind == "local":
        from straggler.engine.targets.local import local_target

        return local_target()
    from straggler.engine.targets.hosts import hosts_target

    def ask(what: str) -> str | None:
        return asyncio.run_coroutine_threadsafe(_ask_secret(app, what), loop).result()

    return hosts_target(",".join(choice.values), ask=ask)


async def _ask_secret(app: StragglerApp, what: str) -> str | None:
    from straggler.engine.safetext import safe
    from straggler.tui.screens.prompt import PromptScreen

    answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    await app.push_screen(
        PromptScreen(f"Passphrase for {safe(what, limit=200)}", secret=True), answer.set_result
    )
    return await answer


async def ask_symptom(app: StragglerApp, start: Start, target: Target) -> Start | None:
    """The start with the symptom, the window and the mode the operator chose; None when the question was left."""
    from straggler.engine import knowledge
    from straggler.tui.commands.options import config_dir
    from straggler.tui.screens.intake import IntakeScreen

    known = await beside(lambda: knowledge.load(config_dir()))
    screen = IntakeScreen(
        known,
        target.title,
        target.now or start.clock(),
        since=start.since,
        sudo=start.sudo,
        guided=start.guided,
        starts=target.starts,
        starter="AWS profile" if target.hyperpod is not None else "ssh config",
    )
    told = await app.push_screen_wait(screen)
    if told is None:
        return None
    return replace(
        start,
        symptom=told.symptom,
        error_text=told.error_text or None,
        since=told.since,
        sudo=told.sudo,
        guided=told.guided,
    )
