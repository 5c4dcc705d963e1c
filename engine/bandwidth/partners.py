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

    def for_node(self, node: int) -> int | None:
        """A cleared partner: one it was never run with while there is one, else the one it was run with the least."""
        matrix = self._matrix
        had = np.zeros(len(matrix.nodes), dtype=np.int64)
        had[matrix.b[matrix.a == node]] = matrix.runs[matrix.a == node]
        had[matrix.a[matrix.b == node]] = matrix.runs[matrix.b == node]
        return min((at for at in self._good if at != node), key=lambda at: int(had[at]), default=None)
