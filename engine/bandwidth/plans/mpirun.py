"""A sweep by SSH: one mpirun from the first node of each pair. Also as a script for whoever runs it by hand.

No `--mca` settings of our own: AWS took them out of its recipes as unnecessary on current EFA releases
(https://github.com/awslabs/awsome-distributed-ai/commit/a59b4db5d9a9921474ea1d7d7a4e3cb7ad780f0b, May 2026).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans.base import CLOSING, FRESH, TIMED_OUT, Load, Plan, folder, listing, stem

LINK_SECONDS = 30
"""What the operator's side waits longer than the node's own deadline, for the connection."""


def command(members: Sequence[str], load: Load) -> list[str]:
    """One run as argv, for a shell on its first node; the deadline is not in it."""
    if len(members) == 1:
        return ["env", *load.environment, load.binary, *load.arguments(load.gpus)]
    slots = ",".join(f"{name}:{load.gpus}" for name in members)
    words = [load.mpirun, "--allow-run-as-root", "-np", str(load.gpus * len(members)), "-host", slots]
    words += ["--bind-to", "none"]
    words += [word for setting in load.environment for word in ("-x", setting)]
    words += [word for name, value in load.mca for word in ("--mca", name, value)]
    return [*words, load.binary, *load.arguments(1)]


def files(plan: Plan, rounds: Sequence[Round]) -> Mapping[str, str]:
    """The script of these rounds and the lists it reads, by name below the plan's directory."""
    lists = {f"lists/{folder(one)}.list": listing(one) for one in rounds}
    return {f"sweep-{stem(rounds)}.sh": _script(plan, rounds), **lists}


def _script(plan: Plan, rounds: Sequence[Round]) -> str:
    load = plan.load
    alone = _words(command(("$1",), load))
    pair = _words(command(("$1", "$2"), load))
    return f"""\
#!/bin/bash
# Pairwise bandwidth, written by straggler sweep: {len(rounds)} rounds, {sum(len(one.members) for one in rounds)} runs.
# Run it where every node is reached by ssh without a question, and where the first node of a pair reaches the second so.
# It loads GPUs and network: it refuses when a program computes on a GPU of any node, or a node does not say (ANYWAY=1: it does not ask).
# A result that is there already is kept, so it can be run again. SSH='ssh -i KEY -l USER' sets how nodes are reached.
set -u
cd "$(dirname "$0")" || exit 1
exec 9>.lock
flock -n 9 || {{ echo "this directory is being swept already" >&2; exit 1; }}
SSH=${{SSH:-ssh -o BatchMode=yes -o ConnectTimeout=10}}
rounds=({" ".join(folder(one) for one in rounds)})

at_work() {{  # NODE; prints nothing for an idle one
  local said
  # shellcheck disable=SC2086  # SSH is a command with its options
  if ! said=$(timeout 60 $SSH "$1" nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader 2>&1 </dev/null); then
    echo "$1: it is not known whether it is idle: ${{said##*$'\\n'}}"
  elif [ -n "$said" ]; then
    echo "$1: at work: ${{said//$'\\n'/; }}"
  fi
}}

{FRESH}
run() {{  # FILE NODES FIRST-NODE COMMAND...
  local file=$1 nodes=$2 first=$3 status=0 began=$SECONDS line
  shift 3
  fresh "$file" "$nodes" || return
  printf -v line '%q ' timeout -k {load.grace} {load.deadline} "$@"
  # shellcheck disable=SC2086  # SSH is a command with its options
  timeout -k {load.grace} {load.deadline + LINK_SECONDS} $SSH "$first" "$line" >>"$file" 2>&1 </dev/null &
  child=$!
  trap 'stopped=1; kill "$child" 2>/dev/null' TERM
  wait "$child" || status=$?
  # A run that was interrupted says nothing of its nodes.
  if [ -n "${{stopped:-}}" ]; then
    rm -f "$file"
    return
  fi
  if ((status == 124 || (status == 137 && SECONDS - began >= {load.deadline}))); then
    printf '\\n{TIMED_OUT} {load.deadline} s\\n' >>"$file"
  fi
  printf '\\n{CLOSING} %d\\n' "$status" >>"$file"
}}

alone() {{  # NODE FILE
  run "$2" "$1" "$1" {alone}
}}

pair() {{  # NODE NODE FILE
  run "$3" "$1 $2" "$1" {pair}
}}

if [ -z "${{ANYWAY:-}}" ]; then
  busy=$(
    for round in "${{rounds[@]}}"; do cat "lists/$round.list"; done | tr ' ' '\\n' | sort -u | (
      while read -r node; do at_work "$node" & done
      wait
    )
  )
  if [ -n "$busy" ]; then
    # What a node says is not to act on the terminal.
    printf '%s\\nnothing was started\\n' "${{busy//[^[:print:]$'\\n']/?}}" >&2
    exit 1
  fi
fi

# What runs in the background does not hear Ctrl-C by itself. What a lost connection leaves on a node ends at its deadline there.
# shellcheck disable=SC2046
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM HUP

for round in "${{rounds[@]}}"; do
  echo "$round: $(wc -l <"lists/$round.list") runs at once, at most {load.deadline} s" >&2
  mkdir -p "$round"
  while read -r a b; do
    if [ -z "$b" ]; then alone "$a" "$round/$a.txt" & else pair "$a" "$b" "$round/${{a}}__$b.txt" & fi
  done <"lists/$round.list"
  wait
done
"""


def _words(argv: Sequence[str]) -> str:
    """Shell words, each quoted, but for the one that holds the script's own node variables."""
    return " ".join(f'"{word}"' if word.startswith("$1:") else shlex.quote(word) for word in argv)
