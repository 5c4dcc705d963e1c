"""Mounts and how full they are; each `df` on its own, so that one mount that hangs does not take the others with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

# Each df runs beside the others and is given 5 s: a dead NFS or Lustre server blocks it in the kernel, kill or no kill.
SNIPPET = r"""
if [ ! -r /proc/mounts ]; then absent "this node shows no /proc/mounts"; fi
echo mounts
cat /proc/mounts
echo df
b=' '
while read -r dev m t o; do
  case $t in ext*|xfs|btrfs|zfs|overlay|lustre|nfs*|tmpfs|fuse*|9p|virtiofs|f2fs) ;; *) continue ;; esac
  case $m in /proc/*|/sys/*|/run/*|/var/lib/kubelet/*|/var/lib/docker/*|/var/lib/containerd/*) continue ;; esac
  case $b in *" $m "*) continue ;; esac
  b="$b$m "
  case $m in *\\*) p=$(printf '%b' "$m") ;; *) p=$m ;; esac
  beside "$m" df -P -k "$p"
done </proc/mounts
besides 5
echo inodes
df -P -i / 2>&1 | tail -n 1
echo end
"""

_NUMBER = re.compile(r"-?[0-9]{1,20}|-")
_PERCENT = re.compile(r"[0-9]{1,3}%|-")
_SAID = re.compile(r"said (\S+) \| (.*)")
WAIT = 5
"""Seconds a file system has to say its size."""

ASKED = re.compile(r"(?:ext\d?|xfs|btrfs|zfs|overlay|lustre|nfs\d?|tmpfs|fuse.*|9p|virtiofs|f2fs)")
SKIPPED = ("/proc/", "/sys/", "/run/", "/var/lib/kubelet/", "/var/lib/docker/", "/var/lib/containerd/")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/mounts, its octal escapes undone."""

    device: str
    path: str
    kind: str
    options: tuple[str, ...]

    @property
    def read_only(self) -> bool:
        return "ro" in self.options


@dataclass(frozen=True, slots=True)
class Size:
    """KiB, and percent used as df rounds it (up)."""

    kib: int
    used_kib: int
    used_pct: int
    line: str


@dataclass(frozen=True, slots=True)
class Filesystems:
    """`sizes` by mount path; `troubles`: what df said instead of a size; `silent`: asked, and no answer came within WAIT seconds."""

    mounts: tuple[Mount, ...]
    sizes: Mapping[str, Size]
    troubles: Mapping[str, str]
    silent: tuple[str, ...]
    root_inodes_pct: int | None
    inodes_said: str

    def mount(self, path: str) -> Mount | None:
        """The mount that is on top at `path`: the last one listed."""
        return next((one for one in reversed(self.mounts) if one.path == path), None)


def parse(text: str) -> Filesystems | Unread:
    lines = text.splitlines()
    if not lines or lines[0] != "mounts" or lines[-1] != "end" or "df" not in lines or "inodes" not in lines:
        return garbled("the reply is not a whole list of mounts")
    at, upto = lines.index("df"), len(lines) - 1 - lines[::-1].index("inodes")
    mounts = tuple(_mount(line) for line in lines[1:at])
    sizes: dict[str, Size] = {}
    troubles: dict[str, str] = {}
    answered: set[str] = set()
    rows: set[str] = set()
    for line in lines[at + 1 : upto]:
        if line.startswith("ended "):
            answered.add(_unescape(line.removeprefix("ended ")))
        elif found := _SAID.fullmatch(line):
            path, said = _unescape(found[1]), found[2]
            numbers = _numbers(said)
            if numbers is None:
                troubles.update({} if said.startswith("Filesystem ") else {path: said})
                continue
            rows.add(path)
            if numbers[3] is not None:
                sizes[path] = Size(numbers[0] or 0, numbers[1] or 0, numbers[3], said)
        else:
            return garbled("a line is neither a size nor an answer")
    troubles.update(dict.fromkeys(sorted(answered - rows - troubles.keys()), "df ended without a size"))
    wanted = [one.path for one in mounts if ASKED.fullmatch(one.kind) and not one.path.startswith(SKIPPED)]
    silent = tuple(path for path in dict.fromkeys(wanted) if path not in answered)
    said = lines[upto + 1] if upto + 2 < len(lines) else "nothing"
    inodes = _numbers(said)
    return Filesystems(mounts, sizes, troubles, silent, inodes[3] if inodes else None, "" if inodes else said)


def _numbers(row: str) -> tuple[int | None, int | None, int | None, int | None] | None:
    """Total, used, free and percent of a df row; a dash is None. The device's name may hold blanks, so does the mount's."""
    words = row.split(" ")
    words = [word for word in words if word]
    for at in range(1, len(words) - 4):
        four = words[at : at + 4]
        if (
            all(_NUMBER.fullmatch(word) for word in four[:3])
            and _PERCENT.fullmatch(four[3])
            and words[at + 4][0] == "/"
        ):
            total, used, free = (None if word == "-" else int(word) for word in four[:3])
            return total, used, free, None if four[3] == "-" else int(four[3][:-1])
    return None


def _mount(line: str) -> Mount:
    device, path, kind, options, *_ = line.split(" ")
    return Mount(_unescape(device), _unescape(path), kind, tuple(options.split(",")))


def _unescape(text: str) -> str:
    """\\040 and its kin, as the kernel writes blanks in names."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def fields(facts: Filesystems) -> Mapping[str, str | None]:
    shared = sorted(
        f"{one.path} ({one.kind})"
        for one in facts.mounts
        if one.kind == "lustre" or one.kind.startswith("nfs")
    )
    shm = facts.sizes.get("/dev/shm")
    root = facts.sizes.get("/")
    return {
        "shared file systems": ", ".join(dict.fromkeys(shared)) or "none",
        "/dev/shm size": None if shm is None else f"{shm.kib / 1024**2:.0f} GiB",
        "root volume size": None if root is None else f"{root.kib / 1024**2:.0f} GiB",
    }


COLLECTOR = Collector(
    id="filesystems",
    what="every mount and how full it is: a full root volume, a small /dev/shm or a mount that hangs stop a job",
    snippet=SNIPPET,
    parse=parse,
    commands=("cat", "df", "tail"),
    fields=fields,
    seconds=20,
)
