"""Whom a node would best be run with next: a node that is known to be fine, and that it has not been with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Standing


class Partners:
    """Good partners, the best proven first."""

    def __init__(self, matrix: Matrix, standing: Mapping[str, Standing]) -> None:
        self._matrix = matrix
        self._good = [at for at, node in enumerate(matrix.nodes) if standing[node] is Standing.CLEARED]
        self._many = np.bincount(
            np.concatenate([matrix.a, matrix.b]), weights=np.tile(matrix.runs, 2), minlength=len(matrix.nodes)
        )

    def for_node(self, node: int) -> int | None:
        """A cleared partner: one it was never run with while there is one, else the one it was run with the least."""
        matrix = self._matrix
        best: tuple[int, int] | None = None
        for at in self._good:
            if at == node:
                continue
            found = matrix.at(node, at)
            had = 0 if found is None else int(matrix.runs[found])
            if not had:
                return at
            if best is None or had < best[0]:
                best = had, at
        return None if best is None else best[1]
