"""What an operator can rely on in the matrix pane, and how it looks in every state."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from textual.pilot import Pilot

from straggler.engine.bandwidth.model import Blame, Doubt, Kind, Metric, Run, RunState
from straggler.engine.bandwidth.picture import Picture
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.model import Evidence, Finding, Level, Placement, Priority
from straggler.tui.app import StragglerApp
from straggler.tui.live import Live
from straggler.tui.panes.matrix import MatrixPane
from straggler.tui.panes.nodes import NodesPane
from straggler.tui.panes.remedy import RemedyPane
from straggler.tui.panes.text import flow
from tests.support import matrices
from tests.support.matrices import SIZE, attributed, matrix, names, view
from tests.tui.driving import app_for, gathered, live_of, painted, until
from tests.tui.test_snapshots import SIZES, pressing

Show = Callable[[MatrixView | None], None]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Show:
    """What the session has read of results; another call is another beat's news."""
    now: list[MatrixView | None] = [None]
    monkeypatch.setattr(Live, "matrix", property(lambda self: now[0]))

    def show(one: MatrixView | None) -> None:
        now[0] = one

    return show


async def opened(pilot: Pilot[None]) -> MatrixPane:
    screen = await gathered(pilot)
    await pilot.press("4")
    await pilot.pause()
    return screen.query_one(MatrixPane)


async def news(pilot: Pilot[None]) -> None:
    live_of(pilot).changed = True
    await gathered(pilot)


def app(state: Path, count: int = 1, **more: Any) -> StragglerApp:
    return app_for("healthy", state, count=count, **more)


# Looks.

FLEETS: dict[str, Callable[[], MatrixView | None]] = {**matrices.FLEETS, "empty": lambda: None}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("look", ["colour", "mono", "ascii"])
@pytest.mark.parametrize("name", FLEETS)
def test_every_state(
    snap_compare: Any,
    tmp_path: Path,
    results: Show,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    look: str,
    size: tuple[int, int],
) -> None:
    results(FLEETS[name]())
    if look == "mono":
        monkeypatch.setenv("NO_COLOR", "1")
    one = app(tmp_path, ascii_only=look == "ascii")
    assert snap_compare(one, terminal_size=size, run_before=pressing("4"))


@pytest.mark.parametrize("name", ["slow-node", "failed-pairs"])
def test_on_a_light_terminal(snap_compare: Any, tmp_path: Path, results: Show, name: str) -> None:
    results(FLEETS[name]())
    one = app(tmp_path, theme="straggler-light")
    assert snap_compare(one, terminal_size=(120, 40), run_before=pressing("4"))


def test_numbers_for_signs(snap_compare: Any, tmp_path: Path, results: Show) -> None:
    results(matrices.slow_node())
    assert snap_compare(app(tmp_path), terminal_size=(120, 40), run_before=pressing("4", "w", "n"))


def test_by_score(snap_compare: Any, tmp_path: Path, results: Show) -> None:
    results(matrices.majority_slow(64))
    assert snap_compare(app(tmp_path), terminal_size=(80, 24), run_before=pressing("4", "o"))


# The cursor.


async def test_until_it_is_moved_the_cursor_stands_on_the_first_verdict(
    tmp_path: Path, results: Show
) -> None:
    results(matrices.slow_link())
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        pane = await opened(pilot)
        assert pane.pair == ("worker-003", "worker-019")
        assert "worker-003 × worker-019" in painted(pilot)


async def test_the_cursor_stays_on_its_pair_when_nodes_are_added_and_the_order_changes(
    tmp_path: Path, results: Show
) -> None:
    results(matrices.healthy(12))
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        pane = await opened(pilot)
        await pilot.press("j", "j", "j", "l", "l")
        held = pane.pair
        assert held == ("worker-004", "worker-004")
        await pilot.press("l")
        held = pane.pair
        more = ("aaa-first", *names(20))
        one = matrix(more, lambda a, b: 471.0)
        results(view(one, attributed(one), matrices.az_of(20), 2))
        await news(pilot)
        assert pane.pair == held
        await pilot.press("o")
        assert pane.pair == held
        foot = painted(pilot).splitlines()[-4:]
        assert any(f"{held[0]} × {held[1]}" in line for line in foot)


async def test_n_goes_from_verdict_to_verdict_and_on_to_what_is_in_doubt(
    tmp_path: Path, results: Show
) -> None:
    results(matrices.failed_pairs())
    async with app(tmp_path).run_test(size=(120, 40)) as pilot:
        pane = await opened(pilot)
        await pilot.press("n")
        assert pane.pair == ("worker-021", "worker-021")
        assert "✗ failed: exit status 3" in painted(pilot)
        await pilot.press("n")
        assert pane.pair == ("worker-002", "worker-006")
        assert "cut off: no closing line" in painted(pilot)
        await pilot.press("N")
        assert pane.pair == ("worker-021", "worker-021")


