"""A sweep as one Slurm batch script: an array with a round per task, one at a time, the pairs of a round as parallel steps.

Every task has all nodes to itself, so that nothing else runs beside the pairs. A step is bound to its two nodes; as no two
steps share a node, none waits for another and none needs `--overlap`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans.base import CLOSING, FRESH, TIMED_OUT, Load, Plan, folder, listing, stem

MARGIN_SECONDS = 120
"""What a task may take beside its runs: starting and ending steps on many nodes."""


def files(plan: Plan, rounds: Sequence[Round]) -> Mapping[str, str]:
    """The script of these rounds and the lists it reads, by name below the plan's directory."""
    lists = {f"lists/{folder(one)}.list": listing(one) for one in rounds}
    return {f"sweep-{stem(rounds)}.sbatch": _script(plan.load, rounds), **lists}


def _script(load: Load, rounds: Sequence[Round]) -> str:
    nodes = sorted({node for one in rounds for member in one.members for node in member})
    minutes = -(-(load.deadline + load.grace + MARGIN_SECONDS) // 60)
    exports = "\n".join(f"export {shlex.quote(one)}" for one in load.environment)
    alone = shlex.join([load.binary, *load.arguments(load.gpus)])
    pair = shlex.join([load.binary, *load.arguments(1)])
    return f"""\
#!/bin/bash
# Pairwise bandwidth, written by straggler sweep: {len(rounds)} rounds, {sum(len(one.members) for one in rounds)} runs.
# Submit it from this directory, which every node must see under the same path:  sbatch {shlex.quote(f"sweep-{stem(rounds)}.sbatch")}
# Your cluster may want more: --partition, --account, --reservation. A result that is there already is kept.
#SBATCH --job-name=straggler-sweep
#SBATCH --array=0-{len(rounds) - 1}%1
#SBATCH --nodes={len(nodes)}
#SBATCH --nodelist={_folded(nodes)}
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time={minutes}
#SBATCH --output=slurm-%A-%a.log
set -u
cd "${{SLURM_SUBMIT_DIR:?submit this script with sbatch}}" || exit 1
rounds=({" ".join(folder(one) for one in rounds)})
round=${{rounds[SLURM_ARRAY_TASK_ID]}}
MPI=${{MPI:-pmix}}  # srun --mpi=list shows what this cluster has
{exports}

# An exclusive job has all GPUs, but its steps see them only when they ask, and asking where Slurm counts no GPUs is an error.
gres=()
case "$(scontrol show node -o "$SLURMD_NODENAME")" in *" Gres=gpu"*) gres=(--gres=gpu:{load.gpus}) ;; esac

{FRESH}
run() {{  # FILE NODES COMMAND...
  local file=$1 nodes=$2 status=0 began=$SECONDS
  shift 2
  fresh "$file" "${{nodes//,/ }}" || return
  timeout -k {load.grace} {load.deadline} srun --nodelist="$nodes" "${{gres[@]}}" --cpu-bind=none --kill-on-bad-exit=1 "$@" \\
    >>"$file" 2>&1 </dev/null || status=$?
  # A run that was cancelled with its job says nothing of its nodes.
  case "$status $(scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null)" in
    [1-9]*" JobState=CANCELLED"*)
      rm -f "$file"
      return
      ;;
  esac
  if ((status == 124 || (status == 137 && SECONDS - began >= {load.deadline}))); then
    printf '\\n{TIMED_OUT} {load.deadline} s\\n' >>"$file"
  fi
  printf '\\n{CLOSING} %d\\n' "$status" >>"$file"
}}

alone() {{  # NODE
  run "$round/$1.txt" "$1" --nodes=1 --ntasks=1 {alone}
}}

pair() {{  # NODE NODE
  run "$round/${{1}}__$2.txt" "$1,$2" --nodes=2 --ntasks={2 * load.gpus} --ntasks-per-node={load.gpus} --mpi="$MPI" \\
    {pair}
}}

mkdir -p "$round"
while read -r a b; do
  if [ -z "$b" ]; then alone "$a" & else pair "$a" "$b" & fi
done <"lists/$round.list"
wait
"""


def _folded(nodes: Sequence[str]) -> str:
    """Slurm's own notation, with one range per name: not every version reads two."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    found = NodeSet(resolver=RESOLVER_NOGROUP, fold_axis=(-1,))
    for node in nodes:
        found.add(NodeSet(node, resolver=RESOLVER_NOGROUP))
    return str(found)
