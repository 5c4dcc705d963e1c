"""Whether every GPU is there that the instance type has, and answers: a dead driver must not look like a node without GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from straggler.engine import kernel_lines
from straggler.engine.collectors import gpu, identity, kernel_log
from straggler.engine.collectors.gpu import LOST, RESET, Gpus
from straggler.engine.model import Level, Unread, Vantage, Verdict
from straggler.engine.rules import log_time
from straggler.engine.rules.base import NodeView, Rule
from straggler.engine.rules.gpus import label, names


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(gpu.COLLECTOR)
    if not facts.gpus and not facts.handles and not facts.on_bus("nvidia"):
        yield from _without(view, facts)
        return
    told = _fallen(view)
    yield from _dead(view, facts)
    yield from _lost(facts, told)
    yield from _reset(facts)
    yield from _words(facts)
    yield from _models(facts)
    yield from _mig(facts)
    if facts.gpus or facts.handles:
        yield from _count(view, facts, told)


def _without(view: NodeView, facts: Gpus) -> Iterator[Verdict]:
    """No GPU, no trace of one: right for a CPU or Trainium node, a fault where the type has GPUs, unknown where /sys is hidden."""
    want = view.instance
    if want is not None and want.gpus > 0 and want.accelerator == "nvidia" and facts.bus is not None:
        detail = f"0 of {want.gpus} GPUs are on the PCI bus of this {view.instance_type}"
        yield Verdict(
            "gpu.count", Level.FAIL, "no GPU is on the PCI bus though the instance type has some", detail
        )
    elif facts.on_bus("neuron") or (want is not None and want.accelerator not in ("nvidia", "none", "")):
        yield Verdict(
            "gpu.neuron", Level.INFO, "no NVIDIA GPU: the accelerators are AWS Trainium or Inferentia"
        )
    elif facts.bus is None:
        yield Verdict(
            "gpu.count", Level.UNKNOWN, "GPUs not seen", "the PCI bus is hidden and nvidia-smi shows none"
        )
    else:
        yield Verdict("gpu.none", Level.INFO, "no GPU: this node has no accelerator")


def _dead(view: NodeView, facts: Gpus) -> Iterator[Verdict]:
    """GPUs on the bus and no driver that answers. nvidia-smi's own sentence is the evidence.

    Only what it says of the driver accuses it: a tool that was killed, refused to this user, or not understood does not.
    """
    if facts.gpus or facts.handles:
        return
    many = len(facts.on_bus("nvidia"))
    if not facts.smi:
        detail = f"{many} NVIDIA devices on the PCI bus, nvidia-smi is not installed"
        yield Verdict(
            "gpu.driver-dead", Level.FAIL, "GPUs are on the PCI bus but their driver is not installed", detail
        )
    elif "version mismatch" in facts.trouble:
        yield Verdict(
            "nvml.driver-mismatch",
            Level.FAIL,
            "the loaded NVIDIA driver and its library are of different versions",
            evidence=(facts.trouble,),
            also=("gpu.driver-dead",),
        )
    elif not _speaks_of_the_driver(view, facts):
        detail = f"{many} NVIDIA devices on the PCI bus, nvidia-smi ended with {facts.code}"
        yield Verdict(
            "gpu.count",
            Level.UNKNOWN,
            "nvidia-smi gave no list of GPUs, and no word about the driver",
            detail,
            (facts.trouble,),
            confidence=1.0,
        )
    else:
        yield Verdict(
            "gpu.driver-dead",
            Level.FAIL,
            "GPUs are on the PCI bus but the driver does not answer",
            f"{many} NVIDIA devices on the PCI bus",
            evidence=(facts.trouble,),
            also=("gpu.no-devices",) if "No devices were found" in facts.trouble else (),
        )


def _speaks_of_the_driver(view: NodeView, facts: Gpus) -> bool:
    said = facts.trouble.lower()
    words, asker, exits = (
        view.known.word(name).split(",")
        for name in ("gpu.driver-dead-words", "gpu.asker-words", "gpu.driver-dead-exits")
    )
    if any(word in said for word in asker):
        return False
    return any(word in said for word in words) or str(facts.code) in exits


def _lost(facts: Gpus, told: frozenset[str | None]) -> Iterator[Verdict]:
    """GPUs the driver knows and cannot reach. One whose fall the kernel log tells is the Xid rule's finding, not a second one."""
    handles = {address: why for address, why in facts.handles.items() if address not in told}
    rows = [one for one in facts.gpus if one.said(LOST) and one.pci not in told]
    if not handles and not rows:
        return
    lines = [f"{address}: {why}" for address, why in handles.items()] + [
        f"{label(one)}: {LOST}" for one in rows
    ]
    yield Verdict(
        "gpu.lost",
        Level.FAIL,
        "the driver cannot reach a GPU any more",
        f"{', '.join([*handles, *(label(one) for one in rows)])}; {len(facts.gpus) - len(rows)} others answer",
        evidence=tuple(lines[:4]),
        values={"pci": f"{next(iter(handles)) if handles else rows[0].pci}.0"},
        also=("gpu.handle-unknown-error",) if handles else (),
    )


