"""What an engine is given to run: the same bytes every time, nothing outdated in it, and scripts that do what they say.

`STRAGGLER_ACCEPT_GOLDEN=1` writes the golden files again; look at the difference before it is committed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from straggler.engine import knowledge
from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans import ENGINES, mpirun, pods
from straggler.engine.bandwidth.plans.base import (
    Plan,
    check_names,
    environment,
    folder,
    result,
    size,
    sizes,
    spelled,
)
from straggler.engine.bandwidth.plans.planning import Wishes, make
from straggler.engine.errors import UsageError
from straggler.engine.model import Node, Placement

GOLDEN = Path(__file__).parent.parent / "golden" / "sweep"
KNOWN = knowledge.load()
SHELLCHECK = [shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:/usr/bin") or "shellcheck"]
NODES = [
    Node(f"ip-10-1-0-{n}", instance_type="ml.p5.48xlarge", placement=Placement(f"az{n // 3}"))
    for n in range(1, 5)
]


def planned(engine: str, **wishes: Any) -> Plan:
    return make(NODES, Wishes(engine, image="registry/nccl:1", **wishes), KNOWN, {}).plan


def written(plan: Plan, where: Path) -> Path:
    for name, text in ENGINES[plan.engine](plan, plan.rounds).items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return where


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


def test_a_type_without_efa_is_not_told_of_efa() -> None:
    assert environment(KNOWN, 0) == ("NCCL_DEBUG=WARN",)
    assert environment(KNOWN, 4, ["NCCL_DEBUG=INFO", "A=b=c"]) == (
        "FI_PROVIDER=efa",
        "NCCL_DEBUG=INFO",
        "A=b=c",
    )


@pytest.mark.parametrize("text", ["", "A", "1A=b", "A=b\nc", "A =b", "A=\x1b"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        planned("ssh", environment=(text,))
    with pytest.raises(UsageError, match="NAME=VALUE"):
        planned("ssh", mca=(text,))


@pytest.mark.parametrize(
    "wish",
    [
        {"binary": "-x"},
        {"binary": "a\nb"},
        {"mpirun": "\x1b"},
        {"image": "a b"},
        {"image": "é"},
        {"gpus": -1},
    ],
)
def test_what_cannot_stand_in_a_script_is_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make(NODES, Wishes("kubernetes", **{"image": "i", **wish}), KNOWN, {})


@pytest.mark.parametrize(
    "name", ["", "-x", "a b", "a;reboot", "$(id)", "a__b", "../x", "a/b", "a\n", "ü", "[::1]", "a" * 300]
)
def test_a_name_that_cannot_stand_in_a_script_is_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError) as error:
        check_names(["fine-1", name])
    assert repr(name) in str(error.value)


def test_names_as_clusters_have_them_are_taken() -> None:
    check_names(["ip-10-1-2-3.ec2.internal", "hyperpod-i-0123456789abcdef0", "10.77.0.2", "gpu_a-01", "x"])


def test_results_are_named_by_round_and_nodes() -> None:
    assert result(Round(0, (("a",),)), ["a"]) == "round-00/a.txt"
    assert result(Round(3, (("a", "b"),)), ["a", "b"]) == "round-03/a__b.txt"
    assert result(Round(1, (("a", "b"),), alone=True), ["a", "b"]) == "alone-001/a__b.txt"
    assert folder(Round(120, ())) == "round-120"


def test_sizes_are_read_and_written_as_nccl_tests_does() -> None:
    assert sizes("8M:8G") == (8 << 20, 8 << 30)
    assert sizes("1G") == (1 << 30, 1 << 30)
    assert [spelled(size(one)) for one in ("8", "8K", "1536M", "2G", "2048M", "8MiB")] == [
        "8",
        "8K",
        "1536M",
        "2G",
        "2G",
        "8M",
    ]
    for wrong in ("", "x", "8T", "-1", "0", "8G:8M", "8M:", "1.5G"):
        with pytest.raises(UsageError):
            sizes(wrong)


# Slurm


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


def fake(place: Path, name: str, body: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    path = place / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def run(argv: list[str], cwd: Path, tools: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **more}
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)


def slurm(script: Path, out: Path, tools: Path, task: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The batch script as Slurm starts it."""
    job = {
        "SLURM_SUBMIT_DIR": str(out),
        "SLURM_ARRAY_TASK_ID": task,
        "SLURMD_NODENAME": "x",
        "SLURM_JOB_ID": "7",
    }
    return run(["bash", str(script)], out, tools, **job, **more)


