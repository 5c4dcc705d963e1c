"""The pairwise results of a session: each a text with a name, kept as an observation like any other reading, and judged whole.

Where they come from is the target's business: a folder a sweep writes to, or the simulated cluster's own sweep.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from straggler.engine.model import Node, Observation, Status, Vantage
from straggler.engine.redact import redact
from straggler.engine.safetext import safe

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Run
    from straggler.engine.bandwidth.view import MatrixView
    from straggler.engine.knowledge import Knowledge

PAIR_RUN = "pair-run"
"""The collector's name of a pairwise result; `node` is then the result's name, such as `round-01/a__b.txt`."""

OF_A_PLAN = frozenset({".sh", ".sbatch", ".yaml", ".list"})
SHOWN = 3
"""Files that are named of those in which nothing was recognised."""

Source = Callable[[bool], AsyncIterator[tuple[str, bytes]]]
"""Name and bytes of each result; with True it goes on for ever, handing over what appears, with False it ends with what is there."""


def observation(name: str, data: bytes, at: float | None = None) -> Observation:
    """One result as it is kept and journaled."""
    now = time.time() if at is None else at
    text = redact(data.decode("utf-8", "backslashreplace"))
    return Observation(PAIR_RUN, name, Vantage.HOST_USER, Status.OK, text=text, started=now, ended=now)


@dataclass
class Results:
    """What has come so far. `add` is for the thread that judges: reading a result takes a fraction of a millisecond."""

    _runs: dict[str, list[Run]] = field(default_factory=dict)
    _view: MatrixView | None = None
    _changed: bool = False
    _revision: int = 0
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, one: Observation) -> None:
        """Take in one result; a later one of the same name replaces it."""
        from straggler.engine.bandwidth.readers import read_runs

        self._runs[one.node] = read_runs(one.text.encode("utf-8", "surrogatepass"), one.node)
        self._changed = True

    def _not_read(self) -> list[str]:
        """Files in which nothing was recognised, said so: what is left out is not what there is not."""
        strange = [safe(name, limit=80) for name, runs in self._runs.items() if not runs and _is_result(name)]
        if not strange:
            return []
        more = f" and {len(strange) - SHOWN:,} more" if len(strange) > SHOWN else ""
        return [f"no result that is known in {', '.join(strange[:SHOWN])}{more}"]

    @property
    def any(self) -> bool:
        return bool(self._runs)

    def view(
        self,
        nodes: Sequence[Node],
        types: Mapping[str, str | None],
        hosts: Mapping[str, str],
        known: Knowledge,
    ) -> MatrixView | None:
        """The matrix of everything so far, made anew only when something has come. `types` and `hosts`: instance types and host
        names as read on the nodes; a log names hosts, not nodes."""
        if not self._runs:
            return None
        names = _names(nodes, hosts)
        if self._changed or self._view is None or names != self._names:
            from straggler.engine.bandwidth import judging

            self._revision += 1
            self._changed, self._names = False, names
            self._view = judging.view(
                [run for runs in self._runs.values() for run in runs if run.hosts],
                known,
                instance_type=_type(nodes, types),
                placements={node.id: node.placement for node in nodes},
                nodes=[node.id for node in nodes],
                names=names,
                notes=self._not_read(),
                revision=self._revision,
            )
        return self._view


def _is_result(name: str) -> bool:
    """Whether a file is no part of a sweep's own plan and scripts."""
    return PurePosixPath(name).suffix not in OF_A_PLAN and name != "plan.json"


def _names(nodes: Sequence[Node], hosts: Mapping[str, str]) -> dict[str, str]:
    """Every name that belongs to one node only, whole and up to the first dot, with that node."""
    said: dict[str, set[str]] = {}
    for node in nodes:
        for name in (*node.names, hosts.get(node.id, "")):
            for form in {name, name.partition(".")[0]}:
                said.setdefault(form, set()).add(node.id)
    ids = {node.id for node in nodes}
    return {name: next(iter(own)) for name, own in said.items() if len(own) == 1 and name and name not in ids}


def _type(nodes: Sequence[Node], types: Mapping[str, str | None]) -> str | None:
    """The one instance type of the nodes; None where they differ or do not say, for then no expectation fits all."""
    said = {node.instance_type or types.get(node.id) for node in nodes} - {None}
    return said.pop() if len(said) == 1 else None
