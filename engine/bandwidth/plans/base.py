"""What every engine needs to know of a sweep: the load, the names of the results, the plan as it is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from straggler.engine.bandwidth.model import Round
from straggler.engine.errors import UsageError
from straggler.engine.knowledge import Instance, Knowledge
from straggler.engine.safetext import safe

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
"""A node name that may stand in a script, a manifest and a file's name."""

ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^\x00-\x1f\x7f]*")
MCA = re.compile(r"[a-z][a-z0-9_]*")
_SIZE = re.compile(r"([0-9]{1,12})([KMG]?)", re.IGNORECASE)
_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

HEAD = "# straggler: nodes"
"""Begins the first line of every result: the nodes, as a pod or a host may go by another name inside."""

CLOSING = "# straggler: exited with status"
"""Begins the last line of every result whose run has come to an end, one way or the other."""

TIMED_OUT = "# straggler: timed out after"
"""Begins the line before it where the run was ended at its deadline."""

FRESH = f"""\
fresh() {{  # FILE NODES; begins a result. One that is there stays; one of ours that was cut off makes room, so that it is run again
  if head -n 1 "$1" 2>/dev/null | grep -q '^{HEAD} ' && ! grep -q '^{CLOSING} ' "$1"; then mv -f "$1" "$1.cut"; fi
  (set -C; echo "{HEAD} $2" >"$1") 2>/dev/null && return
  echo "kept as it is: $1" >&2
  return 1
}}
"""
"""What the scripts for Slurm and SSH have in common (bash)."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run does. `sizes`: bytes, smallest and largest, doubling; `deadline` and `grace`: seconds.

    `gpus` and `efa` are per node. `environment` is NAME=VALUE, `mca` pairs for mpirun. `seconds` is what a healthy run takes,
    `between` what the engine takes from one round to the next.
    """

    binary: str
    gpus: int
    efa: int
    sizes: tuple[int, int]
    iterations: int
    warmup: int
    deadline: int
    grace: int
    seconds: int
    between: int = 0
    environment: tuple[str, ...] = ()
    mpirun: str = "mpirun"
    mca: tuple[tuple[str, str], ...] = ()

    def arguments(self, gpus_per_process: int) -> list[str]:
        """nccl-tests' own arguments: one process per GPU between nodes, one for all GPUs of a node alone."""
        low, high = self.sizes
        words = ["-b", spelled(low), "-e", spelled(high), "-f", "2", "-g", str(gpus_per_process)]
        return [*words, "-n", str(self.iterations), "-w", str(self.warmup)]


@dataclass(frozen=True, slots=True)
class Pods:
    """What only pods need. `tolerations` are keys tolerated whatever their value.

    `compute_domain`: the nodes are of a type that shares NVLink between nodes.
    """

    image: str
    hugepages: str
    memory: str
    shm: str
    start_seconds: int
    keep_seconds: int
    tolerations: tuple[str, ...] = ()
    compute_domain: bool = False


@dataclass(frozen=True)
class Plan:
    """A sweep: its nodes in the order they are drawn, and the rounds planned so far."""

    engine: str
    nodes: tuple[str, ...]
    rounds: tuple[Round, ...]
    load: Load
    seed: int
    instance_type: str | None = None
    pods: Pods | None = None
    placement: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def runs(self) -> int:
        return sum(len(one.members) for one in self.rounds)


def folder(one: Round) -> str:
    """Where the results of a round are, below the plan's directory."""
    return f"alone-{one.number:03d}" if one.alone else f"round-{one.number:02d}"


def result(one: Round, member: Sequence[str]) -> str:
    """The file of one run: `round-00/NODE.txt`, `round-01/A__B.txt`, `alone-001/A__B.txt`."""
    return f"{folder(one)}/{'__'.join(member)}.txt"


def listing(one: Round) -> str:
    """The members of a round for a script to read: a line each, names apart by one blank."""
    return "".join(" ".join(member) + "\n" for member in one.members)


