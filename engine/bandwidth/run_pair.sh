# One run, on the first of its hosts: mpirun under a deadline of this node's own, and a watch on the operator's link.
# POSIX sh and coreutils only. Nothing happens before the last line, r_main COMMAND: half a script does nothing.
# Set in front of this: R_NONCE, R_MARK, R_SECONDS (the deadline), R_GRACE. stdin is the operator's link: its end ends the run.
r_main() {
  set +aefuvxC
  IFS=' 	
'
  PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/opt/amazon/openmpi/bin:/usr/local/sbin:/usr/sbin:/sbin
  STRAGGLER_LOAD=$R_MARK
  export PATH STRAGGLER_LOAD
  unset ENV BASH_ENV CDPATH
  exec 3<&0
  printf '@@straggler %s begun\n' "$R_NONCE"
  r_since=$(date +%s)
  # Asked to end at the deadline, made to R_GRACE later: status 124 or 137 says that it came to that.
  timeout -k "$R_GRACE" "$R_SECONDS" "$@" </dev/null 3<&- 2>&1 &
  r_run=$!
  trap 'kill -TERM "$r_run"' HUP INT TERM
  { cat >/dev/null; kill -TERM "$r_run"; } <&3 >/dev/null 2>&1 &
  r_watch=$!
  wait "$r_run"
  r_status=$?
  # A signal to this script ends `wait` early: the run's own end is what counts.
  while kill -0 "$r_run" 2>/dev/null; do
    wait "$r_run"
    r_status=$?
  done
  kill -KILL "$r_watch" 2>/dev/null
  printf '\n@@straggler %s ended %s %s\n' "$R_NONCE" "$r_status" "$(($(date +%s) - r_since))"
}
