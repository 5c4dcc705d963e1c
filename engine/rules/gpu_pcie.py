"""A GPU whose PCIe link has fewer lanes than it was built with moves data slower than its peers."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import gpu
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule
from straggler.engine.rules.gpus import every_one, label, names


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(gpu.COLLECTOR)
    narrow = [one for one in facts.gpus if one.width and one.width_max and one.width < one.width_max]
    if narrow:
        shown = tuple(f"{label(one)}: {one.width} of {one.width_max} lanes" for one in narrow[:4])
        yield Verdict(
            "gpu.pcie-width", Level.WARN, "a GPU's PCIe link is narrower than it can be", names(narrow), shown
        )
        return
    good = "every GPU that answers has its full PCIe width"
    told = lambda one: one.width if one.width and one.width_max else None  # noqa: E731 - one word, used once
    yield from every_one(facts, "gpu.pcie-width", told, good, "a GPU does not tell its PCIe width")


RULE = Rule(
    id="gpu-pcie",
    reads=(gpu.COLLECTOR,),
    judge=judge,
    finds=("gpu.pcie-width",),
    unknown="gpu.pcie-width",
    spec=("G3",),
)
