"""What the rules about GPUs share: which GPUs answer, and how one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from straggler.engine.collectors.gpu import Gpu, Gpus
from straggler.engine.model import Level, Verdict


def label(gpu: Gpu) -> str:
    at = "?" if gpu.index is None else str(gpu.index)
    return f"GPU {at} ({gpu.pci or 'no address'})"


def names(gpus: Iterable[Gpu]) -> str:
    return ", ".join(label(gpu) for gpu in gpus)


def every_one(
    facts: Gpus, fault: str, told: Callable[[Gpu], object | None], good: str, silent: str
) -> Iterator[Verdict]:
    """The end of a rule that found no fault: PASS when every GPU that answers told its value, else UNKNOWN with names.

    A GPU that does not answer at all is the inventory's finding, so `good` must speak of those that answer. A node without
    GPUs gets no verdict here: the inventory says what it is.
    """
    if facts.gpus:
        yield from _told(facts.gpus, fault, told, good, silent)
    elif facts.trouble or facts.handles or facts.on_bus("nvidia"):
        yield Verdict(
            fault, Level.UNKNOWN, silent, facts.trouble or "no GPU of this node answers", confidence=1.0
        )


def _told(
    gpus: Sequence[Gpu], fault: str, told: Callable[[Gpu], object | None], good: str, silent: str
) -> Iterator[Verdict]:
    mute = [gpu for gpu in gpus if told(gpu) is None]
    if mute:
        words = dict.fromkeys(word for gpu in mute for word in gpu.words.values())
        detail = names(mute) + (f": {', '.join(list(words)[:3])}" if words else "")
        yield Verdict(fault, Level.UNKNOWN, silent, detail, confidence=1.0)
    else:
        yield Verdict(fault, Level.PASS, good)