async def test_of_many_verdicts_as_many_as_fit_are_named_and_the_rest_counted(
    tmp_path: Path, results: Show
) -> None:
    one = matrix(names(30), lambda a, b: 300.0 if a < 6 else 471.0)
    slow = tuple(
        Blame(Kind.NODE, (name,), -0.36, 0.95, "", 29, 29, (name, "worker-030")) for name in names(6)
    )
    results(view(one, attributed(one, slow)))
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        shown = painted(pilot)
        assert "worker-001 is slow (−36 %, 95 % sure, 29 of 29 pairs)" in shown
        assert "worker-002 is slow (−36 %, 95 % sure, 29 of 29 pairs)" in shown
        assert "… and 4 more; n goes from one to the next" in shown


async def test_both_directions_sizes_and_runs_of_a_cell_are_shown(tmp_path: Path, results: Show) -> None:
    back = Run("back.log", "nccl-tests", ("b", "a"), RunState.OK, points={SIZE: 330.0})
    one = matrix(("a", "b", "c"), lambda a, b: 471.0 - 150 * (b == 1), more={(0, 1): (back,)})
    results(view(one, attributed(one)))
    async with app(tmp_path).run_test(size=(120, 40)) as pilot:
        pane = await opened(pilot)
        assert pane.pair == ("a", "b")
        shown = painted(pilot)
        assert "a→b 321, b→a 330" in shown or ("a→b 321" in shown and "b→a 330" in shown)
        assert "2 runs" in shown
        assert "1 GiB 289" in shown


async def test_a_pair_that_was_not_run_says_so_and_how_its_nodes_do(tmp_path: Path, results: Show) -> None:
    results(matrices.partial())
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("g", "home", "l")
        shown = painted(pilot)
        assert "worker-001 × worker-002" in shown
        assert "not run: nothing is known of this pair" in shown


async def test_the_cursor_reaches_every_corner_and_no_further(tmp_path: Path, results: Show) -> None:
    one = matrix(names(100), lambda a, b: 471.0)
    results(view(one, attributed(one)))
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        pane = await opened(pilot)
        await pilot.press("greater_than_sign", "end", "down", "right")
        assert pane.pair == ("worker-100", "worker-100")
        assert "worker-100 by itself" in painted(pilot)
        assert any(line.startswith("  100") for line in painted(pilot).splitlines())
        await pilot.press("g", "home", "up", "left")
        assert pane.pair == ("worker-001", "worker-001")
        await pilot.press("pagedown")
        assert pane.at[0] > 5


async def test_a_node_is_found_by_part_of_its_name(tmp_path: Path, results: Show) -> None:
    results(matrices.healthy(200))
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        pane = await opened(pilot)
        await pilot.press("slash", *"er-17", "enter")
        assert pane.pair is not None
        assert pane.pair[0] == "worker-170"
        assert any(line.startswith("  170") for line in painted(pilot).splitlines())
        await pilot.press("escape", "down")
        assert "/er-17" not in painted(pilot)


async def test_a_click_puts_the_cursor_on_the_cell(tmp_path: Path, results: Show) -> None:
    one = matrix(names(40), lambda a, b: 471.0)
    results(view(one, attributed(one)))
    async with app(tmp_path).run_test(size=(120, 40)) as pilot:
        pane = await opened(pilot)
        lines = painted(pilot).splitlines()
        row = next(at for at, line in enumerate(lines) if " 004 " in line)
        column = lines[row].index("004 ") + len("004 ") + 6
        await pilot.click(offset=(column, row))
        assert pane.pair in {("worker-004", "worker-004"), ("worker-004", "worker-007")}
        assert " × ".join(pane.pair or ()) in painted(pilot) or "worker-004 by itself" in painted(pilot)


# Jumps.


def finding(subject: str) -> Finding:
    return Finding(
        "bandwidth.slow-node",
        Level.WARN,
        Priority.P1,
        "a node is slow with every partner",
        (subject,),
        (),
        (Evidence("results", "322 GB/s"),),
        0.97,
        "",
        "",
        "",
        "remedies/bandwidth.md#a-slow-node",
        "",
        "bandwidth",
    )


async def test_enter_on_a_verdict_opens_its_remedy(tmp_path: Path, results: Show) -> None:
    results(matrices.slow_node())
    async with app(tmp_path, count=16).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        live = live_of(pilot)
        assert live.report is not None
        live.report = replace(live.report, findings=(finding("worker-011"), *live.report.findings))
        await pilot.press("enter")
        screen = await gathered(pilot) if not pilot.app.screen_stack else pilot.app.screen
        await until(pilot, lambda: screen.query_one(RemedyPane).remedy is not None)
        remedy = screen.query_one(RemedyPane).remedy
        assert remedy is not None
        assert remedy.finding.id == "bandwidth.slow-node"


