"""One mpirun per pair, and the script that runs them by hand, with a stand-in for ssh."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from straggler.engine.bandwidth.plans import mpirun
from straggler.engine.bandwidth.plans.base import (
    result,
)
from tests.support.sweeps import fake, planned, quick, run, written


def test_one_run_by_ssh_is_one_mpirun_without_a_host_file() -> None:
    load = planned("ssh").load
    assert mpirun.command(["a", "b"], load) == [
        *("/opt/amazon/openmpi/bin/mpirun", "--allow-run-as-root", "-np", "16", "-host", "a:8,b:8"),
        *("--bind-to", "none", "-x", "FI_PROVIDER=efa", "-x", "NCCL_DEBUG=WARN"),
        *(
            "/opt/nccl-tests/build/all_reduce_perf",
            "-b",
            "8M",
            "-e",
            "8G",
            "-f",
            "2",
            "-g",
            "1",
            "-n",
            "20",
            "-w",
            "5",
        ),
    ]
    assert mpirun.command(["a"], load)[:4] == ["env", "FI_PROVIDER=efa", "NCCL_DEBUG=WARN", load.binary]
    assert mpirun.command(["a"], load)[-6:] == ["-g", "8", "-n", "20", "-w", "5"]


SSH = 'host=$1; shift; case "$*" in nvidia-smi*) ;; *) echo "on $host" ;; esac; exec bash -c "$*"'


@pytest.mark.parametrize(
    ("smi", "said"),
    [
        ("printf '4711, python\\n4712, \\033[2Jx\\n'", "ip-10-1-0-3: at work: 4711, python; 4712, ?[2Jx"),
        (
            "echo first; echo 'no driver' >&2; exit 9",
            "ip-10-1-0-3: it is not known whether it is idle: no driver",
        ),
    ],
)
def test_the_ssh_script_loads_nothing_when_a_node_is_not_known_to_be_idle(
    tmp_path: Path, smi: str, said: str
) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    fake(tools, "ssh-as-if", SSH)
    fake(tools, "nvidia-smi", smi)
    fake(tools, "perf", "echo ran")
    plan = quick(planned("ssh", rounds=1), tools, deadline=5, grace=1)
    script = next(written(plan, out).glob("*.sh"))
    done = run(["bash", str(script)], tmp_path, tools, SSH=str(tools / "ssh-as-if"))
    assert done.returncode == 1
    assert said in done.stderr.splitlines()
    assert done.stderr.endswith("nothing was started\n")
    assert not list(out.rglob("*.txt"))
    done = run(["bash", str(script)], tmp_path, tools, SSH=str(tools / "ssh-as-if"), ANYWAY="1")
    assert done.returncode == 0
    assert "ran" in (out / "round-00" / "ip-10-1-0-1.txt").read_text()


def test_the_ssh_script_runs_every_pair_from_its_first_node(tmp_path: Path) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out dir"
    fake(tools, "ssh-as-if", SSH)
    fake(tools, "nvidia-smi", "")
    fake(tools, "mpirun", 'printf "<%s>" "$@"; case "$*" in *ip-10-1-0-2:8,*) exec sleep 60 ;; esac')
    fake(tools, "perf", 'echo "alone with $ODD and $*"')
    odd = 'it\'s $(touch /tmp/no) `x` "y" \\'
    plan = planned("ssh", rounds=1, environment=(f"ODD={odd}",))
    plan = quick(plan, tools, deadline=1, grace=1)
    script = next(written(plan, out).glob("*.sh"))
    done = run(["bash", str(script)], tmp_path, tools, SSH=str(tools / "ssh-as-if"))
    assert done.returncode == 0
    results = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.txt")}
    assert set(results) == {result(one, member) for one in plan.rounds for member in one.members}
    assert f"alone with {odd} and -b 8M" in results["round-00/ip-10-1-0-3.txt"]
    for one in plan.rounds[1:]:
        for a, b in one.members:
            text = results[result(one, (a, b))]
            assert f"on {a}\n" in text
            assert f"<-host><{a}:8,{b}:8>" in text
            assert f"<ODD={odd}>" in text
            assert ("timed out after 1 s" in text) == (a == "ip-10-1-0-2")


def test_an_interrupted_ssh_script_leaves_nothing_running_and_no_result_of_what_it_ended(
    tmp_path: Path,
) -> None:
    tools, out = tmp_path / "tools", tmp_path / "out"
    fake(tools, "ssh-as-if", SSH)
    fake(tools, "nvidia-smi", "")
    fake(tools, "perf", 'echo $$ >>"$PIDS"; exec sleep 300')
    plan = quick(planned("ssh", rounds=1), tools, deadline=200, grace=1)
    script = next(written(plan, out).glob("*.sh"))
    pids = tmp_path / "pids"
    pids.touch()
    env = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "SSH": str(tools / "ssh-as-if"),
        "PIDS": str(pids),
    }
    going = subprocess.Popen(["bash", str(script)], env=env, stderr=subprocess.DEVNULL)
    started = wait_for(lambda: pids.read_text().split(), 4)
    going.send_signal(signal.SIGTERM)
    assert going.wait(30) == 130
    wait_for(lambda: [pid for pid in started if not Path("/proc", pid).exists()], 4)
    assert list((out / "round-00").iterdir()) == []
    assert not (out / "round-01").exists()


def wait_for(look: Callable[[], list[str]], many: int) -> list[str]:
    end = time.monotonic() + 30
    while len(found := look()) < many:
        assert time.monotonic() < end, found
        time.sleep(0.02)
    return found
