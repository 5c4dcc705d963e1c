"""Which round comes next while a sweep runs: what was planned, then what would settle the verdict, and never more than agreed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from straggler.engine.bandwidth import schedule, sweep
from straggler.engine.bandwidth.model import Attribution, Blame, Doubt, Kind, Standing
from straggler.engine.bandwidth.plans.base import Load, Plan, result
from straggler.engine.bandwidth.rounds import Rounds

NODES = tuple("abcdef")
LOAD = Load("/x/all_reduce_perf", 8, 0, (1 << 20, 1 << 20), 1, 1, 30, 5, 10)
PLAN = Plan("ssh", NODES, (schedule.round_zero(NODES), *schedule.rounds(NODES, {}, 0)), LOAD, 0)
BLAME = Blame(Kind.NODE, ("c",), -0.5, 0.99, "low", 2, 2)
DOUBT = Doubt(("a", "b"), -0.1, "once")


def said(*, settled: bool, blames: tuple[Blame, ...] = (), doubts: tuple[Doubt, ...] = ()) -> Attribution:
    return Attribution(blames, doubts, 1.0, 1.0, {}, dict.fromkeys(NODES, Standing.CLEARED), settled=settled)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    sweep.start(PLAN, tmp_path / "out")
    return tmp_path / "out"


def asked(
    out: Path, judge: Callable[[Plan], Attribution], *, extra: int = 5, whole: bool = False
) -> tuple[list[str], Rounds]:
    """The rounds it gives, until there is none, as `number:runs`."""
    rounds = Rounds(PLAN, out, judge, extra=extra, repeats=3, whole=whole)
    agreed, given = (rounds.most, rounds.most_runs), []

    async def all_of_them() -> None:
        while (one := await rounds.next()) is not None:
            given.append(("alone " if one.alone else "") + f"{one.number}:{len(one.members)}")

    asyncio.run(all_of_them())
    assert len(given) <= agreed[0]
    assert sum(int(one.split(":")[1]) for one in given) <= agreed[1]
    return given, rounds


PLANNED = ["0:6", "1:3", "2:3", "3:3", "4:3", "5:3"]


def test_with_nobody_accused_all_that_was_planned_is_run(out: Path) -> None:
    """A slow link shows in its own pair only."""
    given, rounds = asked(out, lambda plan: said(settled=True))
    assert given == PLANNED
    assert rounds.spared == 0


def test_once_a_verdict_stands_the_rest_is_spared(out: Path) -> None:
    given, rounds = asked(out, lambda plan: said(settled=True, blames=(BLAME,)))
    assert given == PLANNED[:2]
    assert rounds.spared == 4


def test_pairs_that_were_asked_for_are_all_run(out: Path) -> None:
    given, _ = asked(out, lambda plan: said(settled=True, blames=(BLAME,)), whole=True, extra=0)
    assert given == PLANNED


def test_what_is_in_doubt_is_repeated_alone_as_often_as_was_agreed(out: Path) -> None:
    given, _ = asked(out, lambda plan: said(settled=False, doubts=(DOUBT,)), extra=2)
    assert given == [*PLANNED, "alone 1:1", "alone 2:1"]
    kept = sweep.read(out)
    assert kept is not None
    assert [one.alone for one in kept.rounds[-2:]] == [True, True], "the plan on disk has them"


def test_results_that_are_there_are_not_run_again(out: Path) -> None:
    for one in PLAN.rounds[:3]:
        for member in one.members:
            (out / result(one, member)).write_text("x")
    given, _ = asked(out, lambda plan: said(settled=True))
    assert given == PLANNED[3:]