async def test_enter_on_a_boundary_opens_the_remedy_of_that_boundary(tmp_path: Path, results: Show) -> None:
    results(matrices.cross_az())
    other, wanted = (
        replace(
            finding("worker-017"),
            id="bandwidth.slow-boundary",
            title=f"traffic between {sides} is slow (−21 %)",
            reference="remedies/bandwidth.md#slow-boundary",
        )
        for sides in ("AZ a and b", "AZ use1-az1 and use1-az2")
    )
    async with app(tmp_path, count=24).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("4")
        live = live_of(pilot)
        assert live.report is not None
        live.report = replace(live.report, findings=(other, wanted, *live.report.findings))
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one(RemedyPane).remedy is not None)
        assert "use1-az1 and use1-az2" in painted(pilot).replace("\n", " ")
        assert screen.active == "remedy"
        assert "1 Symptom  2 Nodes  3 Output  4 Matrix  5 Findings  6 Remedy" in painted(pilot)


async def test_enter_on_a_pair_in_doubt_opens_what_to_do_about_it(tmp_path: Path, results: Show) -> None:
    found = matrices.partial()
    results(found)
    pair = found.attribution.doubts[0].pair
    wanted = replace(
        finding(pair[0]),
        id="bandwidth.repeat-pair",
        level=Level.INFO,
        subjects=pair,
        reference="remedies/bandwidth.md#repeat-pair",
    )
    async with app(tmp_path, count=24).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("4", "n")
        live = live_of(pilot)
        assert live.report is not None
        live.report = replace(live.report, findings=(*live.report.findings, wanted))
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one(RemedyPane).remedy is not None)
        remedy = screen.query_one(RemedyPane).remedy
        assert remedy is not None
        assert remedy.finding.id == "bandwidth.repeat-pair"
        assert screen.active == "remedy"


async def test_the_way_to_tell_a_false_alarm_stands_once_in_a_remedy(tmp_path: Path, results: Show) -> None:
    results(matrices.slow_node())
    told = replace(finding("worker-011"), false_alarm="it rains", reference="remedies/bandwidth.md#slow-node")
    async with app(tmp_path, count=16).run_test(size=(120, 60)) as pilot:
        screen = await gathered(pilot)
        live = live_of(pilot)
        assert live.report is not None
        live.report = replace(live.report, findings=(told, *live.report.findings))
        await pilot.press("4", "enter")
        await until(pilot, lambda: "Not this if" in painted(pilot))
        await pilot.press("6", "greater_than_sign")
        await pilot.pause()
        assert "it rains" not in painted(pilot)
        assert screen.query_one(RemedyPane).remedy is not None


async def test_enter_elsewhere_opens_the_node_of_the_row(tmp_path: Path, results: Show) -> None:
    results(matrices.slow_node())
    async with app(tmp_path, count=16).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("g", "home", "j", "enter")
        await pilot.pause()
        screen = pilot.app.screen
        assert screen.query_one(NodesPane).node == "worker-002"
        assert screen.active == "output"  # type: ignore[attr-defined]
        await pilot.press("4", "escape")
        assert screen.active == "findings"  # type: ignore[attr-defined]


async def test_a_node_that_is_only_in_the_results_is_said_to_be_none_of_the_target(
    tmp_path: Path, results: Show
) -> None:
    results(matrices.healthy(40))
    async with app(tmp_path, count=16).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("greater_than_sign", "enter")
        await until(pilot, lambda: "worker-040 is no node of this target" in painted(pilot))


async def test_e_writes_every_format_and_says_where(tmp_path: Path, results: Show) -> None:
    results(matrices.slow_node())
    async with app(tmp_path).run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pilot.press("e")
        await until(pilot, lambda: f"written: {tmp_path}" in painted(pilot))
    for ending in ("svg", "csv", "json", "txt"):
        written = tmp_path / f"matrix-20261201T000000Z.{ending}"
        assert written.stat().st_mode & 0o777 == 0o600
        assert "worker-011" in written.read_text()
    assert json.loads((tmp_path / "matrix-20261201T000000Z.json").read_text())["schema"] == 1


async def test_y_copies_what_is_said_of_matrix_and_cell(tmp_path: Path, results: Show) -> None:
    results(matrices.slow_node())
    async with app(tmp_path).run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pilot.press("y")
        await until(pilot, lambda: (tmp_path / "copied.txt").exists())
    text = (tmp_path / "copied.txt").read_text()
    assert "worker-011 is slow" in text
    assert "against the median" in text


# What it costs, and what it keeps out.


