"""What an operator can rely on when pressing keys on the main screen."""

from __future__ import annotations

import asyncio
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from straggler.engine.diagnosis import NodeState
from straggler.engine.model import Level, Node, Status
from straggler.engine.simcluster import SAYS, Reply
from straggler.engine.targets.demo import demo_target
from straggler.engine.targets.replay import Replay, replay_session
from straggler.tui import glyphs
from straggler.tui.glyphs import Mark
from straggler.tui.panes.findings import FindingsPane
from straggler.tui.panes.nodes import NodesPane
from straggler.tui.panes.output import OutputPane
from straggler.tui.panes.remedy import RemedyPane
from straggler.tui.rows import cards
from straggler.tui.rows import row as make_row
from tests.tui.driving import app_for, gathered, holding, live_of, painted, shown, until


async def test_the_worst_finding_stands_first_and_enter_opens_its_remedy(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        first = screen.query_one(FindingsPane).finding
        assert first is not None
        assert first.level is Level.FAIL
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one(RemedyPane).remedy is not None)
        assert screen.active == "remedy"
        assert "Xid 79" in painted(pilot)


async def test_a_filter_matches_any_name_of_a_node(tmp_path: Path) -> None:
    target = demo_target("healthy", 40)
    wanted = target.nodes[17]
    async with app_for(target, tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("2", "slash", *wanted.names[0][2:10])
        await until(pilot, lambda: len(screen.query_one(NodesPane).rows) == 1)
        assert screen.query_one(NodesPane).node == wanted.id
        await pilot.press("enter")
        assert wanted.id in painted(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.query_one(NodesPane).rows) == 40)


async def test_the_cursor_stays_with_its_node_when_five_thousand_rows_are_sorted_anew(tmp_path: Path) -> None:
    def rows(worst: set[int]) -> list[object]:
        return [
            make_row(card, NodeState.ENDED, Level.FAIL if card.number in worst else Level.PASS, "", "")
            for card in cards([Node(f"node-{at:05}") for at in range(5_000)])
        ]

    async with app_for("healthy", tmp_path, count=1).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("2")
        pane = screen.query_one(NodesPane)
        pane.show(rows(set()))  # type: ignore[arg-type]
        await pilot.press("j", "j")
        held = pane.node
        assert held == "node-00002"
        pane.show(rows(set(range(100, 4_000))))  # type: ignore[arg-type]
        assert pane.node == held
        await pilot.press("s")
        assert pane.node == held
        await pilot.pause()
        assert "▌" in painted(pilot)
        assert held in next(line for line in painted(pilot).splitlines() if "▌" in line)


async def test_until_the_cursor_is_moved_the_worst_node_is_on_top(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path, count=300).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("2")
        assert screen.query_one(NodesPane).rows[0].mark is glyphs.FAIL
        assert screen.query_one(NodesPane).cursor == 0


async def test_escape_stops_the_reading_and_every_unread_node_says_so(tmp_path: Path) -> None:
    target = holding(demo_target("healthy", 6), "worker-002", "worker-005")
    async with app_for(target, tmp_path).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: pilot.app.live and live_of(pilot).progress.done == 4)
        await shown(pilot)
        assert "4/6" in painted(pilot)
        await pilot.press("escape")
        screen = await gathered(pilot)
        rows = {row.card.node: row for row in screen.query_one(NodesPane).every}
        assert "cancelled" in rows["worker-002"].note or "cancelled" in rows["worker-005"].note
        assert {name for name, row in rows.items() if row.mark is glyphs.UNKNOWN} == {
            "worker-002",
            "worker-005",
        }
        assert target.transport.left == {"worker-002", "worker-005"}  # type: ignore[attr-defined]


async def test_after_a_stop_and_reading_the_rest_nothing_says_stopped(tmp_path: Path) -> None:
    target = holding(demo_target("healthy", 6), "worker-002")
    async with app_for(target, tmp_path).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: pilot.app.live and live_of(pilot).progress.done == 5)
        await pilot.press("escape")
        await gathered(pilot)
        assert "stopped" in painted(pilot).splitlines()[1]
        target.transport._held = frozenset()  # type: ignore[attr-defined]
        await pilot.press("R")
        await until(pilot, lambda: not live_of(pilot).running and not live_of(pilot).unread())
        await gathered(pilot)
        assert "stopped" not in painted(pilot).splitlines()[1]


