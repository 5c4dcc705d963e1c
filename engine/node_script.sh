# The node side of straggler: runs every snippet under a watchdog and frames what it printed.
# POSIX sh and coreutils only (dash, busybox). Nothing happens before the last line, s_main: half a script does nothing.
# Exit codes of a snippet: 120 tool missing, 121 needs root, 122 not applicable here; all others are the tool's own.
have() { command -v "$1" >/dev/null 2>&1; }
missing() { echo "$1 is not installed" >&2; exit 120; }
denied() { echo "$1" >&2; exit 121; }
absent() { echo "$1" >&2; exit 122; }
priv() { if [ "$S_SUDO" = 1 ] && [ "$S_UID" != 0 ]; then sudo -n "$@"; else "$@"; fi; }
# `beside LABEL CMD...` runs CMD on its own: one that hangs in the kernel holds up nothing else. Its output goes to the scratch;
# without one a reader of its own stands between, which can always be killed, so that nothing that hangs holds our output.
# `besides SECONDS` waits for them all, prints `said LABEL | LINE` for what they said and `ended LABEL` for each that ended, and
# kills what did not. (Each `:` keeps a shell of its own above what runs: one to be killed first.)
beside() {
  s_n=$((${s_n:-0} + 1))
  eval "s_label_$s_n=\$1"
  shift
  if [ -n "$s_d" ]; then
    "$@" >"$s_d/$S_JOB$s_n" 2>&1 </dev/null &
  else
    { { "$@" 2>&1 </dev/null; :; } | { s_read=$(head -c 4096) && s_tell "$s_n" "$s_read"; }; :; } &
  fi
  eval "s_beside_$s_n=$!"
}
s_tell() {
  eval "s_label=\$s_label_$1"
  if [ -n "$2" ]; then printf '%s\n' "$2" | while IFS= read -r s_line; do printf 'said %s | %s\n' "$s_label" "$s_line"; done; fi
  printf 'ended %s\n' "$s_label"
}
besides() {
  s_naps=0 s_open=" "
  while [ -n "$s_open" ]; do
    s_open= s_k=0
    while [ "$s_k" -lt "${s_n:-0}" ]; do
      s_k=$((s_k + 1))
      eval "s_p=\$s_beside_$s_k"
      if [ "$s_p" = "-" ]; then continue; fi
      s_state=Z
      { read -r s_rest s_rest s_state s_rest <"/proc/$s_p/stat"; } 2>/dev/null
      if [ "$s_state" = Z ]; then
        if [ -n "$s_d" ]; then s_tell "$s_k" "$(head -c 4096 <"$s_d/$S_JOB$s_k")"; fi
        eval "s_beside_$s_k=-"
      else
        s_open="$s_open $s_p"
      fi
    done
    if [ "$s_naps" -ge "$(($1 * 10))" ]; then break; fi
    if [ -n "$s_open" ]; then sleep 0.1 2>/dev/null || { sleep 1; s_naps=$((s_naps + 9)); }; fi
    s_naps=$((s_naps + 1))
  done
  # From the top down, so the reader (one level above its command) goes before it could take its command's death for an end.
  for s_p in $s_open; do kill -KILL $(s_kin "$s_p") "$s_p"; done 2>/dev/null
}

# Seconds since boot into s_t, without starting a process where /proc is there.
s_now() { { read -r s_t s_rest </proc/uptime; } 2>/dev/null && s_t=${s_t%%.*} || s_t=$(date +%s); }
# Short naps while most snippets end, longer ones while only a slow tool is waited for.
s_nap() {
  s_long=0.5
  if [ $((s_t - s_begun)) -lt 2 ]; then s_long=0.1; elif [ $((s_t - s_begun)) -lt 5 ]; then s_long=0.2; fi
  sleep "$s_long" || sleep 1
}
# A line that nobody takes ends the script, also where PIPE is ignored.
s_say() { printf '\n@@straggler %s %s\n' "$S_NONCE" "$1" || exit 129; }

