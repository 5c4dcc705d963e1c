"""What `straggler sweep` prints: the plan in words, what to do next, what the results say so far."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Round
    from straggler.engine.bandwidth.plans.base import Plan
    from straggler.engine.bandwidth.so_far import SoFar


def introduction(plan: Plan, out: Path) -> str:
    """The plan: nodes, rounds, runs, time and cost."""
    from straggler.engine.nodesets import fold
    from straggler.engine.safetext import safe

    kind = f" of {plan.instance_type}" if plan.instance_type else ""
    return (
        f"{_many(len(plan.nodes), 'node')}{kind}: {safe(fold(plan.nodes))}\n"
        f"{_many(len(plan.rounds), 'round')}, {_many(plan.runs, 'run')}: {_rounds(plan.rounds)}\n"
        f"{_time(plan, plan.rounds)}\n"
        f"plan and results: {safe(str(out))}\n"
    )


def _rounds(rounds: Sequence[Round]) -> str:
    first = [one for one in rounds if len(one.members[0]) == 1]
    pairs = [one for one in rounds if len(one.members[0]) > 1]
    parts = ["each node alone"] if first else []
    if pairs:
        most = max(len(one.members) for one in pairs)
        parts.append(f"then {_many(len(pairs), 'round')} of up to {_many(most, 'pair')} at once")
    return ", ".join(parts)


def _time(plan: Plan, rounds: Sequence[Round]) -> str:
    """How long it takes, and what that costs: a node in a round is not at work."""
    load = plan.load
    seconds = len(rounds) * load.seconds
    hours = len(plan.nodes) * load.gpus * seconds / 3600
    return (
        f"about {_spell(seconds)} if nothing hangs; a run is ended after {load.deadline} s\n"
        f"cost: all {_many(len(plan.nodes) * load.gpus, 'GPU')} of these nodes for that time"
        f" ({hours:,.1f} GPU hours); nothing else may run on them meanwhile"
    )


def _spell(seconds: float) -> str:
    return f"{round(seconds)} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def how_to_run(plan: Plan, rounds: Sequence[Round], out: Path) -> str:
    """The commands that run these rounds, and the one that reads what comes of them."""
    from straggler.engine.bandwidth.plans.base import stem
    from straggler.engine.safetext import safe

    inside, name = shlex.quote(str(out)), stem(rounds)
    if plan.engine == "slurm":
        steps = [f"cd {inside} && sbatch sweep-{name}.sbatch"]
    else:
        script = shlex.quote(str(out / f"sweep-{name}.sh"))
        steps = [f"{script} -n NAMESPACE" if plan.engine == "kubernetes" else script]
    lines = ["", "to run it:", *(f"  {safe(step)}" for step in steps)]
    lines += ["then, also while it runs:", f"  {safe(f'straggler sweep --out {inside}')}", ""]
    return "\n".join(lines)


def next_round(plan: Plan, step: Round, out: Path) -> str:
    """A round that was added, and how to run it."""
    from straggler.engine.bandwidth import telling as words
    from straggler.engine.bandwidth.plans.base import folder

    shown = ", ".join(words.pair(member[0], member[-1]) for member in step.members[:8])
    more = f" and {len(step.members) - 8:,} more" if len(step.members) > 8 else ""
    beside = ", with nothing beside it" if step.alone else ""
    return f"next: {folder(step)}{beside}: {shown}{more}\n{how_to_run(plan, (step,), out)}"


def again(out: Path) -> str:
    from straggler.engine.safetext import safe

    return f"{safe(f'straggler sweep --out {shlex.quote(str(out))}')} says more when more has come\n"


def verdict(plan: Plan, found: SoFar) -> str:
    """What has come and what it says."""
    return "\n".join(_verdict(plan, found)) + "\n"


def _verdict(plan: Plan, found: SoFar) -> Iterator[str]:
    from straggler.engine.bandwidth import telling as words
    from straggler.engine.bandwidth.plans.base import folder
    from straggler.engine.safetext import safe

    matrix, said = found.matrix, found.attribution
    yield f"{len(found.progress.done):,} of {_many(plan.runs, 'run')} have a result"
    if found.going:
        yield f"{_many(len(found.going), 'run')} still going on"
    if said.median is not None:
        yield (
            f"{_many(len(matrix), 'pair')} at {words.size(matrix.size)}:"
            f" median {words.number(said.median)} {words.unit(matrix)}"
        )
    for blame in said.verdicts:
        yield f"verdict: {words.verdict(blame)}"
        yield f"  {safe(blame.why)}"
        if blame.next_pair:
            yield f"  would settle it: {words.next_pair(blame.next_pair)}"
    if not said.verdicts and found.progress.done:
        yield "nobody is to blame so far" if not said.settled else "nobody is to blame"
    for one in said.doubts:
        yield words.doubt(one)
    for note in said.notes:
        yield safe(note)
    for left in found.progress.missing:
        yield f"not run yet: {folder(left)}, {_many(len(left.members), 'run')}"
