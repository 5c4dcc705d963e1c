"""`straggler sweep --demo --run`: the planned runs of the simulated cluster, as the files real ones would leave."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.tui.commands import output, sweep_run, sweep_text

if TYPE_CHECKING:
    from straggler.engine.bandwidth.plans.base import Plan
    from straggler.engine.bandwidth.rounds import Rounds
    from straggler.engine.knowledge import Knowledge
    from straggler.engine.simcluster.sweep import SimulatedSweep


def run(
    args: argparse.Namespace, plan: Plan, simulated: SimulatedSweep, known: Knowledge, demo: Sequence[str]
) -> int:
    """No machine is touched, so nothing is to be confirmed; the order of the rounds and the end are those of a real sweep."""
    from straggler.engine.bandwidth import so_far

    rounds = sweep_run.rounds_of(args, plan, known)
    output.note("simulated nodes: no machine is loaded")
    asyncio.run(_execute(rounds, simulated))
    if rounds.spared:
        output.note(sweep_run.spared(rounds))
    found = so_far.judge(rounds.plan, args.out, known, time.time())
    output.put(sweep_text.verdict(rounds.plan, found))
    if found.attribution.verdicts:
        output.put(sweep_text.more_of_it(demo, args.out))
    else:
        output.put(sweep_text.the_end(found, args.out))
    return 0


async def _execute(rounds: Rounds, simulated: SimulatedSweep) -> None:
    from straggler.engine.bandwidth.plans.base import folder

    while (one := await rounds.next()) is not None:
        many = len(one.members)
        output.note(f"{folder(one)}: {f'{many} runs at once' if many > 1 else '1 run'}")
        for name, text in simulated.results_of(one):
            _write(rounds.out / name, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
