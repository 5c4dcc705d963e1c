"""The simulated cluster's own sweep: each node alone, rounds of pairs, then what the verdict so far asks for, as `straggler sweep`
goes on a real one. Only the runs are simulated; the order, the reading and the verdict are those of the product."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from straggler.engine.simcluster.base import SimNode

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Round
    from straggler.engine.model import Node

EVERY_PAIR, FIVE_ROUNDS = 32, 128
"""Up to so many nodes every pair is run, and five rounds of them; a larger fleet has two."""

REPEATS = 9
"""Runs alone at most: each takes a real cluster half a minute."""

AT_ONCE = 64
"""Results made up in one go, beside the event loop."""

LATER = 1000
"""Repeats have numbers of their own from here on, so that their noise is another."""


class SimulatedSweep:
    """A source of results (see engine/bandwidth/results.py). `pace`: seconds a node takes on average, 0: at once."""

    def __init__(
        self, sims: Mapping[str, SimNode], nodes: Sequence[Node], seed: int, pace: float = 0.0
    ) -> None:
        self._sims, self._nodes, self._seed, self._pace = sims, nodes, seed, pace

    async def __call__(self, follow: bool) -> AsyncIterator[tuple[str, bytes]]:
        from straggler.engine.bandwidth import schedule

        names = [node.id for node in self._nodes]
        placement = {node.id: node.placement for node in self._nodes}
        many = len(names)
        limit = many if many <= EVERY_PAIR else 5 if many <= FIVE_ROUNDS else 2
        planned = [schedule.round_zero(names), *schedule.rounds(names, placement, self._seed, limit)]
        seen: dict[str, bytes] = {}
        for one in planned:
            async for name, data in self._of(one, one.number):
                seen[name] = data
                yield name, data
        if many > FIVE_ROUNDS:
            return
        for turn in range(REPEATS):
            found = await asyncio.to_thread(self._next, seen, planned)
            if found is None:
                return
            planned.append(found)
            async for name, data in self._of(found, LATER + turn):
                seen[name] = data
                yield name, data

    async def _of(self, one: Round, number: int) -> AsyncIterator[tuple[str, bytes]]:
        from straggler.engine.bandwidth.plans.base import result

        if self._pace:
            await asyncio.sleep(self._pace)
        members = iter(one.members)
        while some := list(islice(members, AT_ONCE)):
            made = await asyncio.to_thread(self._made, some, number)
            for member, text in zip(some, made, strict=True):
                yield result(one, member), text.encode()

    def results_of(self, one: Round) -> Iterator[tuple[str, str]]:
        """The results of a round as an engine leaves them: file name and text, with our first and last line."""
        from straggler.engine.bandwidth.plans.base import CLOSING, HEAD, result

        number = LATER + one.number if one.alone else one.number
        for member, text in zip(one.members, self._made(one.members, number), strict=True):
            status = 0 if "Avg bus bandwidth" in text else 1
            yield result(one, member), f"{HEAD} {' '.join(member)}\n{text}\n{CLOSING} {status}\n"

    def _made(self, members: Sequence[tuple[str, ...]], number: int) -> list[str]:
        from straggler.engine.simcluster.nccl_tests import log

        return [log([self._sims[name] for name in member], number) for member in members]

    def _next(self, seen: Mapping[str, bytes], planned: Sequence[Round]) -> Round | None:
        """The round to add, by the verdict over what there is."""
        from dataclasses import replace

        from straggler.engine import knowledge
        from straggler.engine.bandwidth import judging, schedule
        from straggler.engine.bandwidth.readers import read_runs

        names = [node.id for node in self._nodes]
        view = judging.view(
            [run for name, data in seen.items() for run in read_runs(data, name) if run.hosts],
            knowledge.load(),
            instance_type=self._nodes[0].instance_type,
            placements={node.id: node.placement for node in self._nodes},
            nodes=names,
        )
        met = [(member[0], member[1]) for one in planned for member in one.members if len(member) == 2]
        alone = [one for one in planned if one.alone]
        found = schedule.next_round(
            names,
            met,
            view.attribution,
            number=1 + max(one.number for one in planned if not one.alone),
            repeated=Counter(member for one in alone for member in one.members),
        )
        return replace(found, number=len(alone) + 1) if found is not None and found.alone else found
