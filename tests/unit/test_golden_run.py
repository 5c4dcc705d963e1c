"""One run from the command line to the report, whole: what any part changes in it shows here as a difference to look at.

`STRAGGLER_ACCEPT_GOLDEN=1` writes the files again; look at the difference before it is committed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"
SCENARIOS = (
    "healthy",
    "efa-down",
    "xid-79",
    "unreachable-nodes",
    "slow-node",
    "slow-link",
    "cross-az",
    "tcp-fallback",
    "majority-slow",
)


def run(scenario: str, state: Path) -> dict[str, Any]:
    env = {**os.environ, "HOME": str(state), "XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(state)}
    args = ["check", "--demo", scenario, "--demo-nodes", "8", "--seed", "1", "--format", "json"]
    command = [sys.executable, "-m", "straggler.tui", *args]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_demo_reports_what_it_reported_before(scenario: str, tmp_path: Path) -> None:
    file = GOLDEN / f"{scenario}.json"
    said = run(scenario, tmp_path)
    if os.environ.get("STRAGGLER_ACCEPT_GOLDEN"):
        file.write_text(json.dumps(said, indent=1) + "\n")
    assert said == json.loads(file.read_text())


def test_a_healthy_cluster_accuses_nobody(tmp_path: Path) -> None:
    said = run("healthy", tmp_path)
    assert {one["level"] for one in said["findings"]} <= {"PASS", "INFO"}
    assert {one["state"] for one in said["nodes"]} == {"PASS"}


def faults(scenario: str, state: Path) -> list[dict[str, Any]]:
    return [one for one in run(scenario, state)["findings"] if one["level"] in ("WARN", "FAIL")]


@pytest.mark.parametrize(
    ("scenario", "found"),
    [
        ("efa-down", ["rdma.port-down"]),
        ("xid-79", ["xid.79", "bandwidth.node-failed"]),
        ("slow-node", ["bandwidth.slow-node"]),
        ("slow-link", ["bandwidth.slow-link"]),
        ("cross-az", ["bandwidth.slow-boundary"]),
        ("tcp-fallback", ["efa.not-found", "bandwidth.slow-cluster"]),
    ],
)
def test_each_fault_is_found_and_nothing_else_is(scenario: str, found: list[str], tmp_path: Path) -> None:
    assert [one["id"] for one in faults(scenario, tmp_path)] == found


def test_a_fleet_that_is_mostly_slow_is_called_so_first(tmp_path: Path) -> None:
    first, *others = faults("majority-slow", tmp_path)
    assert first["id"] == "bandwidth.slow-cluster"
    assert {one["id"] for one in others} <= {"bandwidth.slow-node"}


def test_what_failed_on_a_node_and_with_it_is_the_same_node(tmp_path: Path) -> None:
    host, pairs = faults("xid-79", tmp_path)
    assert host["subjects"] == pairs["subjects"]
    assert len(host["subjects"]) == 1
