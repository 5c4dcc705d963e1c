"""The simulated cluster: what a node is made of, and what its tools would print. Only the transport is simulated, never a finding.

Each file beside this one answers for the collector of the same name: `say(node)` returns exactly what the real snippet of
that collector would print on such a node, so the same parser and the same rules read it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from straggler.engine.knowledge import Instance


HOME_AZ = "us-west-2b"
"""Where all nodes stand that no scenario put elsewhere."""


@dataclass(frozen=True, slots=True)
class SimNode:
    """One simulated machine. `faults` are the scenario's words for what is wrong with it (`efa-down`, `xid-79`, ...).

    `seed` makes every draw repeatable: same seed, same bytes. `now` is the simulated clock, Unix seconds.
    """

    id: str
    number: int
    instance_type: str = "p5.48xlarge"
    az: str = HOME_AZ
    faults: frozenset[str] = frozenset()
    seed: int = 0
    now: int = 1_796_083_200

    @property
    def has(self) -> Instance:
        """What its type has when it is whole. KeyError: the instance table does not know the type."""
        # Not before it is asked: the demo is on the screen before any knowledge is loaded.
        from straggler.engine import knowledge

        return knowledge.load().instances[self.instance_type]

    @property
    def cpus(self) -> int:
        """Two threads a core, as all of these types have."""
        return 2 * (self.has.cores or 1)

    def random(self, subject: str) -> random.Random:
        """A generator of its own per node and subject, so that one collector's draws never move another's."""
        return random.Random(f"{self.seed}/{self.id}/{subject}")  # noqa: S311 - repeatable, not secret


@dataclass(frozen=True, slots=True)
class Reply:
    """What a snippet leaves: stdout, stderr, exit code."""

    text: str
    errors: str = ""
    code: int = 0


Say = Callable[[SimNode], Reply]
