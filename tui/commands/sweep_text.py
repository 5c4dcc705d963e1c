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

MOST_LINES = 8
"""Lines of one list; `straggler matrix` shows all."""


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
    seconds = len(rounds) * (load.seconds + load.between)
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
    lines += ["then, also while it runs:", f"  {_again(out)}", ""]
    return "\n".join(lines)


def how_to_simulate(demo: Sequence[str], out: Path) -> str:
    """Nobody can run a plan of simulated nodes, but what it would give can be seen."""
    from straggler.engine.safetext import safe

    again = safe(f"straggler sweep {shlex.join(demo)} {_out(out)} --run")
    return f"these nodes are simulated; to see what would come of it:\n  {again}\n"


def more_of_it(target: Sequence[str], out: Path) -> str:
    """From the verdict on: every pair, and what to do. `target` are the options that name the nodes."""
    from straggler.engine.safetext import safe

    folder = shlex.quote(str(out))
    shown = f"straggler {shlex.join(target)} --results {folder}"
    return safe(f"every pair: straggler matrix {folder}") + "\n" + safe(f"what to do: {shown}") + "\n"


def next_round(plan: Plan, step: Round, out: Path) -> str:
    """A round that was added, and how to run it."""
    from straggler.engine.bandwidth import telling as words
    from straggler.engine.bandwidth.plans.base import folder

    shown = ", ".join(words.pair(member[0], member[-1]) for member in step.members[:8])
    more = f" and {len(step.members) - 8:,} more" if len(step.members) > 8 else ""
    beside = ", with nothing beside it" if step.alone else ""
    return f"next: {folder(step)}{beside}: {shown}{more}\n{how_to_run(plan, (step,), out)}"


def added(plan: Plan, more: Sequence[Round], out: Path) -> str:
    """Rounds the operator asked for on top."""
    runs = sum(len(one.members) for one in more)
    return f"added: {_many(len(more), 'round')}, {_many(runs, 'run')}\n{_time(plan, more)}\n" + how_to_run(
        plan, more, out
    )


def nothing_yet(plan: Plan, out: Path) -> str:
    return f"none of {_many(plan.runs, 'run')} has a result yet\n{how_to_run(plan, plan.rounds, out)}"


def waiting(found: SoFar, out: Path) -> str:
    """More is still to come; or it need not."""
    if found.attribution.settled and not found.going:
        return "what is not run yet would change nothing of this\n"
    return f"{_again(out)} says more when more has come\n"


def the_end(found: SoFar, out: Path) -> str:
    """Another round of the same kind helps nobody; a link is only seen by its own pair."""
    from straggler.engine.bandwidth.telling import pairs_possible

    matrix = found.view.matrix
    left = pairs_possible(matrix) - len(matrix)
    lines = ["another round would change nothing of this"] if found.attribution.verdicts or not left else []
    if left:
        every = len(matrix.nodes) - 1 + len(matrix.nodes) % 2
        lines.append(
            f"a single slow link may still be among the {_many(left, 'pair')} not run: {_again(out)} --rounds {every} plans them all"
        )
    return "\n".join(lines) + "\n"


def _again(out: Path) -> str:
    from straggler.engine.safetext import safe

    return safe(f"straggler sweep {_out(out)}")


def _out(out: Path) -> str:
    return f"--out {shlex.quote(str(out))}"


def line(plan: Plan, found: SoFar) -> str:
    """The same in one line, for a look that is repeated."""
    from straggler.engine.bandwidth import telling

    said = found.attribution
    verdicts = [telling.verdict(blame) for blame in said.verdicts[:3]]
    more = [f"and {len(said.verdicts) - 3:,} more"] if len(said.verdicts) > 3 else []
    parts = verdicts + more or [telling.nobody(said, found.view.matrix)]
    return f"{len(found.progress.done):,} of {_many(plan.runs, 'run')}: {'; '.join(parts)}\n"


def verdict(plan: Plan, found: SoFar) -> str:
    """What has come and what it says."""
    return "\n".join(_verdict(plan, found)) + "\n"


def _verdict(plan: Plan, found: SoFar) -> Iterator[str]:
    from straggler.engine.bandwidth import telling
    from straggler.engine.bandwidth.plans.base import folder
    from straggler.engine.safetext import safe

    matrix, said = found.view.matrix, found.attribution
    yield f"{len(found.progress.done):,} of {_many(plan.runs, 'run')} have a result"
    if found.going:
        yield f"{_many(len(found.going), 'run')} of them still going on"
    yield " · ".join(telling.title(found.view))
    for blame in said.verdicts:
        yield f"verdict: {telling.verdict(blame)}"
        yield f"  why: {safe(blame.why)}"
    if not said.verdicts:
        yield f"no verdict: {telling.nobody(said, matrix)}"
    for one in said.doubts[:MOST_LINES]:
        yield telling.doubt(one)
    if len(said.doubts) > MOST_LINES:
        yield f"and {len(said.doubts) - MOST_LINES:,} more in doubt"
    gaps = list(telling.uncovered(matrix))
    if gaps:
        yield f"not known, which is not the same as fine: {', '.join(gaps)}"
    yield from (safe(note) for note in (*matrix.notes, *said.notes))
    for left in found.progress.missing[:MOST_LINES]:
        yield f"no result yet: {folder(left)}, {_many(len(left.members), 'run')}"
