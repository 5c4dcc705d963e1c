#!/bin/bash
# Pairwise bandwidth, written by straggler sweep: 3 rounds, 8 runs.
# Creates the objects of one round, saves each log as its result, deletes the objects, goes on with the next round.
# Arguments go to kubectl:  ./sweep-round-00-to-02.sh --context NAME -n NAMESPACE
# COLLECT_ONLY=1 creates and deletes nothing. A result that is there already is kept, so it can be run again.
set -u
cd "$(dirname "$0")" || exit 1
kubectl=(kubectl "$@")
rounds=(round-00 round-01 round-02)
log=$(mktemp) || exit 1
conditions='{range .status.conditions[?(@.status=="True")]}{.type} {.reason}{"\n"}{end}'
created=
finish() {
  if [ -n "$created" ]; then "${kubectl[@]}" delete --ignore-not-found -f "manifests/$created.yaml" >/dev/null; fi
  created=
}
trap 'finish; rm -f "$log"' EXIT
trap 'exit 130' INT TERM HUP

save() {  # KIND NAME FILE NODE...; status 1: it has not come to an end
  local kind=$1 name=$2 file=$3 pod=$2 ended
  shift 3
  [ -e "$file" ] && return 0
  [ "$kind" = mpijob ] && pod=$name-launcher
  "${kubectl[@]}" logs "job/$pod" >"$log" 2>/dev/null </dev/null
  if ! grep -q '^# straggler: exited with status ' "$log"; then
    # No closing line: still going on, or ended from outside; then the result says so.
    ended=$("${kubectl[@]}" get "$kind/$name" -o "jsonpath=$conditions" 2>/dev/null </dev/null | grep '^Failed')
    [ -n "$ended" ] || return 1
    if [ ! -s "$log" ]; then echo "# straggler: nodes $*" >"$log"; fi
    printf '\n# straggler: ended from outside: %s\n# straggler: exited with status 1\n' "$ended" >>"$log"
  fi
  (set -C; cat "$log" >"$file") && echo "saved: $file"
}

collect() {  # ROUND; status 1: some run has not come to an end
  local at=0 waiting=0 name a b
  while read -r a b; do
    at=$((at + 1))
    printf -v name 'straggler-%s-%04d' "$1" "$at"
    if [ -z "$b" ]; then save job "$name" "$1/$a.txt" "$a"; else save mpijob "$name" "$1/${a}__$b.txt" "$a" "$b"; fi
    [ $? = 1 ] && waiting=$((waiting + 1))
  done <"lists/$1.list"
  [ "$waiting" = 0 ]
}

for round in "${rounds[@]}"; do
  mkdir -p "$round"
  if [ "$(find "$round" -name '*.txt' | wc -l)" -ge "$(wc -l <"lists/$round.list")" ]; then continue; fi
  if [ -z "${COLLECT_ONLY:-}" ]; then
    if ! "${kubectl[@]}" create -f "manifests/$round.yaml" >/dev/null; then
      echo "$round: not all of it could be created. If it is there from before: kubectl delete -f manifests/$round.yaml" >&2
      exit 1
    fi
    created=$round
  fi
  began=$SECONDS
  until collect "$round"; do
    if ((SECONDS - began > 1450)); then
      echo "$round: not every run has come to an end; its objects are given up" >&2
      break
    fi
    sleep 10
  done
  finish
done