def quick(plan: Plan, tools: Path, **more: Any) -> Plan:
    """The plan with stand-ins for what is on the nodes, and a deadline a test can wait for."""
    return replace(
        plan, load=replace(plan.load, binary=str(tools / "perf"), mpirun=str(tools / "mpirun"), **more)
    )


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


# SSH


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


# Kubernetes


def manifests(plan: Plan) -> Mapping[str, list[dict[str, Any]]]:
    files = ENGINES["kubernetes"](plan, plan.rounds)
    return {name: list(yaml.safe_load_all(text)) for name, text in files.items() if name.endswith(".yaml")}


def test_without_an_image_there_is_no_manifest() -> None:
    plan = make(NODES, Wishes("kubernetes"), KNOWN, {}).plan
    with pytest.raises(UsageError, match="--image"):
        ENGINES["kubernetes"](plan, plan.rounds)


def test_each_node_alone_is_a_job_bound_to_it() -> None:
    documents = manifests(planned("kubernetes"))["manifests/round-00.yaml"]
    assert [one["kind"] for one in documents] == ["Job"] * 4
    spec = documents[0]["spec"]["template"]["spec"]
    assert documents[0]["spec"]["backoffLimit"] == 0
    assert documents[0]["spec"]["activeDeadlineSeconds"] > planned("kubernetes").load.deadline
    assert spec["restartPolicy"] == "Never"
    assert bound_to(spec) == ["ip-10-1-0-1"]


def bound_to(spec: Mapping[str, Any]) -> list[str]:
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    return [value for term in terms for field in term["matchFields"] for value in field["values"]]


