"""Shared memory: NCCL and data loaders put their buffers in /dev/shm."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import filesystems, identity
from straggler.engine.model import Level, Unread, Vantage, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(filesystems.COLLECTOR)
    mount, size = facts.mount("/dev/shm"), facts.sizes.get("/dev/shm")
    if mount is None:
        yield Verdict(
            "shm.absent", Level.FAIL, "/dev/shm is not mounted", evidence=("no /dev/shm in /proc/mounts",)
        )
    elif mount.kind != "tmpfs":
        yield Verdict(
            "shm.not-memory",
            Level.WARN,
            "/dev/shm is not in memory",
            f"it is {mount.kind}",
            (f"{mount.device} /dev/shm {mount.kind}",),
        )
    elif size is None:
        why = facts.troubles.get("/dev/shm", f"df gave no size in {filesystems.WAIT} s")
        yield Verdict("shm.size", Level.UNKNOWN, "the size of /dev/shm was not read", why)
    else:
        yield _judged(view, size)


def _judged(view: NodeView, size: filesystems.Size) -> Verdict:
    gib = size.kib / 1024**2
    contained = view.vantage in (Vantage.CONTAINER, Vantage.JOB_STEP)
    detail = f"{gib:.1f} GiB" if gib >= 1 else f"{size.kib / 1024:.0f} MiB"
    if size.kib <= view.known.number("shm.container-mib") * 1024:
        return Verdict(
            "shm.small",
            Level.FAIL if contained else Level.WARN,
            "/dev/shm has a container's default size",
            detail,
            (size.line,),
        )
    if size.used_pct >= view.known.number("disk.full"):
        return Verdict(
            "shm.no-space", Level.FAIL, "/dev/shm is full", f"{size.used_pct} % of {detail}", (size.line,)
        )
    if not contained and gib < view.known.number("shm.host-gib"):
        if _trains_nothing(view):
            return Verdict(
                "shm.size", Level.INFO, "/dev/shm is small, on a node without accelerators", detail
            )
        return Verdict(
            "shm.host-small", Level.WARN, "/dev/shm is small for a training host", detail, (size.line,)
        )
    return Verdict("shm.size", Level.PASS, "/dev/shm is large enough")


def _trains_nothing(view: NodeView) -> bool:
    """A controller or login node: by its type, else by a PCI bus that shows no accelerator."""
    if view.instance is not None:
        return view.instance.accelerator == "none"
    seen = view.get(identity.COLLECTOR)
    return not isinstance(seen, Unread) and (seen.pci_gpus, seen.pci_neuron) == (0, 0)


RULE = Rule(
    id="shm",
    reads=(filesystems.COLLECTOR,),
    uses=(identity.COLLECTOR,),
    judge=judge,
    finds=("shm.size", "shm.absent", "shm.not-memory", "shm.small", "shm.no-space", "shm.host-small"),
    unknown="shm.size",
    spec=("I1", "node.shm-size", "node.shm-fstype"),
)
