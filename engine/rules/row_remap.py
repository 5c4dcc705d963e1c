"""Faulty memory rows that wait for a reset to be replaced, or that could not be replaced. Flags, not counts."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import gpu
from straggler.engine.collectors.gpu import Remap
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(gpu.COLLECTOR)
    rows = facts.rows
    failed = [one for one in rows if one.failed]
    pending = [one for one in rows if one.pending and not one.failed]
    if failed:
        yield _fault("row-remap.failed", "a GPU could not replace a faulty memory row", failed)
    if pending:
        yield _fault("row-remap.pending", "a GPU waits for a reset to replace a faulty memory row", pending)
    if failed or pending or not (facts.gpus or facts.handles or facts.on_bus("nvidia")):
        return
    mute = [_name(one) for one in rows if one.pending is None or one.failed is None]
    told = {one.pci for one in rows}
    mute += [one.pci or "?" for one in facts.gpus if one.pci not in told]
    if mute or not rows:
        title = "a GPU does not tell whether memory rows wait to be replaced"
        detail = ", ".join(mute) or facts.rows_trouble or "nvidia-smi shows none"
        yield Verdict("row-remap.pending", Level.UNKNOWN, title, detail, confidence=1.0)
    else:
        yield Verdict("row-remap.none", Level.PASS, "no GPU that answers has a memory row to be replaced")


def _fault(name: str, title: str, rows: list[Remap]) -> Verdict:
    return Verdict(
        name,
        Level.FAIL,
        title,
        ", ".join(_name(one) for one in rows),
        evidence=tuple(
            f"{_name(one)}: pending {_word(one.pending)}, failure {_word(one.failed)}, rows remapped after "
            f"corrected errors {_word(one.correctable)}, after uncorrected ones {_word(one.uncorrectable)}"
            for one in rows[:4]
        ),
        values={"pci": f"{rows[0].pci}.0"} if rows[0].pci else {},
    )


def _name(one: Remap) -> str:
    return one.pci or "a GPU without address"


def _word(value: bool | int | None) -> str:
    return (
        "not told"
        if value is None
        else {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else str(value)
    )


RULE = Rule(
    id="row-remap",
    reads=(gpu.COLLECTOR,),
    judge=judge,
    finds=("row-remap.failed", "row-remap.pending", "row-remap.none"),
    unknown="row-remap.pending",
    spec=("node.row-remap-failure", "node.row-remap-pending"),
)
