# Holds one node for one sweep: takes the lock, says whether the node is at work, and ends what is left of a run.
# POSIX sh and coreutils only. Nothing happens before the last line, h_main: half a script does nothing.
# stdin is the operator's link: `.` I am here, `c` check again, `k` end what is left, `q` or its end: end all and let go.
# Set in front of this: H_NONCE H_MARK (the runs' environment has it), H_WHO, H_SUDO, H_LINK (seconds without a word).
h_say() { printf '@@straggler %s %s\n' "$H_NONCE" "$1" 2>/dev/null; }
h_priv() { if [ "$H_SUDO" = 1 ] && [ "$h_uid" != 0 ]; then sudo -n "$@"; else "$@"; fi; }

# One lock in every place that can be had, so that users who may not write in the first still meet in the second.
# Opened for reading, never through a link; a file of another user is not ours to trust. Who and when stand in it.
h_lock() {
  h_held=
  for h_dir in /run/lock /tmp; do
    h_file=$h_dir/straggler-sweep.lock
    if ! [ -e "$h_file" ] && ! [ -L "$h_file" ]; then
      if ! [ -d "$h_dir" ] || ! [ -w "$h_dir" ]; then continue; fi
      # noclobber: made new or not at all, and never through a link.
      (umask 022 && set -C && : >"$h_file") 2>/dev/null
    fi
    if [ -L "$h_file" ] || ! [ -f "$h_file" ]; then
      h_say "nolock $h_file is no plain file; look at it and remove it"
      return 1
    fi
    h_owner=$(stat -c %u "$h_file")
    if [ "$h_owner" != "$h_uid" ] && [ "$h_owner" != 0 ]; then
      if flock -n 7 7<"$h_file"; then
        h_say "nolock $h_file was left behind by user id $h_owner, who or root can remove it"
      else
        h_say "held $(head -n 1 "$h_file" 2>/dev/null | head -c 300)"
      fi
      return 1
    fi
    if [ -z "$h_held" ]; then
      exec 8<"$h_file" || return 1
      flock -n 8 || { h_taken; return 1; }
      h_same 8 || return 1
    else
      exec 9<"$h_file" || return 1
      flock -n 9 || { h_taken; return 1; }
      h_same 9 || return 1
    fi
    h_held="$h_held $h_file"
    if [ -w "$h_file" ]; then printf '%s\n' "$H_WHO since $(date -u +%Y-%m-%dT%H:%M:%SZ)" 2>/dev/null >"$h_file"; fi
  done
  if [ -z "$h_held" ]; then
    h_say "nolock neither /run/lock nor /tmp can be written to"
    return 1
  fi
}
h_taken() { h_say "held $(head -n 1 "$h_file" 2>/dev/null | head -c 300)"; }
# Its holder removes the file when it lets go: what was opened a moment before must still be what the name stands for.
h_same() {
  if [ "$(stat -L -c %d:%i "/proc/$$/fd/$1" 2>/dev/null)" = "$(stat -c %d:%i "$h_file" 2>/dev/null)" ]; then return 0; fi
  h_say "held a sweep that was just ending; try again"
  return 1
}

# `gpus N`, a `busy` line for all that works here, an `unread` line for all that could not be looked at, `checked`.
h_check() {
  h_gpus=0
  for h_dev in /dev/nvidia[0-9]* /dev/neuron[0-9]*; do
    if [ -e "$h_dev" ]; then h_gpus=$((h_gpus + 1)); fi
  done
  h_say "gpus $h_gpus"
  h_ours=" $(h_marked | tr '\n' ' ') "
  for h_proc in /proc/[0-9]*; do
    h_name=
    { read -r h_name <"$h_proc/comm"; } 2>/dev/null
    case $h_name in
      slurmstepd) h_say "busy slurm ${h_proc#/proc/} $(tr '\0' ' ' 2>/dev/null <"$h_proc/cmdline" | head -c 100)" ;;
      mpirun | mpiexec | mpiexec.hydra | orterun | prterun | orted | prted | hydra_pmi_proxy | *_perf)
        case $h_ours in *" ${h_proc#/proc/} "*) ;; *) h_say "busy mpi ${h_proc#/proc/} $h_name" ;; esac
        ;;
    esac
  done
  # A table of processes that hides the others' (hidepid) has no first one.
  if ! [ -d /proc/1 ]; then h_say "unread the processes of other users are hidden here; this needs root (--sudo)"; fi
  if [ "$h_gpus" != 0 ]; then h_holders; fi
  h_say checked
}

