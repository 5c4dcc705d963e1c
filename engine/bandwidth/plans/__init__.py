"""What an existing engine runs for a sweep: scripts and manifests as text, by name below the plan's directory. Nothing is started here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans import kubernetes, mpirun, slurm
from straggler.engine.bandwidth.plans.base import Plan

ENGINES: Mapping[str, Callable[[Plan, Sequence[Round]], Mapping[str, str]]] = {
    "slurm": slurm.files,
    "kubernetes": kubernetes.files,
    "ssh": mpirun.files,
}
"""Per engine: the files that run some rounds of a plan. The same plan gives the same bytes."""
