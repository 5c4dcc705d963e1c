"""Pairwise results in a session on the screen: the verdict among the findings, and the ways between it and the matrix."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from straggler.engine.bandwidth.plans.base import CLOSING
from straggler.engine.bandwidth.watch import folder_source
from straggler.engine.targets.demo import demo_target
from straggler.engine.targets.replay import Replay, replay_session
from straggler.tui.panes.findings import FindingsPane
from tests.tui.driving import app_for, gathered, live_of, painted, shown, until


async def test_the_slow_node_is_the_first_finding_and_its_evidence_is_the_matrix(tmp_path: Path) -> None:
    async with app_for(demo_target("slow-node", 16), tmp_path).run_test(size=(120, 40)) as pilot:
        screen = await gathered(pilot)
        finding = screen.query_one(FindingsPane).finding
        assert finding is not None
        assert finding.id == "bandwidth.slow-node"
        await pilot.press("v")
        await shown(pilot)
        assert screen.active == "matrix"
        assert f"{finding.subjects[0]} is slow" in painted(pilot)


async def test_a_pairwise_finding_is_not_checked_by_reading_hosts_again(tmp_path: Path) -> None:
    async with app_for(demo_target("slow-node", 16), tmp_path).run_test(size=(120, 40)) as pilot:
        screen = await gathered(pilot)
        finding = screen.query_one(FindingsPane).finding
        assert finding is not None
        screen.recheck(finding)
        await pilot.pause()
        assert "straggler sweep" in painted(pilot)
        assert not live_of(pilot).running


async def test_results_that_appear_while_the_screen_is_open_are_judged(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    full = demo_target("slow-node", 16)
    assert full.results is not None
    target = replace(demo_target("healthy", 16), results=folder_source(folder), follow=True)
    async with app_for(target, tmp_path).run_test(size=(120, 40)) as pilot:
        await gathered(pilot)
        assert live_of(pilot).matrix is None
        async for name, data in full.results(False):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            await asyncio.to_thread(path.write_bytes, data + f"\n{CLOSING} 0\n".encode())
        await until(pilot, lambda: live_of(pilot).matrix is not None)
        found = lambda: {one.id for one in live_of(pilot).report.findings}  # type: ignore[union-attr]  # noqa: E731
        await until(pilot, lambda: "bandwidth.slow-node" in found())


async def test_a_recorded_session_has_its_matrix_again(tmp_path: Path) -> None:
    async with app_for(demo_target("slow-node", 8), tmp_path).run_test(size=(120, 40)) as pilot:
        await gathered(pilot)
        before = live_of(pilot).matrix
        name = live_of(pilot).session
        await pilot.press("q")
    app = app_for(None, tmp_path, replay=Replay(replay_session(name, tmp_path), None))
    async with app.run_test(size=(120, 40)) as pilot:
        await gathered(pilot)
        after = live_of(pilot).matrix
    assert before is not None
    assert after is not None
    assert before.attribution == after.attribution
