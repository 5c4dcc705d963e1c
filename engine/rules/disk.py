"""The root volume, in space and in inodes."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import filesystems
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(filesystems.COLLECTOR)
    root = facts.sizes.get("/")
    if root is None:
        why = facts.troubles.get(
            "/",
            f"df gave no size for / in {filesystems.WAIT} s"
            if "/" in facts.silent
            else "/ is not in the list",
        )
        yield Verdict("disk.root", Level.UNKNOWN, "how full the root volume is was not read", why)
        return
    yield _space(view, root)
    inodes = facts.root_inodes_pct
    if inodes is not None and inodes >= view.known.number("disk.fail"):
        yield Verdict(
            "disk.inodes", Level.FAIL, "the root volume runs out of inodes", f"{inodes} % of the inodes used"
        )
    elif facts.inodes_said:
        yield Verdict(
            "disk.inodes", Level.UNKNOWN, "the root volume's inodes were not read", facts.inodes_said
        )


def _space(view: NodeView, root: filesystems.Size) -> Verdict:
    detail = f"{root.used_pct} % of {root.kib / 1024**2:.0f} GiB used"
    evidence = (root.line,)
    if root.used_pct >= view.known.number("disk.full"):
        return Verdict("disk.full", Level.FAIL, "the root volume is full", detail, evidence)
    if root.used_pct >= view.known.number("disk.fail"):
        return Verdict("disk.nearly-full", Level.FAIL, "the root volume is nearly full", detail, evidence)
    if root.used_pct >= view.known.number("disk.warn"):
        return Verdict("disk.filling", Level.WARN, "the root volume fills up", detail, evidence)
    return Verdict("disk.root", Level.PASS, "the root volume has room")


RULE = Rule(
    id="disk",
    reads=(filesystems.COLLECTOR,),
    judge=judge,
    finds=("disk.root", "disk.full", "disk.nearly-full", "disk.filling", "disk.inodes"),
    unknown="disk.root",
    spec=("I2",),
)
