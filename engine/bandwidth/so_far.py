"""What the results of a sweep say so far: the files of its plan read, laid out and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from straggler.engine.bandwidth import judging, sweep
from straggler.engine.bandwidth.model import Attribution, Run, RunState
from straggler.engine.bandwidth.plans.base import CLOSING, HEAD, Plan
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Placement

MOST_BYTES = 64_000_000
"""The longest result that is read; one with NCCL's whole trace may be cut."""

TAIL = 4096


@dataclass(frozen=True)
class SoFar:
    """`going`: results that are still being written."""

    view: MatrixView
    progress: sweep.Progress
    going: tuple[str, ...]

    @property
    def attribution(self) -> Attribution:
        return self.view.attribution


def unreadable(error: OSError) -> bytes:
    """What stands for a result that is there and cannot be read: its run is a failed one, not none."""
    return f"# straggler: this result cannot be read: {error.strerror}\n".encode()


def closed(data: bytes) -> bool:
    """Whether a result has its closing line: the run has come to an end, one way or the other."""
    return f"\n{CLOSING} ".encode() in data[-TAIL:]


def judge(
    plan: Plan, out: Path, known: Knowledge, now: float, places: Mapping[str, Placement] | None = None
) -> SoFar:
    """Read what is there and judge it. A result without its closing line counts once its deadline has passed at `now`.

    `places` come on top of where the plan has its nodes.
    """
    patience = plan.load.deadline + plan.load.grace + 60
    data: dict[str, bytes] = {}
    going: list[str] = []
    for name in sweep.results(plan, out):
        path = out / name
        try:
            with path.open("rb") as file:
                read = file.read(MOST_BYTES)
            changed = path.stat().st_mtime
        except OSError as error:
            read, changed = unreadable(error), 0.0
        if closed(read) or now - changed > patience:
            data[name] = read
        else:
            going.append(name)
    seen = judging.view(
        runs(plan, data),
        known,
        instance_type=plan.instance_type,
        placements={**sweep.placement_of(plan), **(places or {})},
        nodes=plan.nodes,
    )
    return SoFar(seen, sweep.progress(plan, [*data, *going]), tuple(going))


def runs(plan: Plan, data: Mapping[str, bytes]) -> list[Run]:
    """The runs in some results, by the plan's names. A result in which nothing is recognised is a failed run, not none."""
    from straggler.engine.bandwidth.readers import read_runs

    members, nodes = sweep.members(plan), frozenset(plan.nodes)
    found: list[Run] = []
    for name, raw in data.items():
        read = read_runs(_bare(raw), name) or [
            Run(name, "nccl-tests", members[name], RunState.FAILED, "it left nothing that says how it went")
        ]
        found += [sweep.rehosted(one, members[name], nodes) for one in read]
    return found


def _bare(raw: bytes) -> bytes:
    """What the tool itself printed, where the run ended well; else without our first line only, as the last says what happened."""
    first = raw.find(b"\n") + 1
    start = first if raw.startswith(HEAD.encode()) else 0
    return raw[start:].removesuffix(f"\n{CLOSING} 0\n".encode())