# Scratch in memory only: the disk may be full, or be the file system that hangs.
s_scratch() {
  for s_base in /dev/shm "${XDG_RUNTIME_DIR:-/dev/shm}" /run /tmp; do
    s_found=0
    while read -r s_rest s_mount s_type s_rest; do
      if [ "$s_mount" = "$s_base" ]; then if [ "$s_type" = tmpfs ]; then s_found=1; else s_found=0; fi; fi
    done 2>/dev/null </proc/mounts
    if [ "$s_found" = 0 ] || [ ! -w "$s_base" ]; then continue; fi
    s_d=$s_base/straggler.$S_MARK
    mkdir -m 700 "$s_d" 2>/dev/null || { s_d=; continue; }
    head -c 1048576 /dev/zero >"$s_d/probe" 2>/dev/null && { : >"$s_d/probe"; return 0; }
    rm -rf "$s_d"
    s_d=
  done
  return 1
}

# All processes below $1, by parent links: these find the shells of a snippet, which carry no mark.
s_kin() {
  s_next=$1
  while [ -n "$s_next" ]; do
    s_want=
    for s_f in $s_next; do s_want="$s_want -e PPid:.$s_f"; done
    s_next=
    for s_f in $(grep -lx $s_want /proc/[0-9]*/status 2>/dev/null); do
      s_f=${s_f#/proc/}
      s_next="$s_next ${s_f%/status}"
    done
    echo "$s_next"
  done
}
# All processes that have the mark $1 in their environment: these find what left the tree. (-z: busybox stops at a NUL.)
s_marked() {
  for s_f in $(grep -lzF "S_JOB=$S_MARK.$1" /proc/[0-9]*/environ 2>/dev/null); do
    s_f=${s_f#/proc/}
    echo "${s_f%/environ}"
  done
}
# Ends all below $1, then what carries the mark $2, again while new ones appear. May hang on a sick process: run it beside.
s_stop() {
  for s_f in $(s_kin "$1"); do kill -KILL "$s_f"; done
  for s_try in 1 2 3; do
    s_found=$(s_marked "$2")
    if [ -z "$s_found" ]; then return; fi
    for s_f in $s_found; do kill -KILL "$s_f"; done
  done
}

# The reader may be gone, a second signal may come: neither may keep the scratch from being removed.
s_leave() {
  trap '' HUP INT PIPE TERM
  exec >/dev/null 2>&1
  if [ -n "$s_left$s_lost" ]; then
    for s_f in $(s_kin "$$"); do kill -KILL "$s_f"; done
    s_stop '' '' &
  fi
  if [ -n "$s_d" ]; then rm -rf "$s_d" || { sleep 1; rm -rf "$s_d"; }; fi
}

# One snippet: stdout to .o and stderr to .e (bounded), exit code to .r, the shell's pid to .p; .f says both pipes are closed.
# What goes beyond the bound ends the tool on stdout, and is let go on stderr.
s_job() {
  {
    {
      {
        (
          S_JOB="$S_MARK.$1."
          export S_JOB
          read -r s_me s_rest </proc/self/stat
          echo "$s_me" >"$s_d/$1.p"
          "s_$1"
        ) 2>&3 3>&-
        echo "$?" >"$s_d/$1.r"
      } | head -c "$((S_CAP + 1))" >"$s_d/$1.o" || : >"$s_d/$1.x"
    } 3>&1 | { head -c 4096 >"$s_d/$1.e"; exec cat >/dev/null; }
  } </dev/null
  : >"$s_d/$1.f"
}

# The checksum covers the frame's own words as well: a damaged exit code must not pass for a good one.
s_emit() {
  s_r=
  if [ -e "$s_d/$1.r" ]; then read -r s_r <"$s_d/$1.r"; fi
  s_state=$2
  if [ "$s_state" = ok ] && [ -e "$s_d/$1.x" ]; then s_state=full; fi
  set -- "$1" "$(wc -c 2>/dev/null <"$s_d/$1.o")"
  s_words="$1 $s_state ${s_r:--} $((${2:-0})) $((s_t - s_begun))"
  s_say "begin $s_words $({ echo "$s_words"; cat "$s_d/$1.o" "$s_d/$1.e"; } 2>/dev/null | cksum)"
  cat "$s_d/$1.o" "$s_d/$1.e" 2>/dev/null
  s_say "end $1"
}

# All snippets at once; each is sent as soon as it ends. One that outlives its seconds is killed, and 2 s later given up.
s_together() {
  for s_i in $s_left; do
    eval "s_killed_$s_i="
    s_job "$s_i" >/dev/null 2>&1 &
  done
  while [ -n "$s_left" ]; do
    s_keep= s_was=$s_t
    s_now
    # An empty line a second: a reader that went away is noticed while nothing else is to be said.
    if [ "$s_t" != "$s_was" ]; then printf '\n' || exit 129; fi
    for s_i in $s_left; do
      eval "s_max=\$S_MAX_$s_i s_killed=\$s_killed_$s_i"
      if [ -e "$s_d/$s_i.f" ]; then
        if [ -n "$s_killed" ]; then s_emit "$s_i" late; else s_emit "$s_i" ok; fi
      elif [ -n "$s_killed" ] && [ $((s_t - s_killed)) -ge 2 ]; then
        s_lost="$s_lost $s_i"
        s_emit "$s_i" left
      else
        if [ -z "$s_killed" ] && [ $((s_t - s_begun)) -gt "$s_max" ]; then
          s_me=
          read -r s_me 2>/dev/null <"$s_d/$s_i.p"
          { s_stop "$s_me" "$s_i."; kill -KILL "$s_me"; } >/dev/null 2>&1 &
          eval "s_killed_$s_i=$s_t"
        fi
        s_keep="$s_keep $s_i"
      fi
    done
    s_left=$s_keep
    if [ -n "$s_left" ]; then s_nap; fi
  done
}

# The watchdog of one snippet in turn: ends all below this script but itself; what holds the text (head) a second later.
s_watch() {
  sleep "$2"
  read -r s_me s_rest </proc/self/stat
  for s_spare in head -; do
    for s_f in $(s_kin "$$"); do
      s_name=
      read -r s_name <"/proc/$s_f/comm"
      if [ "$s_f" != "$s_me" ] && [ "$s_name" != "$s_spare" ]; then kill -KILL "$s_f"; fi
    done
    for s_f in $(s_marked "$1."); do kill -KILL "$s_f"; done
    sleep 1
  done
}

# No memory to write to: one snippet after the other, held in a variable; stderr and NULs are given up, exit codes are not.
s_in_turn() {
  for s_i in $s_left; do
    eval "s_max=\$S_MAX_$s_i"
    s_now
    s_was=$s_t
    s_watch "$s_i" "$s_max" >/dev/null 2>&1 </dev/null &
    s_dog=$!
    s_out=$(
      { (S_JOB="$S_MARK.$s_i." && export S_JOB && "s_$s_i"); printf '@@%03d' "$?"; } 2>/dev/null </dev/null | head -c "$((S_CAP + 5))"
    )
    for s_f in $(s_kin "$s_dog") "$s_dog"; do kill -KILL "$s_f"; done
    # Cut by length: a shell takes minutes to look for a pattern in so long a text.
    s_r=$(printf '%s' "$s_out" | tail -c 5) s_body=$s_out s_state=ok
    case $s_r in
      @@[0-9][0-9][0-9]) s_body=${s_out%?????} s_r=${s_r#@@} ;;
      *) s_r=- ;;
    esac
    s_now
    case $s_r in - | 137) if [ $((s_t - s_was)) -ge "$s_max" ]; then s_state=late; fi ;; esac
    set -- $(printf '%s' "$s_body" | cksum)
    s_words="$s_i $s_state $s_r $2 $((s_t - s_begun))"
    s_say "begin $s_words $({ echo "$s_words"; printf '%s' "$s_body"; } | cksum)"
    printf '%s' "$s_body"
    s_say "end $s_i"
  done
  s_left=
}

s_main() {
  exec 2>/dev/null
  set +aefuvxC
  LC_ALL=C LANG=C LANGUAGE=C IFS=' 	
'
  PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/amazon/efa/bin:/usr/local/cuda/bin
  export LC_ALL LANG LANGUAGE PATH
  unset ENV BASH_ENV CDPATH GREP_OPTIONS POSIXLY_CORRECT
  umask 077
  s_d= s_lost= s_left=$S_ALL
  S_UID=$(id -u)
  s_now
  s_begun=$s_t
  trap s_leave EXIT
  trap 'exit 129' HUP INT PIPE TERM
  s_say "hello 1 ${S_UID:--} $(date +%s)"
  if s_scratch; then s_together; else s_in_turn; fi
  s_say "done $S_COUNT"
}