def test_each_pair_is_an_mpijob_with_its_two_nodes_and_all_they_have() -> None:
    plan = planned("kubernetes", tolerations=("nvidia.com/gpu",))
    for one in plan.rounds[1:]:
        documents = manifests(plan)[f"manifests/{folder(one)}.yaml"]
        assert len(documents) == len(one.members) == 2
        for document, pair in zip(documents, one.members, strict=True):
            assert (document["apiVersion"], document["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
            assert re.fullmatch(r"[a-z]([-a-z0-9]{0,40}[a-z0-9])?", document["metadata"]["name"])
            spec = document["spec"]
            assert spec["slotsPerWorker"] == 8
            assert spec["runPolicy"]["backoffLimit"] == 0
            assert spec["runPolicy"]["cleanPodPolicy"] == "Running"
            assert spec["runPolicy"]["activeDeadlineSeconds"] > plan.load.deadline
            worker = spec["mpiReplicaSpecs"]["Worker"]
            assert worker["replicas"] == 2
            pod = worker["template"]["spec"]
            assert bound_to(pod) == list(pair)
            assert "podAntiAffinity" in pod["affinity"]
            assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
            [container] = pod["containers"]
            resources = container["resources"]
            assert resources["limits"] == resources["requests"]
            assert resources["limits"] == {
                "nvidia.com/gpu": 8,
                "vpc.amazonaws.com/efa": 32,
                "hugepages-2Mi": "5120Mi",
                "memory": "32000Mi",
            }
            assert container["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]
            assert pod["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]
            [launcher] = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
            assert "-host" not in launcher["args"]
            assert "resources" not in launcher


def test_pods_on_gb200_share_the_nvlink_of_their_ultraserver() -> None:
    nodes = [Node(f"gb-{n}", instance_type="ml.p6e-gb200.36xlarge") for n in range(2)]
    plan = make(nodes, Wishes("kubernetes", image="i", efa=4), KNOWN, {}).plan
    job, domain = manifests(plan)["manifests/round-01.yaml"]
    assert (domain["kind"], domain["spec"]["numNodes"]) == ("ComputeDomain", 2)
    pod = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert pod["resourceClaims"] == [
        {"name": "imex-channel", "resourceClaimTemplateName": "straggler-round-01-0001-channel"}
    ]
    assert domain["spec"]["channel"]["resourceClaimTemplate"]["name"] == "straggler-round-01-0001-channel"
    resources = pod["containers"][0]["resources"]
    assert resources["claims"] == [{"name": "imex-channel"}]
    assert resources["limits"] == {"nvidia.com/gpu": 4, "memory": "32000Mi", "vpc.amazonaws.com/efa": 4}
    assert job["spec"]["slotsPerWorker"] == 4


def test_a_setting_with_a_dollar_is_not_filled_in_by_kubernetes() -> None:
    plan = planned("kubernetes", environment=("A=$(NODES)",))
    text = ENGINES["kubernetes"](plan, plan.rounds)["manifests/round-00.yaml"]
    assert "A=$$(NODES)" in text


def test_the_pods_script_says_how_the_run_ended(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    fake(
        tools,
        "mpirun",
        '[ "${*: -1}" = true ] && exit 0; [ "$1" = hang ] && exec sleep 60; echo ran; exit "$1"',
    )

    def ended(word: str) -> str:
        argv = ["bash", "-c", pods.SCRIPT, "straggler", str(tools / "mpirun"), word]
        return run(argv, tmp_path, tools, NODES="a b", PAIR="1", DEADLINE="1", GRACE="1").stdout

    assert ended("0") == "# straggler: nodes a b\nran\n\n# straggler: exited with status 0\n"
    assert ended("3") == "# straggler: nodes a b\nran\n\n# straggler: exited with status 3\n"
    assert ended("hang").endswith("# straggler: timed out after 1 s\n\n# straggler: exited with status 124\n")


KUBECTL = r"""
echo "$*" >>"$CALLS"
case "$*" in
  *"logs job/straggler-round-01-0001-launcher"*) exit 1 ;;
  *"logs job/"*) printf '# straggler: nodes x\nran\n\n# straggler: exited with status 0\n' ;;
  *"get mpijob/straggler-round-01-0001"*) echo "Failed DeadlineExceeded" ;;
esac
"""


def test_the_kubernetes_script_saves_every_log_and_deletes_what_it_created(tmp_path: Path) -> None:
    tools, out, calls = tmp_path / "tools", tmp_path / "out", tmp_path / "calls"
    fake(tools, "kubectl", KUBECTL)
    plan = planned("kubernetes", rounds=1)
    script = next(written(plan, out).glob("*.sh"))
    done = run(["bash", str(script), "-n", "team a"], tmp_path, tools, CALLS=str(calls))
    assert (done.returncode, done.stderr) == (0, "")
    results = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.txt")}
    assert set(results) == {result(one, member) for one in plan.rounds for member in one.members}
    lost = results[result(plan.rounds[1], plan.rounds[1].members[0])]
    assert lost.startswith(f"# straggler: nodes {' '.join(plan.rounds[1].members[0])}\n")
    assert "ended from outside: Failed DeadlineExceeded\n" in lost
    asked = calls.read_text().splitlines()
    assert all(line.startswith("-n team a ") for line in asked)
    order = [
        line.split()[3] + " " + line.split()[-1] for line in asked if " create " in line or " delete " in line
    ]
    assert order == [f"{verb} manifests/round-0{n}.yaml" for n in (0, 1) for verb in ("create", "delete")]


def test_the_kubernetes_script_does_not_go_on_over_what_somebody_else_created(tmp_path: Path) -> None:
    tools, out, calls = tmp_path / "tools", tmp_path / "out", tmp_path / "calls"
    fake(tools, "kubectl", 'echo "$*" >>"$CALLS"; exit 1')
    script = next(written(planned("kubernetes", rounds=1), out).glob("*.sh"))
    done = run(["bash", str(script)], tmp_path, tools, CALLS=str(calls))
    assert done.returncode == 1
    assert "round-00: not all of it could be created" in done.stderr
    assert "delete" not in calls.read_text()


# Every script


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


# From a target to a plan


def test_nodes_are_in_the_order_they_are_drawn() -> None:
    assert make(NODES[::-1], Wishes("ssh"), KNOWN, {}).plan.nodes == tuple(node.id for node in NODES)


def test_the_topology_given_wins_over_the_targets_own() -> None:
    plan = make(NODES, Wishes("ssh"), KNOWN, {NODES[3].id: Placement("az0")}).plan
    assert plan.nodes[:3] == (NODES[0].id, NODES[1].id, NODES[3].id)
    assert plan.placement[NODES[3].id] == (("az", "az0"),)


def test_nodes_without_gpus_are_left_out_and_said() -> None:
    planned = make([*NODES, Node("login", instance_type="ml.m5.xlarge")], Wishes("ssh"), KNOWN, {})
    assert "login" not in planned.plan.nodes
    assert "login" in planned.notes[0]


def test_two_types_are_not_mixed() -> None:
    other = [Node("p4-1", instance_type="ml.p4d.24xlarge"), Node("p4-2", instance_type="ml.p4d.24xlarge")]
    with pytest.raises(UsageError, match=r"--instance-type p4d\.24xlarge"):
        make([*NODES, *other], Wishes("ssh"), KNOWN, {})
    plan = make([*NODES, *other], Wishes("ssh", instance_type="ml.p4d.24xlarge"), KNOWN, {}).plan
    assert (plan.nodes, plan.load.efa) == (("p4-1", "p4-2"), 4)


def test_trainium_is_told_which_test_it_has() -> None:
    nodes = [Node(f"t{n}", instance_type="ml.trn1.32xlarge") for n in range(2)]
    with pytest.raises(UsageError, match=r"trn1\.32xlarge .*does not run NCCL.*nccom-test"):
        make(nodes, Wishes("slurm"), KNOWN, {})
    with pytest.raises(UsageError, match="nccom-test"):
        make(NODES, Wishes("slurm", instance_type="trn2.48xlarge"), KNOWN, {})


def test_a_type_nobody_knows_is_not_guessed() -> None:
    nodes = [Node("a"), Node("b")]
    with pytest.raises(UsageError, match="--gpus N"):
        make(nodes, Wishes("ssh"), KNOWN, {})
    load = make(nodes, Wishes("ssh", gpus=2), KNOWN, {}).plan.load
    assert (load.gpus, load.efa, load.environment) == (2, 0, ("NCCL_DEBUG=WARN",))
    assert make(nodes, Wishes("ssh", instance_type="p5en.48xlarge"), KNOWN, {}).plan.load.efa == 16
    with pytest.raises(UsageError, match="no such type"):
        make(nodes, Wishes("ssh", instance_type="p9.big"), KNOWN, {})


def test_only_the_pairs_asked_for_are_planned_in_few_rounds() -> None:
    names = [node.id for node in NODES]
    pairs = ((names[0], names[1]), (names[2], names[3]), (names[0], names[2]))
    plan = make(NODES, Wishes("ssh", pairs=pairs), KNOWN, {}).plan
    assert [len(one.members) for one in plan.rounds] == [4, 2, 1]
    with pytest.raises(UsageError, match="'nobody'"):
        make(NODES, Wishes("ssh", pairs=((names[0], "nobody"),)), KNOWN, {})


def test_one_node_is_too_few() -> None:
    with pytest.raises(UsageError, match="two nodes"):
        make(NODES[:1], Wishes("ssh"), KNOWN, {})


def test_a_run_is_estimated_from_the_line_rate() -> None:
    slow = make(
        [Node(n, instance_type="p4d.24xlarge") for n in "ab"], Wishes("ssh"), KNOWN, {}
    ).plan.load.seconds
    fast = planned("ssh").load.seconds
    assert 10 < fast < 30 < slow < 60
    assert planned("ssh", deadline=5).load.seconds == 5