def _fallen(view: NodeView) -> frozenset[str | None]:
    """GPUs whose fall off the bus stands in the kernel log, with its Xid, inside the window."""
    log = view.get(kernel_log.COLLECTOR)
    if isinstance(log, Unread):
        return frozenset()
    lines = [line for line in log.lines if log_time.inside(view, log, line)]
    named = {one.pci for one in kernel_lines.fallen(lines)}
    return frozenset(named & {event.pci for event in kernel_lines.xids(lines)})


def _reset(facts: Gpus) -> Iterator[Verdict]:
    if stuck := [one for one in facts.gpus if one.said(RESET)]:
        yield Verdict(
            "gpu.requires-reset",
            Level.FAIL,
            "a GPU says that it needs a reset",
            names(stuck),
            evidence=tuple(f"{label(one)}: {RESET}" for one in stuck[:4]),
            values={"pci": f"{stuck[0].pci}.0"} if stuck[0].pci else {},
        )


def _words(facts: Gpus) -> Iterator[Verdict]:
    odd = [one for one in facts.gpus if one.said("Unknown Error") or one.said("ERR!")]
    if odd:
        words = [f"{label(one)} {name}: {word}" for one in odd for name, word in one.words.items()]
        yield Verdict(
            "gpu.unknown-error-fields",
            Level.WARN,
            "a GPU answers some questions with an error",
            names(odd),
            evidence=tuple(words[:4]),
            also=("gpu.err-fields",) if any(one.said("ERR!") for one in odd) else (),
        )


def _models(facts: Gpus) -> Iterator[Verdict]:
    models = sorted({one.name for one in facts.gpus if one.name})
    if len(models) > 1:
        shown = tuple(f"{label(one)}: {one.name}" for one in facts.gpus)
        title = "the GPUs of one node are not of one model"
        yield Verdict("gpu.mixed-models", Level.WARN, title, ", ".join(models), shown)


def _mig(facts: Gpus) -> Iterator[Verdict]:
    if cut := [one for one in facts.gpus if one.mig]:
        detail = f"on {len(cut)} of {len(facts.gpus)} GPUs"
        yield Verdict("gpu.mig-enabled", Level.INFO, "MIG is on: GPUs are cut into instances", detail)


def _count(view: NodeView, facts: Gpus, told: frozenset[str | None]) -> Iterator[Verdict]:
    """Whether all are accounted for: a GPU named as lost, here or by its Xid, is no second finding; one nobody names is."""
    want, on_bus = view.instance, len(facts.on_bus("nvidia"))
    lost = ({*facts.handles} | told) - {one.pci for one in facts.gpus}
    lost |= {one.pci for one in facts.gpus if one.said(LOST)}
    seen = len(facts.gpus)
    accounted = len({one.pci or label(one) for one in facts.gpus} | lost)
    if view.vantage in (Vantage.CONTAINER, Vantage.JOB_STEP):
        title = "GPUs were counted from inside a container or job step"
        yield Verdict("gpu.count", Level.INFO, title, f"{seen} seen")
    elif accounted < max(want.gpus if want else 0, on_bus) <= accounted + facts.torn:
        title = "a line of nvidia-smi is no whole row, so the GPUs could not be counted"
        yield Verdict("gpu.count", Level.UNKNOWN, title, facts.trouble, confidence=1.0)
    elif accounted < max(want.gpus if want else 0, on_bus):
        of = (
            f"the {want.gpus} GPUs of a {view.instance_type}" if want else f"the {on_bus} GPUs on the PCI bus"
        )
        listed = f"nvidia-smi lists {names(facts.gpus)}"
        on = f", {on_bus} on the PCI bus" if on_bus else ""
        yield Verdict("gpu.count", Level.FAIL, "GPUs are missing", f"{seen} of {of}{on}", (listed,))
    elif lost:
        return
    elif want is not None:
        title = "every GPU the instance type has answers"
        yield Verdict("gpu.count", Level.PASS, title, f"{seen} of {want.gpus}")
    elif on_bus:
        title = "every GPU on the PCI bus answers"
        yield Verdict("gpu.count", Level.PASS, title, f"{seen} of {on_bus}", confidence=0.8)
    else:
        title = "how many GPUs there should be is not known"
        yield Verdict("gpu.count", Level.UNKNOWN, title, f"{seen} answer", confidence=1.0)


RULE = Rule(
    id="gpu-inventory",
    reads=(gpu.COLLECTOR,),
    uses=(identity.COLLECTOR, kernel_log.COLLECTOR),
    judge=judge,
    finds=(
        "gpu.count",
        "gpu.none",
        "gpu.neuron",
        "gpu.driver-dead",
        "nvml.driver-mismatch",
        "gpu.lost",
        "gpu.requires-reset",
        "gpu.unknown-error-fields",
        "gpu.mixed-models",
        "gpu.mig-enabled",
    ),
    unknown="gpu.count",
    spec=("G1", "node.gpu-present", "node.gpu-inventory"),
)
