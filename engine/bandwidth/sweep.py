"""A sweep between two looks at it: the plan as it is kept, what of it has been run, what to run next.

The plan is `plan.json` in the directory of the results, so that a sweep can be gone on with tomorrow and on another machine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from straggler.engine.bandwidth import schedule
from straggler.engine.bandwidth.model import Attribution, Round, Run, Standing
from straggler.engine.bandwidth.plans import ENGINES
from straggler.engine.bandwidth.plans.base import (
    Load,
    Plan,
    Pods,
    check_image,
    check_load,
    check_names,
    folder,
    result,
)
from straggler.engine.errors import FatalError, UsageError
from straggler.engine.model import Placement

MANIFEST = "plan.json"
SCHEMA = 1
MOST_BYTES = 256_000_000
"""The longest plan that is read."""


class _Manifest(msgspec.Struct, frozen=True):
    schema: int
    engine: str
    instance_type: str | None
    seed: int
    load: Load
    pods: Pods | None
    nodes: tuple[str, ...]
    placement: dict[str, tuple[tuple[str, str], ...]]
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class Progress:
    """What of a plan has been run. `missing`: runs without a result, by round, rounds without any left out."""

    done: tuple[str, ...]
    missing: tuple[Round, ...]


def start(plan: Plan, out: Path) -> tuple[Path, ...]:
    """Write a new plan and what its engine runs; what was written. Raises UsageError where the directory holds something else."""
    check_names(plan.nodes)
    files = dict(ENGINES[plan.engine](plan, plan.rounds))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(
            f"{out} is there already and holds no plan of straggler; name a new directory: --out DIR"
        )
    return _write(out, {MANIFEST: text(plan), **files}, folders=[folder(one) for one in plan.rounds])


def extend(plan: Plan, more: Sequence[Round], out: Path) -> tuple[Plan, tuple[Path, ...]]:
    """Add rounds to a plan that is there, and write what runs them."""
    wider = replace(plan, rounds=(*plan.rounds, *more))
    written = _write(out, ENGINES[plan.engine](wider, more), folders=[folder(one) for one in more])
    temporary = out / f".{MANIFEST}.new"
    try:
        temporary.write_text(text(wider), encoding="utf-8")
        os.replace(temporary, out / MANIFEST)
    except OSError as error:
        raise FatalError(f"cannot write {out / MANIFEST}: {error.strerror}") from error
    return wider, written


def _write(out: Path, files: Mapping[str, str], folders: Sequence[str]) -> tuple[Path, ...]:
    """New files only: what is there under one of the names stays, and nothing is written."""
    try:
        there = [name for name in files if (out / name).exists()]
        if there:
            raise UsageError(
                f"{out / there[0]} is there already; move it away or name another directory: --out DIR"
            )
        for name in ["", *folders]:
            (out / name).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(content)
            if path.suffix == ".sh":
                path.chmod(0o755)
    except OSError as error:
        raise FatalError(
            f"cannot write the plan to {out}: {error.strerror}; choose another --out DIR"
        ) from error
    return tuple(out / name for name in files)


def text(plan: Plan) -> str:
    """The plan as it is kept. The same plan gives the same bytes."""
    manifest = _Manifest(
        SCHEMA,
        plan.engine,
        plan.instance_type,
        plan.seed,
        plan.load,
        plan.pods,
        plan.nodes,
        dict(plan.placement),
        plan.rounds,
    )
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1).decode() + "\n"


def read(out: Path) -> Plan | None:
    """The plan a directory holds; None where there is none. Raises UsageError for one that cannot be read or trusted."""
    path = out / MANIFEST
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        if len(raw) > MOST_BYTES:
            raise ValueError("it is too long")
        found = msgspec.json.decode(raw, type=_Manifest)
        if found.schema != SCHEMA or found.engine not in ENGINES:
            raise ValueError("it was written by another version")
        if not found.rounds:
            raise ValueError("it has no round")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no plan of this version of straggler: {error}") from error
    check_names(found.nodes)
    check_load(found.load)
    if found.pods is not None:
        check_image(found.pods.image)
    known = set(found.nodes)
    for one in found.rounds:
        if not one.members or not all(
            0 < len(member) < 3 and known.issuperset(member) for member in one.members
        ):
            raise UsageError(f"{path}: {folder(one)} is not of one or two of the plan's nodes at a time")
    return Plan(
        found.engine,
        found.nodes,
        found.rounds,
        found.load,
        found.seed,
        found.instance_type,
        found.pods,
        found.placement,
    )


def placement_of(plan: Plan) -> Mapping[str, Placement]:
    """Where the nodes stood when the plan was made."""
    found = {}
    for node, levels in plan.placement.items():
        named = dict(levels)
        layers = tuple(value for name, value in levels if name.startswith("layer-"))
        found[node] = Placement(named.get("az"), layers, named.get("block"), named.get("ultraserver"))
    return found


def progress(plan: Plan, present: Iterable[str]) -> Progress:
    """What is done, given the names of the results that are there (below the plan's directory, with /)."""
    there = set(present)
    done: list[str] = []
    missing: list[Round] = []
    for one in plan.rounds:
        names = {member: result(one, member) for member in one.members}
        done += [name for name in names.values() if name in there]
        if left := tuple(member for member, name in names.items() if name not in there):
            missing.append(replace(one, members=left))
    return Progress(tuple(done), tuple(missing))


def results(plan: Plan, out: Path) -> tuple[str, ...]:
    """The names of the results that are there, in the order of the plan. A link or anything else that is no file is none."""
    return tuple(name for name in members(plan) if (out / name).is_file() and not (out / name).is_symlink())


def members(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """Per result the nodes it is of, whatever its output calls them."""
    return {result(one, member): member for one in plan.rounds for member in one.members}


def rehosted(run: Run, member: Sequence[str], nodes: Collection[str]) -> Run:
    """A run with the plan's names for its nodes, where its output calls them by others (a pod's, a host's own).

    Only where the output names no node of the plan: what it does name stands, whatever the file is called.
    """
    if any(host in nodes for host in run.hosts) or len(run.hosts) not in (0, len(member)):
        return run
    return replace(run, hosts=tuple(member))


def next_step(plan: Plan, attribution: Attribution, repeats: int) -> Round | None:
    """The round to add once all that was planned is done; None: nothing more would change the verdict."""
    pairs = [member for one in plan.rounds for member in one.members if len(member) == 2]
    repeated = Counter(member for one in plan.rounds if one.alone for member in one.members)
    found = schedule.next_round(
        plan.nodes,
        [(a, b) for a, b in pairs],
        attribution,
        number=_last(plan) + 1,
        repeated=repeated,
        repeats=repeats,
    )
    cleared = Standing.CLEARED in attribution.standings.values()
    if not attribution.settled and (found is None or (found.alone and not cleared)) and _all_pairs(plan):
        # Where nobody is cleared yet, new pairs of all nodes say more than one pair again. With round 0 the plan has one
        # round more than rounds of pairs: so many of the schedule hold a pair that is new.
        found = next(iter(more_rounds(plan, len(plan.rounds))), found)
    if found is None or not found.alone:
        return found
    return replace(found, number=1 + sum(one.alone for one in plan.rounds))


def _all_pairs(plan: Plan) -> bool:
    """Whether the plan is of the schedule, and not of pairs the operator chose."""
    first = next((one for one in plan.rounds if not one.alone and len(one.members[0]) > 1), None)
    return first in schedule.rounds(plan.nodes, placement_of(plan), plan.seed, 1)


def more_rounds(plan: Plan, total: int) -> tuple[Round, ...]:
    """What the plan lacks of the first `total` rounds of the schedule, numbered on from its last."""
    planned = {member for one in plan.rounds for member in one.members}
    found: list[Round] = []
    for one in schedule.rounds(plan.nodes, placement_of(plan), plan.seed, total):
        if members := tuple(pair for pair in one.members if pair not in planned):
            found.append(Round(_last(plan) + 1 + len(found), members))
    return tuple(found)


def more_pairs(plan: Plan, pairs: Sequence[schedule.Pair]) -> tuple[Round, ...]:
    """Rounds for these pairs, also for those that were run before. Raises UsageError for a node the plan does not have."""
    for name in (name for pair in pairs for name in pair):
        if name not in plan.nodes:
            raise UsageError(
                f"--pairs names {name!r}, which is not in the plan; name a new directory: --out DIR"
            )
    return schedule.pack(pairs, first=_last(plan) + 1)


def _last(plan: Plan) -> int:
    """The number of the last round that is no repeat."""
    return max((one.number for one in plan.rounds if not one.alone), default=0)
