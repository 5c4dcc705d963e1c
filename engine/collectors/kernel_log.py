"""Kernel messages that concern GPUs, NVSwitch, EFA, Lustre and memory, of this boot and the one before.

Both sources are asked because either may be short: the ring buffer wraps, and the journal may be volatile, rate limited or
closed to the user. Times are made absolute by the node's own clock, which the reply carries; what that clock is worth is
seen by whoever holds the operator's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.kernel_lines import Line
from straggler.engine.model import Status, Unread

KEPT = 260
"""Newest lines of interest per source; with 300 characters a line, three sources stay below the size of one reply."""

START = 300
"""Seconds after boot within which the first line of a log that is whole was written: the clock may be set meanwhile."""

# What sudo only warns of is let go: the program it starts runs all the same. `first` is the oldest line of the source,
# of interest or not: it tells how far back the silence reaches. `ended` closes a source.
SNIPPET = r"""
read -r u r </proc/uptime && echo "clock $(date +%s) ${u%%.*}"
p='NVRM|NVLink|nvidia|nvswitch|Xid|fallen off|infiniband|[^a-z]efa|rdmap|Out of memory|out of memory|oom-kill|oom_reaper|Killed process'
p="$p|Lustre|LNet|segfault|hung_task|blocked for more than|soft lockup|hardware error|Hardware Error|AER:"
p="$p|nvme.*(timeout|abort|reset)|I.O error|EXT4-fs error|XFS .*(error|shut)"
keep() {
  sed -E '/^sudo: (unable to resolve host|unable to send audit message|setrlimit\()/d' |
    sed -nE -e "/$p/p" -e '1s/^/first /p' -e '/^(dmesg|sudo|journalctl): /p' -e '/^failed [0-9]+$/p' | cut -c1-300 | tail -n KEPT
  echo ended
}
n=0
if have dmesg; then
  n=1
  echo "from dmesg"
  { priv dmesg 2>&1 || echo "failed $?"; } | keep
fi
if have journalctl; then
  n=1
  for b in 0 -1; do
    echo "from journal $b"
    { priv journalctl -k -b "$b" -o short-unix --no-pager -q 2>&1 || echo "failed $?"; } | keep
  done
fi
if [ "$n" = 0 ]; then missing "dmesg and journalctl"; fi
echo end
""".replace("KEPT", str(KEPT))

_HEAD = re.compile(r"clock ([0-9]{1,12}) ([0-9]{1,12})")
_FROM = re.compile(r"from (dmesg|journal 0|journal -1)")
_RING = re.compile(r"(?:<[0-9]{1,3}>)?\[ *([0-9]{1,10}\.[0-9]{1,9})\] ?(.*)")
_UNIX = re.compile(r"([0-9]{9,11}\.[0-9]{1,9}) \S{1,255} [^ :]{1,60}: ?(.*)")
_REFUSED = (
    "Operation not permitted",
    "Permission denied",
    "insufficient permissions",
    "a password is required",
    "may not run sudo",
    "not in the sudoers",
    "not allowed to execute",
    "a terminal is required",
    "must have a tty",
)


@dataclass(frozen=True, slots=True)
class Source:
    """One place kernel lines were looked for. `since`: the node's time from which on it has all lines of interest.

    `why` is empty where it was read; `cut`: older lines of interest were left out.
    """

    name: str
    since: float | None
    lines: tuple[Line, ...]
    why: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class KernelLog:
    """`clock` and `uptime` in seconds, both the node's. `lines`: of all sources, oldest first, each message once."""

    clock: int
    uptime: int
    sources: tuple[Source, ...]
    lines: tuple[Line, ...]

    @property
    def boot(self) -> int:
        return self.clock - self.uptime

    @property
    def since(self) -> float:
        """From when on nothing of interest can have been missed, by the node's clock. At least one source was read.

        The boot before counts only where this one is known from its start: else what lies between them was not seen.
        """
        known = {one.name: one.since for one in self.sources if one.since is not None}
        before = known.pop("journal -1", None)
        since = min(known.values())
        return min(since, before) if before is not None and since <= self.boot + START else since


def parse(text: str) -> KernelLog | Unread:
    """Every section closed and the end reached, or the reply is unread; no readable section is no silence but a refusal."""
    lines = text.split("\n")
    head = _HEAD.fullmatch(lines[0])
    if head is None or lines[-2:] != ["end", ""]:
        return garbled("the reply does not reach from its clock to its end")
    clock, uptime = int(head[1]), int(head[2])
    sources = []
    body = iter(lines[1:-2])
    for line in body:
        section = _FROM.fullmatch(line)
        if section is None:
            return garbled("a line stands outside of any source")
        held: list[str] = []
        for one in body:
            if one == "ended":
                break
            held.append(one)
        else:
            return garbled("a source does not reach its end")
        sources.append(_source(section[1], held, clock - uptime))
    read = [source for source in sources if not source.why]
    current = [source for source in read if source.name != "journal -1"]
    if not current:
        return _refused(sources)
    return KernelLog(clock, uptime, tuple(sources), _merge(read))


def _source(name: str, held: Sequence[str], boot: int) -> Source:
    stamps = _RING if name == "dmesg" else _UNIX
    base = boot if name == "dmesg" else 0
    kept: list[Line] = []
    first, failed = None, ""
    for one in held:
        found = stamps.fullmatch(one.removeprefix("first "))
        if found is None:
            # A wrapped message continues without a stamp of its own; a tool's complaint has its name in front.
            if re.match(r"(?:dmesg|sudo|journalctl): |failed [0-9]+$|first ", one):
                failed = failed or one.removeprefix("first ")
            elif kept:
                kept.append(Line(one.strip(), kept[-1].at))
            continue
        at = base + float(found[1])
        if one.startswith("first "):
            first = at
        else:
            kept.append(Line(found[2], at))
    if first is None and not (kept and len(held) >= KEPT):
        return Source(name, None, (), failed or "printed nothing")
    if failed:
        return Source(name, None, tuple(kept), failed)
    cut = len(held) >= KEPT
    return Source(name, kept[0].at if cut and kept else first, tuple(kept), cut=cut)


def _merge(read: Sequence[Source]) -> tuple[Line, ...]:
    """Lines of all sources; a message of this boot that the journal has too is not counted again from the ring buffer."""
    journal = [line for source in read if source.name != "dmesg" for line in source.lines]
    known = Counter(line.text for source in read if source.name == "journal 0" for line in source.lines)
    extra = []
    for source in read:
        for line in source.lines if source.name == "dmesg" else ():
            if known[line.text] > 0:
                known[line.text] -= 1
            else:
                extra.append(line)
    return tuple(sorted([*journal, *extra], key=lambda line: line.at or 0.0))


def _refused(sources: Sequence[Source]) -> Unread:
    why = "; ".join(dict.fromkeys(f"{one.name}: {one.why}" for one in sources if one.name != "journal -1"))
    refused = any(word in why for word in _REFUSED)
    return Unread(
        Status.NEEDS_ROOT if refused else Status.FAILED, why or "no source of kernel lines was asked"
    )


COLLECTOR = Collector(
    id="kernel-log",
    what="kernel messages of GPUs, NVSwitch, EFA, Lustre and memory, of this boot and the one before",
    snippet=SNIPPET,
    parse=parse,
    commands=("date", "sed", "cut", "tail", "dmesg", "journalctl"),
    seconds=25,
)