async def test_nodes_that_did_not_answer_are_unread_although_that_is_a_fault_by_itself(
    tmp_path: Path,
) -> None:
    async with app_for("unreachable-nodes", tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("R")
        await until(pilot, lambda: screen.notice)
        assert screen.notice is not None
        assert screen.notice.text.startswith("reading worker-[")
        await gathered(pilot)


async def test_a_node_that_did_not_answer_is_not_counted_as_an_answer(tmp_path: Path) -> None:
    async with app_for("unreachable-nodes", tmp_path).run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        await pilot.press("1")
        await until(pilot, lambda: "13/16" in painted(pilot))


@pytest.mark.parametrize("pane", ["2", "3", "4", "5"])
async def test_escape_leaves_an_empty_filter_and_keys_go_on_working(tmp_path: Path, pane: str) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(120, 40)) as pilot:
        screen = await gathered(pilot)
        await pilot.press(pane, "slash", "escape")
        assert not screen.filter_box.display
        await pilot.press("5", "enter")
        await until(pilot, lambda: screen.active == "remedy")


async def test_on_a_folded_group_the_bottom_line_says_what_enter_does_there(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        assert "Enter remedy" in painted(pilot)
        await pilot.press("end")
        await until(pilot, lambda: "Enter show or hide these" in painted(pilot))
        assert "Enter remedy" not in painted(pilot)


async def test_what_was_said_does_not_hide_the_keys_of_the_next_pane(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "q leaves" in painted(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: screen.active == "remedy")
        await until(pilot, lambda: "n next command" in painted(pilot))


async def test_a_node_is_read_again_on_r(tmp_path: Path) -> None:
    async with app_for("healthy", tmp_path, count=3).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        before = dict(live_of(pilot).diagnosis.seen["worker-002"])
        await pilot.press("2", "j", "r")
        await until(
            pilot, lambda: live_of(pilot).diagnosis.seen["worker-002"] != before or not live_of(pilot).running
        )
        await gathered(pilot)
        after = live_of(pilot).diagnosis.seen["worker-002"]
        assert all(after[name] is not before[name] for name in before)
        assert screen.query_one(NodesPane).node == "worker-002"


async def test_a_finding_checked_again_shows_before_and_after(tmp_path: Path) -> None:
    target = demo_target("xid-79", 8)
    async with app_for(target, tmp_path).run_test(size=(120, 40)) as pilot:
        screen = await gathered(pilot)
        finding = screen.query_one(FindingsPane).finding
        assert finding is not None
        # The node gets well: the same simulated machine, without its fault.
        nodes = target.transport._nodes  # type: ignore[attr-defined]
        sick = finding.subjects[0]
        nodes[sick] = replace(nodes[sick], faults=frozenset())
        await pilot.press("c")
        await until(pilot, lambda: live_of(pilot).rechecks)
        await shown(pilot)
        text = painted(pilot)
        assert "re-checked" in text
        assert "before: FAIL on 1 node" in text
        assert "FAIL" not in text.split("after:")[1].split("\n")[0]


async def test_copy_writes_a_private_file_and_says_where(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("y")
        copied = tmp_path / "copied.txt"
        await until(pilot, lambda: screen.notice is not None and "copied" in screen.notice.text)
        assert stat.S_IMODE(copied.stat().st_mode) == 0o600
        text = copied.read_text()
        assert "Xid 79" in text
        assert not text.endswith("\n")
        assert screen.notice is not None
        assert str(copied) in screen.notice.text


async def test_what_a_node_says_is_shown_letter_by_letter_and_never_as_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "[bold red]x[/] [@click=app.quit]go[/]\n\x1b]52;c;aGk=\x07\x1b[2J \u202egnp\n"
    monkeypatch.setattr(
        "straggler.engine.transports.simulated.SAYS", {**SAYS, "governor": lambda node: Reply(hostile)}
    )
    async with app_for("healthy", tmp_path, count=2).run_test(size=(120, 40)) as pilot:
        screen = await gathered(pilot)
        await pilot.press("3")
        pane = screen.query_one(OutputPane)
        await until(pilot, lambda: pane.lines)
        pane.show_reply("governor")
        await pilot.pause()
        text = painted(pilot)
        assert "[bold red]x[/] [@click=app.quit]go[/]" in text
        assert "\\x1b]52;c;aGk=\\x07\\x1b[2J" in text
        assert "\\u202e" in text
        assert "\x1b" not in text


async def test_a_hostile_node_name_stays_a_name(tmp_path: Path) -> None:
    target = demo_target("healthy", 1)
    named = replace(target.nodes[0], names=("[red]x[/]", "\x1b[31m"))
    async with app_for(replace(target, nodes=(named,)), tmp_path).run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        await pilot.press("2")
        await pilot.pause()
        assert "[red]x[/]" in painted(pilot)
        assert "\\x1b[31m" in painted(pilot)


async def test_a_resize_changes_between_one_pane_and_three(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        assert "1 Symptom" in painted(pilot)
        await pilot.resize_terminal(140, 40)
        await until(pilot, lambda: screen.wide)
        await pilot.pause()
        text = painted(pilot)
        assert "2 Nodes" in text
        assert "5 Findings" in text
        assert "6 Remedy" in text
        assert "1 Symptom" not in text
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: not screen.wide)
        await pilot.pause()
        assert "1 Symptom" in painted(pilot)


async def test_keys_nobody_bound_do_nothing(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        before = painted(pilot)
        await pilot.press(
            "z", "w", "8", "left_square_bracket", "left_curly_bracket", "at", "ctrl+s", "ctrl+o", "f5"
        )
        await pilot.pause()
        assert (screen.active, painted(pilot)) == ("findings", before)


async def test_guided_mode_turns_pages_and_opens_the_remedy(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path, guided=True).run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        assert "Finding 1 of" in painted(pilot)
        assert "How sure" in painted(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: screen.active == "remedy")
        await pilot.press("escape")
        assert screen.active == "guided"
        await pilot.press("G")
        assert screen.active == "findings"


async def test_a_paused_screen_stands_still_and_loses_nothing(tmp_path: Path) -> None:
    target = holding(demo_target("healthy", 3), "worker-001")
    async with app_for(target, tmp_path).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: pilot.app.live and live_of(pilot).progress.done == 2)
        screen = await shown(pilot)
        await pilot.press("p")
        marks = [row.mark for row in screen.query_one(NodesPane).every]
        await pilot.press("escape")
        await until(pilot, lambda: not live_of(pilot).running)
        screen.beat()
        assert [row.mark for row in screen.query_one(NodesPane).every] == marks
        await pilot.press("p")
        await shown(pilot)
        assert [row.mark for row in screen.query_one(NodesPane).every] != marks


async def test_a_recorded_session_shows_the_same_findings_and_reads_nothing(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path).run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        found = [one.id for one in live_of(pilot).report.findings]  # type: ignore[union-attr]
        name = live_of(pilot).session
        await pilot.press("q")
    again = app_for(None, tmp_path, symptom=None, replay=Replay(replay_session(name, tmp_path)))
    async with again.run_test(size=(80, 24)) as pilot:
        screen = await gathered(pilot)
        assert [one.id for one in live_of(pilot).report.findings] == found  # type: ignore[union-attr]
        assert "RECORDING" in painted(pilot)
        await pilot.press("2", "r")
        assert screen.notice is not None
        assert "recording" in screen.notice.text


async def test_leaving_says_how_to_open_the_session_again(tmp_path: Path) -> None:
    app = app_for("healthy", tmp_path, count=2)
    async with app.run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        name = live_of(pilot).session
        await pilot.press("q")
    assert f"straggler replay {name}" in app.parting
    assert replay_session(name, tmp_path).ended


async def test_leaving_in_the_middle_keeps_what_came(tmp_path: Path) -> None:
    app = app_for(holding(demo_target("healthy", 3), "worker-003"), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.live and live_of(pilot).progress.done == 2)
        name = live_of(pilot).session
        await pilot.press("q")
    session = replay_session(name, tmp_path)
    read = {one.node for one in session.events if getattr(one, "text", "")}
    assert read == {"worker-001", "worker-002"}
    assert session.ended
    said = {one.node for one in session.events if getattr(one, "status", None) is Status.CANCELLED}
    assert said == {"worker-003"}


async def test_two_judgings_never_run_at_once_and_the_last_word_is_judged(tmp_path: Path) -> None:
    async with app_for("xid-79", tmp_path, count=64).run_test(size=(80, 24)) as pilot:
        await gathered(pilot)
        live = live_of(pilot)
        running, most = 0, 0
        inner = live.diagnosis.report

        def counted(*args: object) -> object:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return inner(*args)  # type: ignore[arg-type]
            finally:
                running -= 1

        live.diagnosis.report = counted  # type: ignore[method-assign, assignment]
        await asyncio.gather(*(live.settled() for _ in range(20)))
        assert most == 1


def test_every_state_has_a_glyph_a_word_and_an_ascii_twin() -> None:
    marks = [one for one in vars(glyphs).values() if isinstance(one, Mark)]
    assert len({one.glyph for one in marks if one not in (glyphs.READING,)}) == len(marks) - 1
    assert all(
        one.word and glyphs.to_ascii(one.glyph).isascii() and len(glyphs.to_ascii(one.glyph)) == 1
        for one in marks
    )