def stem(rounds: Sequence[Round]) -> str:
    """What the files of one step of planning are called after: its rounds."""
    first, last = folder(rounds[0]), folder(rounds[-1])
    return first if len(rounds) == 1 else f"{first}-to-{last.rpartition('-')[2]}"


def check_names(names: Sequence[str]) -> None:
    """Raises UsageError for the first name that cannot stand in a script or a file's name."""
    for name in names:
        if not NAME.fullmatch(name) or "__" in name:
            raise UsageError(
                f"node {name!r} cannot be swept: names have letters, digits, dots, hyphens and single underscores;"
                " give it such a name (for SSH: a Host entry in ssh config)"
            )


def check_load(load: Load) -> None:
    """Raises UsageError for what cannot stand in a script, or cannot be a load."""
    _check_settings(load.environment)
    for path in (load.binary, load.mpirun):
        if not path.isprintable() or not path or path.startswith("-"):
            raise UsageError(f"{path!r} is not a path that can stand in a script")
    for name, value in load.mca:
        if not MCA.fullmatch(name) or not value.isprintable():
            raise UsageError(f"--mca {f'{name}={value}'!r} is not NAME=VALUE on one line")
    if min(load.gpus, load.deadline, load.grace, load.iterations, load.sizes[0]) < 1 or load.efa < 0:
        raise UsageError("GPUs, sizes, iterations and deadlines are numbers above 0")


def _check_settings(environment: Sequence[str]) -> None:
    for one in environment:
        if not ENVIRONMENT.fullmatch(one):
            raise UsageError(f"--env {one!r} is not NAME=VALUE on one line")


def check_image(image: str) -> None:
    if not image.isascii() or not image.isprintable() or " " in image or not image:
        raise UsageError(f"--image {image!r} is not the name of an image")


def size(text: str) -> int:
    """`8M` in bytes, as nccl-tests reads it. Raises UsageError."""
    found = _SIZE.fullmatch(text.strip().removesuffix("iB").removesuffix("B"))
    if found is None or int(found[1]) == 0:
        raise UsageError(f"{text!r} is not a message size; write it like 8M or 8G")
    return int(found[1]) * _FACTOR[found[2].upper()]


def spelled(many: int) -> str:
    """Bytes as nccl-tests reads them, as short as it stays exact."""
    for letter in "GMK":
        if many % _FACTOR[letter] == 0:
            return f"{many // _FACTOR[letter]}{letter}"
    return str(many)


def sizes(text: str) -> tuple[int, int]:
    """`8M:8G` in bytes. Raises UsageError."""
    low, colon, high = text.partition(":")
    pair = size(low), size(high if colon else low)
    if pair[0] > pair[1]:
        raise UsageError(f"--sizes {safe(text)}: the first is larger than the second; write MIN:MAX")
    return pair


def environment(known: Knowledge, efa: int, own: Sequence[str] = ()) -> tuple[str, ...]:
    """What every run has in its environment; the operator's own settings come on top. Raises UsageError."""
    _check_settings(own)
    words = [*known.word("sweep.environment").split(), *own]
    if efa:
        words = [*known.word("sweep.environment-efa").split(), *words]
    return tuple(
        f"{name}={value}"
        for name, _, value in {w.partition("=")[0]: w.partition("=") for w in words}.values()
    )


def healthy_seconds(
    known: Knowledge, instance: Instance | None, most: tuple[int, int], iterations: int, gpus: int
) -> int:
    """What one run between two healthy nodes takes, seconds: the transfers at line rate, and the time around them."""
    if instance is None or instance.line_gbps <= 0:
        return int(known.number("sweep.run-seconds"))
    ranks = 2 * max(gpus, 1)
    algorithm_rate = instance.line_gbps * 1e9 / 8 / (2 * (ranks - 1) / ranks)
    low, high = most
    moved = sum(low << step for step in range((high // low).bit_length()))
    return round(known.number("sweep.setup-seconds") + moved * iterations / algorithm_rate)
