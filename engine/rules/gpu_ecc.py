"""Uncorrectable memory errors since the driver was loaded. The lifetime counter never clears, so it is context, not a fault."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import gpu
from straggler.engine.collectors.gpu import Gpu
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule
from straggler.engine.rules.gpus import every_one, label, names


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(gpu.COLLECTOR)
    bad = [one for one in facts.gpus if one.uncorrected]
    off = [one for one in facts.gpus if one.ecc is False]
    if bad:
        yield Verdict(
            "ecc.uncorrectable",
            Level.FAIL,
            "a GPU met uncorrectable memory errors since its driver was loaded",
            names(bad),
            evidence=tuple(f"{label(one)}: {_shown(one)}" for one in bad[:4]),
            values={"pci": f"{bad[0].pci}.0"} if bad[0].pci else {},
            also=("gpu.ecc-uncorrectable",),
        )
    if off:
        yield Verdict("ecc.off", Level.WARN, "ECC is off: memory errors go unseen", names(off), _mode(off))
    if not bad and len(off) < max(1, len(facts.gpus)):
        good = "no GPU that answers met an uncorrectable memory error since its driver was loaded"
        yield from every_one(facts, "ecc.uncorrectable", _told, good, "a GPU does not tell its memory errors")
    if healed := [one for one in facts.gpus if one.uncorrected == 0 and one.uncorrected_ever]:
        detail = ", ".join(f"{label(one)}: {one.uncorrected_ever} ever" for one in healed)
        yield Verdict(
            "ecc.history", Level.INFO, "a GPU met uncorrectable memory errors in an earlier life", detail
        )


def _mode(off: list[Gpu]) -> tuple[str, ...]:
    return tuple(f"{label(one)}: ecc.mode.current Disabled" for one in off[:4])


def _told(one: Gpu) -> object | None:
    """With ECC off there is nothing to tell; that is a finding of its own."""
    return True if one.ecc is False else one.uncorrected


def _shown(one: Gpu) -> str:
    ever = "" if one.uncorrected_ever is None else f", {one.uncorrected_ever} in its life"
    return f"{one.uncorrected} uncorrectable since the driver was loaded{ever}, {one.corrected} corrected"


RULE = Rule(
    id="gpu-ecc",
    reads=(gpu.COLLECTOR,),
    judge=judge,
    finds=("ecc.uncorrectable", "ecc.off", "ecc.history"),
    unknown="ecc.uncorrectable",
    spec=("G5", "G6", "node.gpu-ecc"),
)
