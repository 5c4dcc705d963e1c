"""A sweep as Kubernetes manifests: one file per round, in it an MPIJob (kubeflow.org/v2beta1) per pair, a plain Job per node alone.

Pods are bound to nodes by the node object's own name, as a DaemonSet's are: the label `kubernetes.io/hostname` may hold another
name. Devices and memory follow https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html and
https://github.com/awslabs/awsome-distributed-ai/tree/main/micro-benchmarks/nccl-tests/kubernetes (2026-12-01).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans import mpirun
from straggler.engine.bandwidth.plans.base import (
    CLOSING,
    HEAD,
    TIMED_OUT,
    Load,
    Plan,
    Pods,
    folder,
    listing,
    stem,
)
from straggler.engine.errors import UsageError

Json = dict[str, Any]

LABEL = "straggler-sweep"
"""The label every object of a round carries, with the round as its value."""

ANNOTATION = "straggler-nodes"

LATE_SECONDS = 60
"""What the script waits longer than Kubernetes lets a run go on."""

READY_SECONDS = 240
"""What the launcher waits for its workers at most, before the run."""

SCRIPT = f"""\
echo "{HEAD} $NODES"
if [ -n "${{PAIR:-}}" ]; then
  # The workers' sshd may be a moment behind the pods. Nothing is loaded before both answer.
  until timeout 20 "$1" --allow-run-as-root -np 2 -N 1 true >/dev/null 2>&1 || ((SECONDS > {READY_SECONDS})); do sleep 2; done
fi
status=0 began=$SECONDS
timeout -k "$GRACE" "$DEADLINE" "$@" 2>&1 || status=$?
if ((status == 124 || (status == 137 && SECONDS - began >= DEADLINE))); then
  printf '\\n{TIMED_OUT} %d s\\n' "$DEADLINE"
fi
printf '\\n{CLOSING} %d\\n' "$status"
exit "$status"
"""
"""What the launcher and the pod of a node alone run, with the run itself as its arguments (bash)."""


def files(plan: Plan, rounds: Sequence[Round]) -> Mapping[str, str]:
    """The manifests of these rounds, and the script that runs them and saves their logs. Raises UsageError where there is no image."""
    if plan.pods is None:
        raise UsageError(
            "--engine kubernetes needs --image IMAGE: one with CUDA, EFA, Open MPI with sshd and nccl-tests"
            " (how to build it: awsome-distributed-ai, micro-benchmarks/nccl-tests/nccl-tests.Dockerfile)"
        )
    manifests = {f"manifests/{folder(one)}.yaml": _manifest(plan.load, plan.pods, one) for one in rounds}
    lists = {f"lists/{folder(one)}.list": listing(one) for one in rounds}
    return {f"sweep-{stem(rounds)}.sh": _script(plan.pods, plan.load, rounds), **manifests, **lists}


def _manifest(load: Load, pods: Pods, one: Round) -> str:
    import yaml

    documents = [
        job(load, pods, one, at, member) if len(member) == 1 else mpi_job(load, pods, one, at, member)
        for at, member in enumerate(one.members, 1)
    ]

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """With a script as a block one can read, and nothing written once and referred to after."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def written(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, written)
    text = yaml.dump_all(
        documents, Dumper=Dumper, sort_keys=False, explicit_start=True, default_flow_style=False, width=1000
    )
    return (
        f"# Pairwise bandwidth, written by straggler sweep: {folder(one)}, {len(one.members)} runs at once.\n"
        f"# The script beside it creates, saves and deletes. By hand: one round at a time, nothing else on these nodes.\n"
        f"# It loads GPUs and network of these nodes; a pod waits while a node's GPUs are in use.\n{text}"
    )


def name(one: Round, at: int) -> str:
    """The name of a run's object; short, as Kubernetes adds to it for pods and host names."""
    return f"straggler-{folder(one)}-{at:04d}"


def mpi_job(load: Load, pods: Pods, one: Round, at: int, pair: Sequence[str]) -> Json:
    """Two workers on two nodes and a launcher that may be anywhere. A run is not tried again: what failed is a result."""
    labels = {LABEL: folder(one), "straggler-run": name(one, at)}
    apart = {"labelSelector": {"matchLabels": {"straggler-run": name(one, at), "straggler-role": "worker"}}}
    workers = _pod(load, pods, pair, "worker")
    workers["affinity"]["podAntiAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [{**apart, "topologyKey": "kubernetes.io/hostname"}]
    }
    launcher: Json = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "launcher",
                "image": pods.image,
                "command": ["/bin/bash", "-c", SCRIPT, "straggler"],
                "args": _argv(load, pair),
                "env": _variables(load, pair),
            }
        ],
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": _metadata(one, at, pair),
        "spec": {
            "slotsPerWorker": load.gpus,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "backoffLimit": 0,
                "activeDeadlineSeconds": pods.start_seconds + READY_SECONDS + load.deadline + load.grace,
                "ttlSecondsAfterFinished": pods.keep_seconds,
            },
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"metadata": {"labels": labels}, "spec": launcher}},
                "Worker": {
                    "replicas": 2,
                    "template": {
                        "metadata": {"labels": {**labels, "straggler-role": "worker"}},
                        "spec": workers,
                    },
                },
            },
        },
    }


def job(load: Load, pods: Pods, one: Round, at: int, alone: Sequence[str]) -> Json:
    """One node by itself."""
    pod = _pod(load, pods, alone, "alone")
    pod["restartPolicy"] = "Never"
    pod["containers"][0] |= {
        "command": ["/bin/bash", "-c", SCRIPT, "straggler"],
        "args": _literal(mpirun.command(alone, load)),
        "env": _variables(load, alone),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(one, at, alone),
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": pods.start_seconds + load.deadline + load.grace,
            "ttlSecondsAfterFinished": pods.keep_seconds,
            "template": {"metadata": {"labels": {LABEL: folder(one)}}, "spec": pod},
        },
    }


