"""The batch script for Slurm, run with stand-ins for srun and scontrol: what it asks for and what it leaves behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

from straggler.engine.bandwidth.plans import ENGINES
from straggler.engine.bandwidth.plans.base import (
    result,
)
from tests.support.sweeps import fake, planned, quick, run, written


def test_the_slurm_script_asks_for_what_it_needs() -> None:
    plan = planned("slurm", rounds=3)
    text = ENGINES["slurm"](plan, plan.rounds)["sweep-round-00-to-03.sbatch"]
    asked = dict(
        line[len("#SBATCH --") :].partition("=")[::2]
        for line in text.splitlines()
        if line.startswith("#SBATCH")
    )
    assert asked["array"] == "0-3%1"
    assert asked["nodes"] == "4"
    assert asked["nodelist"] == "ip-10-1-0-[1-4]"
    assert int(asked["time"]) * 60 > plan.load.deadline + plan.load.grace
    assert "exclusive" in asked


def slurm(script: Path, out: Path, tools: Path, task: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The batch script as Slurm starts it."""
    job = {
        "SLURM_SUBMIT_DIR": str(out),
        "SLURM_ARRAY_TASK_ID": task,
        "SLURMD_NODENAME": "x",
        "SLURM_JOB_ID": "7",
    }
    return run(["bash", str(script)], out, tools, **job, **more)


SRUN = """\
echo "srun $*" >>"$CALLS"
case "$*" in *--nodelist=ip-10-1-0-2,*|*,ip-10-1-0-2\\ *) echo "ip-10-1-0-2: lost"; exit 3 ;; esac
case "$*" in *--nodelist=ip-10-1-0-4\\ *) exec sleep 60 ;; esac
echo "# all_reduce_perf as if"
"""


def test_the_slurm_script_leaves_a_result_for_every_run_whatever_comes_of_it(tmp_path: Path) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    fake(tools, "srun", SRUN)
    fake(tools, "scontrol", 'echo "NodeName=x Gres=gpu:8(S:0-1) State=IDLE"')
    plan = quick(planned("slurm", rounds=1), tools, deadline=1, grace=1)
    script = next(written(plan, out).glob("*.sbatch"))
    calls = tmp_path / "calls"
    for task in ("0", "1"):
        done = slurm(script, out, tools, task, CALLS=str(calls))
        assert (done.returncode, done.stderr) == (0, "")
    results = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.txt")}
    assert set(results) == {result(one, member) for one in plan.rounds for member in one.members}
    for name, text in results.items():
        nodes = Path(name).stem.replace("__", " ")
        assert text.startswith(f"# straggler: nodes {nodes}\n")
        if nodes == "ip-10-1-0-4":
            assert text.endswith("# straggler: timed out after 1 s\n\n# straggler: exited with status 124\n")
        elif "ip-10-1-0-2" in nodes and " " in nodes:
            assert text.endswith("ip-10-1-0-2: lost\n\n# straggler: exited with status 3\n")
        else:
            assert text.endswith("as if\n\n# straggler: exited with status 0\n")
    asked = calls.read_text().splitlines()
    assert len(asked) == plan.runs
    assert all("--gres=gpu:8" in line and "--overlap" not in line for line in asked)
    assert sum("--nodes=2 --ntasks=16 --ntasks-per-node=8 --mpi=pmix" in line for line in asked) == 2


def test_no_gpus_are_asked_for_where_slurm_counts_none(tmp_path: Path) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    fake(tools, "srun", 'echo "$*"')
    fake(tools, "scontrol", 'echo "NodeName=x Gres=(null) State=IDLE"')
    plan = planned("slurm", rounds=1)
    script = next(written(plan, out).glob("*.sbatch"))
    slurm(script, out, tools, "1")
    texts = [path.read_text() for path in out.rglob("*.txt")]
    assert len(texts) == 2
    assert not any("gres" in text for text in texts)


def test_a_result_that_is_there_is_kept(tmp_path: Path) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    fake(tools, "srun", "echo new")
    fake(tools, "scontrol", "")
    plan = planned("slurm", rounds=1)
    script = next(written(plan, out).glob("*.sbatch"))
    kept = out / "round-00" / "ip-10-1-0-1.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    done = slurm(script, out, tools, "0")
    assert kept.read_text() == "mine"
    assert "kept as it is: round-00/ip-10-1-0-1.txt" in done.stderr


def test_a_result_of_ours_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    fake(tools, "srun", "echo new")
    fake(tools, "scontrol", "")
    script = next(written(planned("slurm", rounds=1), out).glob("*.sbatch"))
    cut = out / "round-00" / "ip-10-1-0-1.txt"
    cut.parent.mkdir()
    cut.write_text("# straggler: nodes ip-10-1-0-1\nhalf")
    slurm(script, out, tools, "0")
    assert "new" in cut.read_text()
    assert "half" in (out / "round-00" / "ip-10-1-0-1.txt.cut").read_text()


def test_a_cancelled_job_leaves_no_result_that_accuses_somebody(tmp_path: Path) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    fake(tools, "srun", "exit 143")
    fake(
        tools,
        "scontrol",
        'case "$*" in *" job "*) echo "JobId=7 JobName=x JobState=CANCELLED Reason=None" ;; esac',
    )
    script = next(written(planned("slurm", rounds=1), out).glob("*.sbatch"))
    slurm(script, out, tools, "0")
    assert list((out / "round-00").iterdir()) == []