async def test_only_rows_on_the_screen_are_ever_made(
    tmp_path: Path, results: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: set[int] = set()
    row = Picture.row

    def counted(self: Picture, place: int) -> str:
        made.add(place)
        return row(self, place)

    monkeypatch.setattr(Picture, "row", counted)
    results(matrices.healthy(400))
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        assert 0 < len(made) <= 24


async def test_a_matrix_that_did_not_change_is_not_arranged_again(tmp_path: Path, results: Show) -> None:
    results(matrices.healthy())
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        pane = await opened(pilot)
        before = pane.picture
        await news(pilot)
        assert pane.picture is before


async def test_a_matrix_nobody_looks_at_costs_nothing(tmp_path: Path, results: Show) -> None:
    results(matrices.healthy())
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        assert screen.query_one(MatrixPane).picture is None
        assert "4 Matrix" in painted(pilot)


async def test_a_paused_screen_never_says_that_there_is_no_result(tmp_path: Path, results: Show) -> None:
    results(matrices.slow_node())
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        await pilot.press("p", "4")
        assert "worker-011 is slow" in painted(pilot)
        results(matrices.healthy())
        await news(pilot)
        assert "worker-011 is slow" in painted(pilot)


async def test_names_from_files_cannot_act_or_hide(tmp_path: Path, results: Show) -> None:
    evil = ("\x1b[31mred", "[bold]b[/bold]", "a\u202eb", "n" * 500)
    why = "\x1b]52;c;AAAA\x07"
    run = Run("\x1b[2J.log", "x\x1b", evil[:2], RunState.FAILED, why)
    one = matrix(evil, lambda a, b: RunState.FAILED if (a, b) == (0, 1) else 400.0)
    one = replace(one, detail=MappingProxyType({**one.detail, (0, 1): (run,)}), collective="\x1b[0m")
    where = {evil[0]: Placement("\x1b[7maz"), evil[2]: Placement("b")}
    doubt = Doubt((evil[0], evil[1]), None, why)
    results(view(one, attributed(one, (), (doubt,)), where))
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        shown = painted(pilot)
        assert "\x1b" not in shown
        assert "\x07" not in shown
        assert "\u202e" not in shown
        assert "failed: \\x1b]52;c" in shown
        await pilot.press("l", "j", "w", "o", "n")
        assert "[bold]b[/bold]" in painted(pilot)


async def test_the_state_reads_without_colour(
    tmp_path: Path, results: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    results(matrices.failed_pairs())
    async with app(tmp_path).run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        lines = painted(pilot).splitlines()
        row = next(line for line in lines if " 002 " in line)
        assert "~" in row
        assert "x" in row
        assert next(line for line in lines if "✗ 021" in line).count("x") == 24


async def test_of_a_latency_the_higher_value_is_the_slow_one(tmp_path: Path, results: Show) -> None:
    one = matrix(names(6), lambda a, b: 30.0 if 2 in (a, b) else 15.0, metric=Metric.LATENCY, collective=None)
    results(view(one, attributed(one)))
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        rows = [line.split() for line in painted(pilot).splitlines() if line.startswith("  00")]
        assert rows[0][1:] == ["·", "9", "4", "9", "9", "9"]
        assert rows[2][1:] == ["4", "4", "·", "4", "4", "4"]


async def test_the_pane_says_how_results_get_here(tmp_path: Path, results: Show) -> None:
    async with app(tmp_path).run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        shown = painted(pilot)
        assert "straggler sweep" in shown
        assert "--results DIR" in shown
        await pilot.press("j", "n", "w", "o", "e", "enter", "pagedown", "end")
        assert "No bandwidth result yet" in painted(pilot)


def test_every_pair_has_one_sign_in_both_halves() -> None:
    picture = Picture(matrices.failed_pairs(), range(24))
    rows = [picture.row(at) for at in range(24)]
    assert all(rows[a][b] == rows[b][a] for a, b in combinations(range(24), 2))


async def test_a_failed_pair_says_once_that_it_failed(tmp_path: Path, results: Show) -> None:
    one = matrix(names(4), lambda a, b: RunState.FAILED if (a, b) == (0, 1) else 400.0)
    told = replace(one.detail[0, 1][0], why="failed in NCCL: unhandled cuda error")
    one = replace(one, detail=MappingProxyType({**one.detail, (0, 1): (told,)}))
    results(view(one, attributed(one)))
    async with app(tmp_path).run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        assert "failed in NCCL: unhandled cuda error" in painted(pilot)
        assert "failed: failed" not in painted(pilot)


def test_a_long_set_of_nodes_is_parted_at_its_commas() -> None:
    nodes = ",".join(f"{number:04}" for number in range(0, 40, 2))
    lines = ["".join(text for text, _ in one) for one in flow([(f"worker-[{nodes}]", "")], 30)]
    assert len(lines) > 2
    assert all(len(one) <= 30 for one in lines)
    assert all(one.endswith(",") for one in lines[:-1])
    assert "".join(lines) == f"worker-[{nodes}]"
