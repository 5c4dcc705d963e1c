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


def run(scenario: str, state: Path) -> dict[str, Any]:
    env = {**os.environ, "HOME": str(state), "XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(state)}
    args = ["check", "--demo", scenario, "--demo-nodes", "8", "--seed", "1", "--format", "json"]
    command = [sys.executable, "-m", "straggler.tui", *args]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("scenario", ["healthy", "efa-down", "xid-79", "unreachable-nodes"])
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


def test_each_fault_is_found_on_its_node_and_on_no_other(tmp_path: Path) -> None:
    for scenario, finding in (("efa-down", "rdma.port-down"), ("xid-79", "xid.79")):
        faults = [one for one in run(scenario, tmp_path)["findings"] if one["level"] in ("WARN", "FAIL")]
        assert [one["id"] for one in faults] == [finding]
        assert len(faults[0]["subjects"]) == 1
