"""The palette: every action by name, and straight to any symptom, node or finding."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from textual.command import CommandInput, CommandList, CommandPalette
from textual.pilot import Pilot

from straggler.engine import knowledge
from straggler.engine.targets.demo import demo_target
from straggler.tui.jump import MOST, Jump
from straggler.tui.screens.choices import Choices
from straggler.tui.screens.intake import IntakeScreen
from tests.tui.asking_driving import NOW, Asking, until
from tests.tui.driving import app_for, gathered, live_of, main_of, painted


async def typed(pilot: Pilot[None], words: str, first: str) -> None:
    """Open the palette, type, and wait until the first hit is the one expected."""
    await pilot.press("colon")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
    pilot.app.screen.query_one(CommandInput).value = words

    def first_hit() -> str:
        hits = pilot.app.screen.query_one(CommandList)
        return str(hits.get_option_at_index(0).prompt) if hits.option_count else ""

    await until(pilot, lambda: first_hit().startswith(first))


async def test_a_node_by_its_instance_id(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        node = live_of(pilot).diagnosis.nodes[6]
        await typed(pilot, node.names[0], f"node {node.id}")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen and screen.active == "output")
        assert screen.chosen_node == node.id


async def test_a_finding_by_part_of_its_title(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await typed(pilot, "port not active", "finding an EFA port is not ACTIVE")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen and screen.active == "remedy")
        await until(pilot, lambda: "an EFA port is not ACTIVE" in painted(pilot))


async def test_another_symptom_is_another_session_on_the_same_target(tmp_path: Path) -> None:
    app = app_for("efa-down", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        first = await gathered(pilot)
        await typed(pilot, "gpu errors", "symptom GPU errors")
        await pilot.press("enter")
        await until(pilot, lambda: app.live is not None and app.live.diagnosis.plan.symptom == "gpu-errors")
        await gathered(pilot)
        assert main_of(pilot) is not first


async def test_a_symptom_before_anything_is_read() -> None:
    app = Asking(IntakeScreen(knowledge.load(), "x", NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.asked in app.screen_stack and app.asked.query(Choices))
        await typed(pilot, "xid", "symptom GPU errors")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.asked)
        row = app.screen.query_one(Choices).current
        assert row is not None
        assert row.id == "gpu-errors"


async def test_hostile_names_are_drawn_letter_by_letter(tmp_path: Path) -> None:
    target = demo_target("healthy", 2)
    hostile = "[bold red]evil[/] [@click=app.quit]x[/]\x1b[31m"
    nodes = (replace(target.nodes[0], names=(hostile,)), *target.nodes[1:])
    app = app_for(replace(target, nodes=nodes), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await gathered(pilot)
        await typed(pilot, "evil", f"node {nodes[0].id}")
        shown = painted(pilot)
    assert "[bold red]evil[/] [@click=app.quit]x[/]" in shown
    assert "\x1b" not in shown


async def test_a_thousand_nodes_are_searched_before_the_next_key(tmp_path: Path) -> None:
    app = app_for("healthy", tmp_path, count=1024)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        jump = Jump(screen)
        await jump.startup()
        begun = time.process_time()
        hits = [hit async for hit in jump.search("worker")]
        took = time.process_time() - begun
        assert len([one for one in hits if str(one.prompt).startswith("node")]) == MOST
        assert took < 0.05
