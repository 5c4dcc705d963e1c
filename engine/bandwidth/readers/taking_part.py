"""Who takes part in a run of nccl-tests: the ranks it lists, and what other lines say of those it does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

RANK = re.compile(
    r"(?a)\bRank\s+(\d{1,18})\s+(?:Group\s+\d+\s+)?(?:Pid\s+(\d{1,18})\s+)?on\s+(\S+)\s+device\s+\d+\s+\[([^\]]*)\]"
)
_NRANKS = re.compile(r"(?a)\bnranks (\d{1,18})\b")
_NCCL_HOST = re.compile(r"(?a)(?:^|[\s>:])([A-Za-z0-9][\w.-]*):\d+:\d+ \[\d+\] ")
_PROCESS = re.compile(
    r"(?a)\[1,(\d{1,18})\]<std|Process name: \[\[\d+,\d+\],(\d{1,18})\]|srun: error: \S+: tasks? (?:\d+[-,])*(\d{1,18}):"
)
"""The number of a process, as Open MPI and srun name it."""

_CUT_LIST = re.compile(r"(?a)^\W*\.\.\.\s*$")


@dataclass(frozen=True, slots=True)
class Rank:
    """One line of the device list. `device` is the PCI address in small letters."""

    number: int
    pid: int
    host: str
    device: str


def rank(line: str) -> Rank | None:
    found = RANK.search(line)
    return found and Rank(int(found[1]), int(found[2] or 0), found[3], found[4].strip().lower())


@dataclass(slots=True)
class Others:
    """What lines other than the device list say. `per_process`: ranks of one process; `top_process`: the highest number of one."""

    per_process: int = 1
    nranks: set[int] = field(default_factory=set)
    hosts: dict[str, None] = field(default_factory=dict)
    top_process: int = -1
    cut_list: bool = False
    list_ended: bool = False

    def note(self, line: str, *, listing: bool) -> None:
        """Take in one line; `listing`: ranks have been listed before it."""
        if listing and _CUT_LIST.match(line):
            self.cut_list = True
        if "nranks " in line and (found := _NRANKS.search(line)):
            self.nranks.add(int(found[1]))
        if "NCCL" in line and (found := _NCCL_HOST.search(line)):
            self.hosts[found[1]] = None
        if "[1," in line or "Process name" in line or "srun: error" in line:
            for found in _PROCESS.finditer(line):
                self.top_process = max(self.top_process, int(found[1] or found[2] or found[3]))

    def note_end(self, lines: Sequence[str], *, last: bool) -> None:
        """Whether something else came after the list, and came whole: what is cut may be the beginning of another rank."""
        at = max((number for number, line in enumerate(lines) if RANK.search(line)), default=-1)
        after = lines[at + 1 : -1] if last else lines[at + 1 :]
        self.list_ended = any(line.strip() and "Rank" not in line for line in after)

    def beside(self, ranks: Sequence[Rank]) -> tuple[str, ...]:
        """Hosts that only other lines speak of."""
        listed = {_short(one.host) for one in ranks}
        return tuple(host for host in self.hosts if _short(host) not in listed)

    def world(self, ranks: Sequence[Rank]) -> int | None:
        """The number of ranks; None unless a line says it or the list is whole.

        It is whole when it counts from 0 without a hole, came to its end, and no line speaks of anyone else.
        """
        if len(self.nranks) == 1:
            return next(iter(self.nranks))
        count = len(ranks)
        if (
            not count
            or sorted(one.number for one in ranks) != list(range(count))
            or count % self.per_process
            or self.cut_list
            or not self.list_ended
            or self.beside(ranks)
            or (self.top_process + 1) * self.per_process > count
        ):
            return None
        return count


def _short(host: str) -> str:
    return host.split(".")[0]
