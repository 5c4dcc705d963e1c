"""What the host's software stack is. Nothing missing is a defect here: the job's container may bring its own."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import versions
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    shown = versions.fields(view.read(versions.COLLECTOR))
    listed = ", ".join(f"{name} {value}" for name, value in shown.items() if value not in ("none", None))
    if hidden := [name for name, value in shown.items() if value is None]:
        listed = ", ".join([listed, f"not readable: {', '.join(hidden)}"]).removeprefix(", ")
    yield Verdict(
        "versions.stack", Level.INFO, "the software stack on the host", listed or "none of it was found"
    )


RULE = Rule(
    id="versions",
    reads=(versions.COLLECTOR,),
    judge=judge,
    finds=("versions.stack",),
    unknown="versions.stack",
    spec=("A2", "node.efa-installer", "node.ofi-plugin", "node.nccl-library", "node.nccl-version"),
)
