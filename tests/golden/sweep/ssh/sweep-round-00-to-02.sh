#!/bin/bash
# Pairwise bandwidth, written by straggler sweep: 3 rounds, 8 runs.
# Run it where every node is reached by ssh without a question, and where the first node of a pair reaches the second so.
# It loads GPUs and network: it refuses when a program computes on a GPU of any node, or a node does not say (ANYWAY=1: it does not ask).
# A result that is there already is kept, so it can be run again. SSH='ssh -i KEY -l USER' sets how nodes are reached.
set -u
cd "$(dirname "$0")" || exit 1
exec 9>.lock
flock -n 9 || { echo "this directory is being swept already" >&2; exit 1; }
SSH=${SSH:-ssh -o BatchMode=yes -o ConnectTimeout=10}
rounds=(round-00 round-01 round-02)

at_work() {  # NODE; prints nothing for an idle one
  local said
  # shellcheck disable=SC2086  # SSH is a command with its options
  if ! said=$(timeout 60 $SSH "$1" nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader 2>&1 </dev/null); then
    echo "$1: it is not known whether it is idle: ${said##*$'\n'}"
  elif [ -n "$said" ]; then
    echo "$1: at work: ${said//$'\n'/; }"
  fi
}

fresh() {  # FILE NODES; begins a result. One that is there stays; one of ours that was cut off makes room, so that it is run again
  if head -n 1 "$1" 2>/dev/null | grep -q '^# straggler: nodes ' && ! grep -q '^# straggler: exited with status ' "$1"; then mv -f "$1" "$1.cut"; fi
  (set -C; echo "# straggler: nodes $2" >"$1") 2>/dev/null && return
  echo "kept as it is: $1" >&2
  return 1
}

run() {  # FILE NODES FIRST-NODE COMMAND...
  local file=$1 nodes=$2 first=$3 status=0 began=$SECONDS line
  shift 3
  fresh "$file" "$nodes" || return
  printf -v line '%q ' timeout -k 10 240 "$@"
  # shellcheck disable=SC2086  # SSH is a command with its options
  timeout -k 10 270 $SSH "$first" "$line" >>"$file" 2>&1 </dev/null &
  child=$!
  trap 'stopped=1; kill "$child" 2>/dev/null' TERM
  wait "$child" || status=$?
  # A run that was interrupted says nothing of its nodes.
  if [ -n "${stopped:-}" ]; then
    rm -f "$file"
    return
  fi
  if ((status == 124 || (status == 137 && SECONDS - began >= 240))); then
    printf '\n# straggler: timed out after 240 s\n' >>"$file"
  fi
  printf '\n# straggler: exited with status %d\n' "$status" >>"$file"
}

alone() {  # NODE FILE
  run "$2" "$1" "$1" env FI_PROVIDER=efa NCCL_DEBUG=WARN /opt/nccl-tests/build/all_reduce_perf -b 8M -e 8G -f 2 -g 8 -n 20 -w 5
}

pair() {  # NODE NODE FILE
  run "$3" "$1 $2" "$1" /opt/amazon/openmpi/bin/mpirun --allow-run-as-root -np 16 -host "$1:8,$2:8" --bind-to none -x FI_PROVIDER=efa -x NCCL_DEBUG=WARN /opt/nccl-tests/build/all_reduce_perf -b 8M -e 8G -f 2 -g 1 -n 20 -w 5
}

if [ -z "${ANYWAY:-}" ]; then
  busy=$(
    for round in "${rounds[@]}"; do cat "lists/$round.list"; done | tr ' ' '\n' | sort -u | (
      while read -r node; do at_work "$node" & done
      wait
    )
  )
  if [ -n "$busy" ]; then
    # What a node says is not to act on the terminal.
    printf '%s\nnothing was started\n' "${busy//[^[:print:]$'\n']/?}" >&2
    exit 1
  fi
fi

# What runs in the background does not hear Ctrl-C by itself. What a lost connection leaves on a node ends at its deadline there.
# shellcheck disable=SC2046
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM HUP

for round in "${rounds[@]}"; do
  echo "$round: $(wc -l <"lists/$round.list") runs at once, at most 240 s" >&2
  mkdir -p "$round"
  while read -r a b; do
    if [ -z "$b" ]; then alone "$a" "$round/$a.txt" & else pair "$a" "$b" "$round/${a}__$b.txt" & fi
  done <"lists/$round.list"
  wait
done
