"""Earlier sweeps of the same nodes: kept, found again, and set beside today's."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from straggler.engine import knowledge, triage
from straggler.engine.bandwidth import baseline, judging
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.diagnosis import Diagnosis
from straggler.engine.model import Window
from straggler.engine.targets.base import Target
from straggler.engine.targets.demo import demo_target
from straggler.tui import cli
from straggler.tui.commands import check
from tests.bandwidth.test_attribution import even


def view(value: float = 480.0, names: str = "abcdef") -> MatrixView:
    return judging.view(even(names, value), knowledge.load())


def lines(tmp_path: Path) -> list[bytes]:
    return (tmp_path / baseline.FILE).read_bytes().splitlines()


def keep(one: MatrixView, session: str, state: Path) -> None:
    kept = baseline.of(one, session, 1_796_000_000.0)
    assert kept is not None
    assert baseline.keep(kept, state) == ""


def test_the_last_sweep_of_the_same_nodes_is_found(tmp_path: Path) -> None:
    keep(view(450), "one", tmp_path)
    keep(view(480), "two", tmp_path)
    found = baseline.earlier(view(), lines(tmp_path))
    assert found is not None
    assert found.session == "two"
    assert found.usual == pytest.approx(480, rel=0.02)


def test_a_session_is_not_held_against_itself_nor_against_other_nodes(tmp_path: Path) -> None:
    keep(view(480), "mine", tmp_path)
    assert baseline.earlier(view(), lines(tmp_path), but="mine") is None
    assert baseline.earlier(view(names="uvwxyz"), lines(tmp_path)) is None


def test_most_nodes_the_same_is_the_same_cluster(tmp_path: Path) -> None:
    keep(view(480, "abcdxy"), "then", tmp_path)
    assert baseline.earlier(view(names="abcdef"), lines(tmp_path)) is not None


def test_damaged_lines_and_a_missing_file_hold_nothing(tmp_path: Path) -> None:
    assert baseline.Past(tmp_path).earlier(view()) is None
    (tmp_path / baseline.FILE).write_bytes(b'{"session": 1\n\xff\n')
    keep(view(480), "good", tmp_path)
    found = baseline.Past(tmp_path).earlier(view())
    assert found is not None
    assert found.session == "good"


def slower(target: Target, share: float) -> Target:
    """The same sweep with every time longer: the clock of the simulated runs is left alone, their logs are not."""
    source = target.results
    assert source is not None

    async def results(follow: bool) -> AsyncIterator[tuple[str, bytes]]:
        async for name, data in source(follow):
            if "__" not in name:
                continue
            a, b = name.rsplit("/", 1)[1].removesuffix(".txt").split("__")
            from straggler.engine.bandwidth.readers import read_runs

            [run] = read_runs(data, name)
            value = run.points[max(run.points)] * share
            yield f"{name}.csv", f"a,b,busbw_gbs,size_bytes\n{a},{b},{value},{max(run.points)}\n".encode()

    return replace(target, results=results, now=None, kind="hosts")


def report(share: float, state: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    known = knowledge.load()
    target = slower(demo_target("healthy", 8), share)
    window = Window(1_796_076_000.0, 1_796_083_200.0)
    diagnosis = Diagnosis(target, triage.plan("uneven-performance", known), known, window)
    asyncio.run(check._gather(diagnosis, state))
    args = argparse.Namespace(format="json", ascii=False, fail_on=None, require_coverage=None)
    assert check.conclude(diagnosis, args) == 0
    return list(json.loads(capsys.readouterr().out)["findings"])


def test_a_fleet_slower_than_its_own_past_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = report(0.97, tmp_path, capsys)
    assert "bandwidth.slow-cluster" not in {one["id"] for one in first}
    same = report(0.97, tmp_path, capsys)
    assert "bandwidth.slow-cluster" not in {one["id"] for one in same}
    later = report(0.9 * 0.97, tmp_path, capsys)
    [worse] = [one for one in later if one["id"] == "bandwidth.slow-cluster"]
    assert "its own earlier sweep (−10 %)" in str(worse["title"])


def test_matrix_sets_an_earlier_sweep_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("then", 480), ("now", 400)):
        rows = "".join(f"{a},{b},{value}\n" for a, b in ("xy", "xz", "yz"))
        (tmp_path / f"{name}.csv").write_text("a,b,busbw_gbs\n" + rows)
    now, then = str(tmp_path / "now.csv"), str(tmp_path / "then.csv")
    assert cli.main(["matrix", now, "--baseline", then, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["earlier"]["change"] == pytest.approx(-1 / 6, abs=1e-5)
    assert cli.main(["matrix", now, "--baseline", then]) == 0
    assert "earlier 480" in capsys.readouterr().out
