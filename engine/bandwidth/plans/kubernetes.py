"""A sweep as Kubernetes manifests, one file per round, and the script that creates, saves and deletes round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans.base import CLOSING, HEAD, Load, Plan, Pods, folder, listing, stem
from straggler.engine.bandwidth.plans.pods import READY_SECONDS, objects
from straggler.engine.errors import UsageError

LATE_SECONDS = 60
"""What the script waits longer than Kubernetes lets a run go on."""


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

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """With a script as a block one can read, and nothing written once and referred to after."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def written(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, written)
    text = yaml.dump_all(
        objects(load, pods, one),
        Dumper=Dumper,
        sort_keys=False,
        explicit_start=True,
        default_flow_style=False,
        width=1000,
    )
    return (
        f"# Pairwise bandwidth, written by straggler sweep: {folder(one)}, {len(one.members)} runs at once.\n"
        f"# The script beside it creates, saves and deletes. By hand: one round at a time, nothing else on these nodes.\n"
        f"# It loads GPUs and network of these nodes; a pod waits while a node's GPUs are in use.\n{text}"
    )


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