# Who has a GPU open. One that has opened no nvidia-uvm has made no CUDA context: persistence and monitoring daemons.
# (https://docs.nvidia.com/cuda/cuda-installation-guide-linux/, device node verification; read 2026-12-01.)
h_holders() {
  h_seen=$(
    exec 8<&- 9<&-
    h_priv ls -l /proc/[0-9]*/fd 2>&1 | awk '
      /^\/proc\/[0-9]+\/fd:$/ { split($0, part, "/"); pid = part[3]; next }
      / -> \/dev\/nvidia-uvm$/ { uvm[pid] = 1; next }
      / -> \/dev\/neuron[0-9]+$/ { gpu[pid] = 1; uvm[pid] = 1; next }
      / -> \/dev\/nvidia[0-9]+$/ { gpu[pid] = 1; next }
      /Permission denied$/ { sub(/.*\/proc\//, ""); sub(/\/.*/, ""); if (!($0 in hidden)) { hidden[$0] = 1; count++ } }
      /sudo:/ { refused = 1 }
      END {
        for (pid in gpu) if (uvm[pid]) print "busy", pid
        if (refused) print "sudo"
        else if (count) print "hidden", count
        print "end"
      }'
  )
  # shellcheck disable=SC2016
  printf '%s\n' "$h_seen" | while read -r h_kind h_pid; do
    case $h_kind in
      busy)
        case $h_ours in *" $h_pid "*) continue ;; esac
        h_name=
        { read -r h_name <"/proc/$h_pid/comm"; } 2>/dev/null
        if grep -qs kubepods "/proc/$h_pid/cgroup"; then h_say "busy pod $h_pid $h_name"; else h_say "busy gpu $h_pid $h_name"; fi
        ;;
      hidden)
        h_why="this needs root (--sudo)"
        if [ "$h_uid" = 0 ] || [ "$H_SUDO" = 1 ]; then h_why="hidden from root, too"; fi
        h_say "unread what $h_pid processes hold open; $h_why"
        ;;
      sudo) h_say "unread what other users' processes hold open; sudo -n was refused" ;;
    esac
  done
  case $h_seen in *end) ;; *) h_say "unread what the processes hold open; looking did not end" ;; esac
  # 4026531836 is the kernel's number of the first process table: in any other one, some processes are out of sight.
  case $(readlink /proc/self/ns/pid) in
    'pid:[4026531836]') ;;
    *) h_say "unread the processes outside of this container; a sweep inside pods is started as an MPIJob instead" ;;
  esac
  if command -v nvidia-smi >/dev/null 2>&1; then
    if h_smi=$(exec 8<&- 9<&-; timeout -k 2 15 nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader 2>&1); then
      printf '%s\n' "$h_smi" | while IFS=', ' read -r h_pid h_name; do
        case $h_pid in
          *[!0-9]* | '') ;;
          *) case $h_ours in *" $h_pid "*) ;; *) h_say "busy gpu $h_pid $h_name" ;; esac ;;
        esac
      done
    else
      h_say "unread which programs compute; nvidia-smi did not answer"
    fi
  fi
}

# Everything a run of this sweep started here: mpirun, its ssh and the ranks have the mark in their environment, its daemon
# among its words.
h_marked() {
  {
    grep -lsF "STRAGGLER_LOAD=$H_MARK" /proc/[0-9]*/environ
    grep -lsF straggler_sweep /proc/[0-9]*/cmdline | while read -r h_words; do
      tr '\0' ' ' <"$h_words" | grep -qF " straggler_sweep $H_MARK " && echo "$h_words"
    done
  } 2>/dev/null | cut -d / -f 3 | sort -u
}
h_nap() { sleep 0.2 2>/dev/null || sleep 1; }
# Asks once, insists after 3 s; what is left 5 s after that is said.
h_end() {
  h_try=0
  while h_pids=$(h_marked) && [ -n "$h_pids" ] && [ "$h_try" -lt 40 ]; do
    # shellcheck disable=SC2086
    if [ "$h_try" = 0 ]; then kill -TERM $h_pids; elif [ "$h_try" -ge 15 ]; then kill -KILL $h_pids; fi 2>/dev/null
    h_try=$((h_try + 1))
    h_nap
  done
  # shellcheck disable=SC2086
  set -- $h_pids
  h_left=$#
}
# shellcheck disable=SC2317,SC2329
h_leave() {
  trap '' HUP INT TERM
  trap - EXIT
  h_end
  # shellcheck disable=SC2086
  rm -f -- $h_held
  h_say "gone $h_left"
  exit 0
}

h_main() {
  exec 2>/dev/null
  set +aefuvxC
  LC_ALL=C
  LANG=C
  LANGUAGE=C
  IFS=' 	
'
  PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
  export LC_ALL LANG LANGUAGE PATH
  unset ENV BASH_ENV CDPATH GREP_OPTIONS POSIXLY_CORRECT STRAGGLER_LOAD
  umask 077
  h_uid=$(id -u)
  h_held=
  # A reader that has gone must not end this before it has ended the rest.
  trap '' PIPE
  for h_tool in flock timeout stat awk grep dd; do
    if ! command -v "$h_tool" >/dev/null 2>&1; then
      h_say "nolock $h_tool is not installed there"
      exit 0
    fi
  done
  # shellcheck disable=SC2086
  if ! h_lock; then
    if [ -n "$h_held" ]; then rm -f -- $h_held; fi
    h_say refused
    exit 0
  fi
  trap h_leave EXIT
  trap 'exit 0' HUP INT TERM
  h_say locked
  h_check
  while :; do
    h_word=$(exec 8<&- 9<&-; timeout "$H_LINK" dd bs=1 count=1 2>/dev/null)
    case $h_word in
      .) ;;
      c) h_check ;;
      k) h_end; h_say "clean $h_left" ;;
      *) exit 0 ;;
    esac
  done
}
