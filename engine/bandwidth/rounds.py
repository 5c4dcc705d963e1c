"""Which round comes next while a sweep runs: what was planned, until the verdict stands, then what would settle it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from straggler.engine.bandwidth import sweep
from straggler.engine.bandwidth.model import Attribution, Round
from straggler.engine.bandwidth.plans.base import Plan


class Rounds:
    """The rounds of a plan that have no results yet in `out`, then at most `extra` that what has come asks for.

    `judge` reads the results that are there; `repeats`: how often a doubtful pair is run alone. With `whole`, everything planned
    is run though the verdict may stand before.
    """

    def __init__(
        self,
        plan: Plan,
        out: Path,
        judge: Callable[[Plan], Attribution],
        *,
        extra: int,
        repeats: int,
        whole: bool = False,
    ) -> None:
        self.plan, self.out = plan, out
        self.missing = list(sweep.progress(plan, sweep.results(plan, out)).missing)
        self.extra, self.spared = extra, 0
        self._judge, self._repeats, self._whole = judge, repeats, whole

    @property
    def most(self) -> int:
        """Rounds at most."""
        return len(self.missing) + self.extra

    @property
    def most_runs(self) -> int:
        """Runs at most: an extra round has no more pairs than nodes allow."""
        planned = sum(len(one.members) for one in self.missing)
        return planned + self.extra * (len(self.plan.nodes) // 2)

    async def next(self) -> Round | None:
        """The next round; `spared` counts planned ones that were not needed."""
        if self.missing and (self._whole or self.missing[0].number < 2):
            return self.missing.pop(0)
        said = await asyncio.to_thread(self._judge, self.plan)
        # With nobody accused, what was planned is run: a slow link shows in its own pair only.
        if said.settled and (said.verdicts or not self.missing) and not self._whole:
            self.spared, self.missing = len(self.missing), []
            return None
        if self.missing:
            return self.missing.pop(0)
        if self.extra <= 0:
            return None
        found = sweep.next_step(self.plan, said, self._repeats)
        if found is None:
            return None
        self.extra -= 1
        self.plan, _ = await asyncio.to_thread(sweep.extend, self.plan, [found], self.out)
        return found
