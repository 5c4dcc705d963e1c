"""The manifests for Kubernetes, and the script that creates, saves and deletes, with a stand-in for kubectl."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from straggler.engine.bandwidth.plans import ENGINES, pods
from straggler.engine.bandwidth.plans.base import (
    Plan,
    folder,
    result,
)
from straggler.engine.bandwidth.plans.planning import Wishes, make
from straggler.engine.errors import UsageError
from straggler.engine.model import Node
from tests.support.sweeps import KNOWN, NODES, fake, planned, run, written


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