def _argv(load: Load, pair: Sequence[str]) -> list[str]:
    """mpirun as in the other engines, but the operator names the hosts, and the image's own paths go to the workers' shells."""
    words = mpirun.command(pair, load)
    at = words.index("-host")
    words[at : at + 2] = ["-N", str(load.gpus)]
    at = words.index("--bind-to")
    words[at:at] = ["-x", "PATH", "-x", "LD_LIBRARY_PATH"]
    return _literal(words)


def _literal(words: Sequence[str]) -> list[str]:
    """Kubernetes fills `$(NAME)` in arguments; ours mean what they say."""
    return [word.replace("$(", "$$(") for word in words]


def _variables(load: Load, member: Sequence[str]) -> list[Json]:
    values = {"NODES": " ".join(member), "DEADLINE": str(load.deadline), "GRACE": str(load.grace)}
    if len(member) > 1:
        values["PAIR"] = "1"
    return [{"name": key, "value": value} for key, value in values.items()]


def _metadata(one: Round, at: int, member: Sequence[str]) -> Json:
    return {
        "name": name(one, at),
        "labels": {LABEL: folder(one)},
        "annotations": {ANNOTATION: " ".join(member)},
    }


def _pod(load: Load, pods: Pods, nodes: Sequence[str], role: str) -> Json:
    resources: Json = {"nvidia.com/gpu": load.gpus, "memory": pods.memory}
    if load.efa:
        resources |= {"vpc.amazonaws.com/efa": load.efa, "hugepages-2Mi": pods.hugepages}
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes
    ]
    spec: Json = {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        },
        "containers": [
            {
                "name": role,
                "image": pods.image,
                "resources": {"requests": dict(resources), "limits": dict(resources)},
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": pods.shm}}],
    }
    if pods.tolerations:
        spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in pods.tolerations]
    return spec


def _script(pods: Pods, load: Load, rounds: Sequence[Round]) -> str:
    longest = pods.start_seconds + READY_SECONDS + load.deadline + load.grace + LATE_SECONDS
    name = f"sweep-{stem(rounds)}.sh"
    return f"""\
#!/bin/bash
# Pairwise bandwidth, written by straggler sweep: {len(rounds)} rounds, {sum(len(one.members) for one in rounds)} runs.
# Creates the objects of one round, saves each log as its result, deletes the objects, goes on with the next round.
# Arguments go to kubectl:  ./{name} --context NAME -n NAMESPACE
# COLLECT_ONLY=1 creates and deletes nothing. A result that is there already is kept, so it can be run again.
set -u
cd "$(dirname "$0")" || exit 1
kubectl=(kubectl "$@")
rounds=({" ".join(folder(one) for one in rounds)})
log=$(mktemp) || exit 1
conditions='{{range .status.conditions[?(@.status=="True")]}}{{.type}} {{.reason}}{{"\\n"}}{{end}}'
created=
finish() {{
  if [ -n "$created" ]; then "${{kubectl[@]}}" delete --ignore-not-found -f "manifests/$created.yaml" >/dev/null; fi
  created=
}}
trap 'finish; rm -f "$log"' EXIT
trap 'exit 130' INT TERM HUP

save() {{  # KIND NAME FILE NODE...; status 1: it has not come to an end
  local kind=$1 name=$2 file=$3 pod=$2 ended
  shift 3
  [ -e "$file" ] && return 0
  [ "$kind" = mpijob ] && pod=$name-launcher
  "${{kubectl[@]}}" logs "job/$pod" >"$log" 2>/dev/null </dev/null
  if ! grep -q '^{CLOSING} ' "$log"; then
    # No closing line: still going on, or ended from outside; then the result says so.
    ended=$("${{kubectl[@]}}" get "$kind/$name" -o "jsonpath=$conditions" 2>/dev/null </dev/null | grep '^Failed')
    [ -n "$ended" ] || return 1
    if [ ! -s "$log" ]; then echo "{HEAD} $*" >"$log"; fi
    printf '\\n# straggler: ended from outside: %s\\n{CLOSING} 1\\n' "$ended" >>"$log"
  fi
  (set -C; cat "$log" >"$file") && echo "saved: $file"
}}

collect() {{  # ROUND; status 1: some run has not come to an end
  local at=0 waiting=0 name a b
  while read -r a b; do
    at=$((at + 1))
    printf -v name 'straggler-%s-%04d' "$1" "$at"
    if [ -z "$b" ]; then save job "$name" "$1/$a.txt" "$a"; else save mpijob "$name" "$1/${{a}}__$b.txt" "$a" "$b"; fi
    [ $? = 1 ] && waiting=$((waiting + 1))
  done <"lists/$1.list"
  [ "$waiting" = 0 ]
}}

for round in "${{rounds[@]}}"; do
  mkdir -p "$round"
  if [ "$(find "$round" -name '*.txt' | wc -l)" -ge "$(wc -l <"lists/$round.list")" ]; then continue; fi
  if [ -z "${{COLLECT_ONLY:-}}" ]; then
    if ! "${{kubectl[@]}}" create -f "manifests/$round.yaml" >/dev/null; then
      echo "$round: not all of it could be created. If it is there from before: kubectl delete -f manifests/$round.yaml" >&2
      exit 1
    fi
    created=$round
  fi
  began=$SECONDS
  until collect "$round"; do
    if ((SECONDS - began > {longest})); then
      echo "$round: not every run has come to an end; its objects are given up" >&2
      break
    fi
    sleep 10
  done
  finish
done
"""
