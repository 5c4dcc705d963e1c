"""The objects of a sweep in Kubernetes: an MPIJob (kubeflow.org/v2beta1) per pair, a plain Job per node alone.

Pods are bound to nodes by the node object's own name, as a DaemonSet's are: the label `kubernetes.io/hostname` may hold another
name. Devices and memory follow https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html and
https://github.com/awslabs/awsome-distributed-ai/tree/main/micro-benchmarks/nccl-tests/kubernetes (2026-12-01); so does the
ComputeDomain, without which pods on GB200 reach each other over EFA only and not over the NVLink of their UltraServer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans import mpirun
from straggler.engine.bandwidth.plans.base import CLOSING, HEAD, TIMED_OUT, Load, Pods, folder

Json = dict[str, Any]

LABEL = "straggler-sweep"
"""The label every object of a round carries, with the round as its value."""

ANNOTATION = "straggler-nodes"

CHANNEL = "imex-channel"

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


def objects(load: Load, pods: Pods, one: Round) -> list[Json]:
    """All of a round. A ComputeDomain comes after the MPIJob that uses it, so that it is deleted after it."""
    found: list[Json] = []
    for at, member in enumerate(one.members, 1):
        if len(member) == 1:
            found.append(job(load, pods, one, at, member))
            continue
        found.append(mpi_job(load, pods, one, at, member))
        if pods.compute_domain:
            found.append(compute_domain(one, at, member))
    return found


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
    if pods.compute_domain:
        workers["resourceClaims"] = [
            {"name": CHANNEL, "resourceClaimTemplateName": f"{name(one, at)}-channel"}
        ]
        workers["containers"][0]["resources"]["claims"] = [{"name": CHANNEL}]
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


def compute_domain(one: Round, at: int, pair: Sequence[str]) -> Json:
    """The NVLink domain of two nodes of one UltraServer, by NVIDIA's driver for dynamic resources; of others it joins nothing."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": _metadata(one, at, pair),
        "spec": {
            "numNodes": len(pair),
            "channel": {"resourceClaimTemplate": {"name": f"{name(one, at)}-channel"}},
        },
    }


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
        resources["vpc.amazonaws.com/efa"] = load.efa
        # On arm64 (GB200) AWS's recipe takes none: the size of a huge page is the kernel's choice there.
        resources |= {} if pods.compute_domain else {"hugepages-2Mi": pods.hugepages}
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
