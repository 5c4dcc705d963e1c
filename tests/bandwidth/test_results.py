"""Results in a session: none is passed over, whatever the symptom, and what cannot be read is not what there is not."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from straggler.engine import knowledge, triage
from straggler.engine.bandwidth import watch
from straggler.engine.bandwidth.so_far import unreadable
from straggler.engine.diagnosis import Diagnosis
from straggler.engine.model import Window
from straggler.engine.targets.demo import demo_target
from straggler.tui.commands import check


def written(scenario: str, count: int, folder: Path) -> None:
    """The simulated cluster's own sweep as a folder of results."""
    source = demo_target(scenario, count).results
    assert source is not None

    async def write() -> None:
        async for name, data in source(False):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    asyncio.run(write())


def report(folder: Path, state: Path, symptom: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    known = knowledge.load()
    target = replace(demo_target("healthy", 8), results=watch.folder_source(folder), follow=True)
    diagnosis = Diagnosis(target, triage.plan(symptom, known), known, Window(0, 1))
    asyncio.run(check._gather(diagnosis, state))
    check.conclude(
        diagnosis, argparse.Namespace(format="json", ascii=False, fail_on=None, require_coverage=None)
    )
    return {one["id"]: one for one in json.loads(capsys.readouterr().out)["findings"]}


def test_results_the_operator_brings_are_judged_under_every_symptom(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written("slow-node", 8, tmp_path / "results")
    assert "bandwidth.slow-node" in report(tmp_path / "results", tmp_path, "gpu-errors", capsys)


def test_a_result_that_cannot_be_read_is_a_failed_run_and_not_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written("healthy", 8, tmp_path / "results")
    denied = (
        tmp_path
        / "results/round-01"
        / sorted(one.name for one in (tmp_path / "results/round-01").iterdir())[0]
    )
    real = watch._read
    refusal = unreadable(PermissionError(13, "Permission denied"))
    monkeypatch.setattr(watch, "_read", lambda path, seen: refusal if path == denied else real(path, seen))
    found = report(tmp_path / "results", tmp_path, "uneven-performance", capsys)
    said = json.dumps(found["bandwidth.pair-failed"])
    assert "Permission denied" in said
    assert found["bandwidth.pair-failed"]["level"] == "UNKNOWN"


def test_a_file_nobody_may_open_is_handed_on_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a__b.txt").write_text("x")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(watch.os, "open", refuse)

    async def read() -> list[tuple[str, bytes]]:
        return [one async for one in watch.present(tmp_path)]

    [(name, data)] = asyncio.run(read())
    assert name == "a__b.txt"
    assert b"Permission denied" in data


def test_a_node_that_fails_alone_again_is_a_failed_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written("unreachable-nodes", 8, tmp_path / "results")
    assert any((tmp_path / "results").glob("alone-*/worker-*.txt"))
    found = report(tmp_path / "results", tmp_path, "uneven-performance", capsys)
    assert "no result that is known" not in json.dumps(list(found.values()))


def test_a_file_in_which_nothing_is_recognised_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written("healthy", 8, tmp_path / "results")
    (tmp_path / "results/holiday.txt").write_text("sun and sea\n")
    found = report(tmp_path / "results", tmp_path, "uneven-performance", capsys)
    assert "no result that is known in holiday.txt" in json.dumps(found["bandwidth.not-covered"])
