# The node side of straggler: runs every snippet under a watchdog and frames what it printed.
# POSIX sh and coreutils only (dash, busybox). Nothing happens before the last line, s_main: half a script does nothing.
# Exit codes of a snippet: 120 tool missing, 121 needs root, 122 not applicable here; all others are the tool's own.
have() { command -v "$1" >/dev/null 2>&1; }
missing() { echo "$1 is not installed" >&2; exit 120; }
denied() { echo "$1" >&2; exit 121; }
absent() { echo "$1" >&2; exit 122; }
priv() { if [ "$S_SUDO" = 1 ] && [ "$S_UID" != 0 ]; then sudo -n "$@"; else "$@"; fi; }

# Seconds since boot into s_t, without starting a process where /proc is there.
s_now() { { read -r s_t s_rest </proc/uptime; } 2>/dev/null && s_t=${s_t%%.*} || s_t=$(date +%s); }
s_nap() { sleep 0.1 2>/dev/null || sleep 1; }
s_say() { printf '\n@@straggler %s %s\n' "$S_NONCE" "$1"; }

# Scratch in memory only: the disk may be full, or be the file system that hangs.
s_scratch() {
  for s_base in /dev/shm "${XDG_RUNTIME_DIR:-/dev/shm}" /run /tmp; do
    s_found=0
    while read -r s_rest s_mount s_type s_rest; do
      if [ "$s_mount" = "$s_base" ]; then if [ "$s_type" = tmpfs ]; then s_found=1; else s_found=0; fi; fi
    done 2>/dev/null </proc/mounts
    if [ "$s_found" = 0 ] || [ ! -w "$s_base" ]; then continue; fi
    s_d=$s_base/straggler.$S_NONCE
    mkdir -m 700 "$s_d" 2>/dev/null || { s_d=; continue; }
    head -c 1048576 /dev/zero >"$s_d/probe" 2>/dev/null && { : >"$s_d/probe"; return 0; }
    rm -rf "$s_d"
    s_d=
  done
  return 1
}
s_leave() {
  for s_i in $s_left; do s_stop "$s_i" >/dev/null 2>&1 & done
  if [ -n "$s_d" ]; then rm -rf "$s_d"; fi
}

# One snippet: stdout to .o and stderr to .e (bounded), exit code to .r, the shell's pid to .p; .f says both pipes are closed.
s_job() {
  {
    {
      {
        (
          S_JOB=$S_NONCE.$1.
          export S_JOB
          read -r s_me s_rest </proc/self/stat
          echo "$s_me" >"$s_d/$1.p"
          "s_$1"
        ) 2>&3 3>&-
        echo "$?" >"$s_d/$1.r"
      } | head -c "$((S_CAP + 1))" >"$s_d/$1.o" || : >"$s_d/$1.x"
    } 3>&1 | head -c 4096 >"$s_d/$1.e"
  } </dev/null
  : >"$s_d/$1.f"
}

# Ends one snippet and whatever it started: its shell by pid, its tools by the mark in their environment.
s_stop() {
  if [ -n "$s_d" ] && read -r s_me 2>/dev/null <"$s_d/$1.p"; then kill -KILL "$s_me" 2>/dev/null; fi
  for s_f in $(grep -lF "S_JOB=$S_NONCE.$1." /proc/[0-9]*/environ 2>/dev/null); do
    s_f=${s_f#/proc/}
    kill -KILL "${s_f%/environ}" 2>/dev/null
  done
}

s_emit() {
  s_r=-
  if [ -e "$s_d/$1.r" ]; then read -r s_r <"$s_d/$1.r"; fi
  if [ -e "$s_d/$1.x" ]; then set -- "$1" full; fi
  set -- "$1" "$2" $(cat "$s_d/$1.o" "$s_d/$1.e" 2>/dev/null | cksum) $(wc -c 2>/dev/null <"$s_d/$1.o")
  s_say "begin $1 $2 ${s_r:--} $3 $4 ${5:-0} $((s_t - s_begun))"
  cat "$s_d/$1.o" "$s_d/$1.e" 2>/dev/null
  s_say "end $1"
}

# All snippets at once; each is sent as soon as it ends. One that outlives its seconds is killed, and 2 s later given up.
s_together() {
  for s_i in $s_left; do s_job "$s_i" >/dev/null 2>&1 & done
  while [ -n "$s_left" ]; do
    s_keep=
    s_now
    for s_i in $s_left; do
      eval "s_max=\$S_MAX_$s_i s_killed=\${s_killed_$s_i:-}"
      if [ -e "$s_d/$s_i.f" ]; then
        if [ -n "$s_killed" ]; then s_emit "$s_i" late; else s_emit "$s_i" ok; fi
      elif [ -n "$s_killed" ] && [ $((s_t - s_killed)) -ge 2 ]; then
        s_emit "$s_i" left
      else
        if [ -z "$s_killed" ] && [ $((s_t - s_begun)) -gt "$s_max" ]; then
          s_stop "$s_i" >/dev/null 2>&1 &
          eval "s_killed_$s_i=$s_t"
        fi
        s_keep="$s_keep $s_i"
      fi
    done
    s_left=$s_keep
    if [ -n "$s_left" ]; then s_nap; fi
  done
}

# No memory to write to: one snippet after the other, held in a variable; stderr is given up, exit codes are not.
s_in_turn() {
  for s_i in $s_left; do
    eval "s_max=\$S_MAX_$s_i"
    { sleep "$s_max"; s_stop "$s_i"; } >/dev/null 2>&1 </dev/null &
    s_dog=$!
    s_out=$(
      { (S_JOB=$S_NONCE.$s_i. && export S_JOB && "s_$s_i"); printf '@@%s' "$?"; } 2>/dev/null </dev/null | head -c "$((S_CAP + 5))"
    )
    s_state=ok
    kill -0 "$s_dog" 2>/dev/null || s_state=late
    kill "$s_dog" 2>/dev/null
    s_r=${s_out##*@@} s_body=${s_out%@@*}
    case $s_r in '' | *[!0-9]*) s_r=- s_state=full ;; esac
    s_now
    set -- $(printf '%s' "$s_body" | cksum)
    s_say "begin $s_i $s_state $s_r $1 $2 $2 $((s_t - s_begun))"
    printf '%s' "$s_body"
    s_say "end $s_i"
  done
  s_left=
}

s_main() {
  LC_ALL=C LANG=C LANGUAGE=C IFS=' 	
'
  PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/amazon/efa/bin:/usr/local/cuda/bin
  export LC_ALL LANG LANGUAGE PATH
  unset ENV BASH_ENV CDPATH GREP_OPTIONS POSIXLY_CORRECT
  umask 077
  s_d= s_left=$S_ALL
  S_UID=$(id -u)
  s_now
  s_begun=$s_t
  trap s_leave EXIT
  trap 'exit 129' HUP INT PIPE TERM
  s_say "hello 1 $S_UID $(date +%s)"
  if s_scratch; then s_together; else s_in_turn; fi
  s_say "done $S_COUNT"
}
