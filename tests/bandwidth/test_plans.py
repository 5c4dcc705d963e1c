"""What an engine is given to run: the same bytes every time, nothing outdated in it, and scripts that do what they say.

`STRAGGLER_ACCEPT_GOLDEN=1` writes the golden files again; look at the difference before it is committed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from straggler.engine.bandwidth.plans import ENGINES, pods
from tests.support.sweeps import planned, written

GOLDEN = Path(__file__).parent.parent / "golden" / "sweep"


SHELLCHECK = [shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:/usr/bin") or "shellcheck"]


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_the_same_plan_gives_the_same_bytes(engine: str) -> None:
    plan = planned(engine, rounds=2)
    files = ENGINES[engine](plan, plan.rounds)
    assert files == ENGINES[engine](planned(engine, rounds=2), plan.rounds)
    if os.environ.get("STRAGGLER_ACCEPT_GOLDEN"):
        written(plan, GOLDEN / engine)
    there = {
        str(path.relative_to(GOLDEN / engine)): path.read_text()
        for path in sorted((GOLDEN / engine).rglob("*"))
        if path.is_file()
    }
    assert dict(files) == there


OUTDATED = (
    *("FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "RDMAV_", "NCCL_PROTO", "NCCL_ALGO", "NCCL_TIMEOUT"),
    *("NCCL_BUFFSIZE", "NCCL_TUNER_PLUGIN", "NCCL_TREE_THRESHOLD", "NCCL_MIN_NCHANNELS", "btl_tcp", "pml"),
)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_efa_is_named_and_nothing_outdated_is_set(engine: str) -> None:
    plan = planned(engine)
    text = "\n".join(ENGINES[engine](plan, plan.rounds).values())
    assert "FI_PROVIDER=efa" in text
    assert [word for word in OUTDATED if word in text] == []


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_shellcheck_finds_nothing(engine: str, tmp_path: Path) -> None:
    plan = planned(engine, environment=("A=it's so",), binary="/opt/my tests/perf")
    scripts = [str(one) for one in written(plan, tmp_path).rglob("*") if one.suffix in (".sh", ".sbatch")]
    assert scripts
    done = subprocess.run(
        [*SHELLCHECK, "--shell=bash", *scripts], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    for script in scripts:
        subprocess.run(["bash", "-n", script], check=True)


def test_the_script_of_pods_is_clean_too(tmp_path: Path) -> None:
    script = tmp_path / "pod.sh"
    script.write_text("#!/bin/bash\n" + pods.SCRIPT)
    done = subprocess.run([*SHELLCHECK, str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
