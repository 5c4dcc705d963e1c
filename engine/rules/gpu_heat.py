"""Whether a GPU's clock is held down, and by what. The driver's own reasons come first; degrees only where a limit is published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from straggler.engine.collectors import gpu, identity
from straggler.engine.collectors.gpu import Gpu, Gpus
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule
from straggler.engine.rules.gpus import every_one, label, names

HEAT = ("hw_thermal_slowdown", "sw_thermal_slowdown")


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(gpu.COLLECTOR)
    found = [*_thermal(facts), *_brake(facts), *_slowdown(facts), *_hot(view, facts)]
    yield from found
    yield from _capped(facts)
    if not found:
        good = "no GPU that answers is held back by heat or by its power supply"
        yield from every_one(
            facts, "gpu.thermal-slowdown", _told, good, "a GPU hides why its clock is held down"
        )


def _told(one: Gpu) -> bool | None:
    reasons = [one.reasons.get(name) for name in (*HEAT, "hw_slowdown", "hw_power_brake_slowdown")]
    return None if None in reasons else True


def _active(facts: Gpus, *reasons: str) -> list[Gpu]:
    return [one for one in facts.gpus if any(one.reasons.get(reason) for reason in reasons)]


def _shown(gpus: list[Gpu], *reasons: str) -> tuple[str, ...]:
    lines = []
    for one in gpus[:4]:
        active = ", ".join(reason for reason in reasons if one.reasons.get(reason))
        heat = "" if one.temperature is None else f", {one.temperature:g} C"
        clock = "" if one.clock is None else f", SM clock {one.clock} of {one.clock_max or '?'} MHz"
        lines.append(f"{label(one)}: {active} active{heat}{clock}")
    return tuple(lines)


def _values(one: Gpu) -> dict[str, str]:
    return {} if one.index is None else {"gpu": str(one.index)}


def _thermal(facts: Gpus) -> Iterator[Verdict]:
    if hot := _active(facts, *HEAT):
        title = "heat holds a GPU's clock down"
        yield Verdict(
            "gpu.thermal-slowdown",
            Level.WARN,
            title,
            names(hot),
            _shown(hot, *HEAT, "hw_slowdown"),
            values=_values(hot[0]),
        )


def _brake(facts: Gpus) -> Iterator[Verdict]:
    if braked := _active(facts, "hw_power_brake_slowdown"):
        title = "the power supply brakes a GPU"
        shown = _shown(braked, "hw_power_brake_slowdown", "hw_slowdown")
        yield Verdict("gpu.power-brake", Level.WARN, title, names(braked), shown, values=_values(braked[0]))


def _slowdown(facts: Gpus) -> Iterator[Verdict]:
    """The collective flag alone: where heat or the brake is named too, that is the finding."""
    named = {one.pci for one in _active(facts, "hw_thermal_slowdown", "hw_power_brake_slowdown")}
    if slowed := [one for one in _active(facts, "hw_slowdown") if one.pci not in named]:
        title = "hardware holds a GPU's clock down"
        yield Verdict("gpu.hw-slowdown", Level.WARN, title, names(slowed), _shown(slowed, "hw_slowdown"))


def _hot(view: NodeView, facts: Gpus) -> Iterator[Verdict]:
    limit = view.instance.temp_limit_c if view.instance else None
    if limit is None:
        return
    named = {one.pci for one in _active(facts, *HEAT)}
    if hot := [one for one in facts.gpus if (one.temperature or 0) >= limit and one.pci not in named]:
        shown = tuple(f"{label(one)}: {one.temperature:g} C, the limit is {limit} C" for one in hot[:4])
        yield Verdict("gpu.hot", Level.WARN, "a GPU is at its operating temperature limit", names(hot), shown)


def _capped(facts: Gpus) -> Iterator[Verdict]:
    if capped := _active(facts, "sw_power_cap"):
        detail = f"{len(capped)} of {len(facts.gpus)} GPUs"
        yield Verdict("gpu.power-cap", Level.INFO, "GPUs run at their power limit, as busy GPUs do", detail)


RULE = Rule(
    id="gpu-heat",
    reads=(gpu.COLLECTOR,),
    uses=(identity.COLLECTOR,),
    judge=judge,
    finds=("gpu.thermal-slowdown", "gpu.power-brake", "gpu.hw-slowdown", "gpu.hot", "gpu.power-cap"),
    unknown="gpu.thermal-slowdown",
    spec=("G2", "G4"),
)
