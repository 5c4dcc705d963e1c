"""Walks the tree: from what hurts to what is asked, and from a pasted error to the symptom it speaks of."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from straggler.engine.collectors import BY_ID as COLLECTOR_BY_ID
from straggler.engine.collectors import COLLECTORS
from straggler.engine.collectors.base import AnyCollector
from straggler.engine.errors import UsageError
from straggler.engine.knowledge import Knowledge, Symptom
from straggler.engine.rules import BY_ID, RULES
from straggler.engine.rules.base import Rule

EVERYTHING = "everything"


@dataclass(frozen=True)
class Plan:
    """What a symptom leads to: the rules to ask, and the collectors they read, in that order; `pairs`: pairwise results, too."""

    symptom: str
    rules: tuple[Rule, ...]
    collectors: tuple[AnyCollector, ...]
    pairs: bool = False


def symptom(name: str, known: Knowledge) -> Symptom:
    """Raises UsageError that names the nearest symptom there is."""
    if name in known.symptoms:
        return known.symptoms[name]
    near = difflib.get_close_matches(name, known.symptoms, n=1)
    hint = f"did you mean {near[0]}?" if near else "choose one of: " + " ".join(known.symptoms)
    raise UsageError(f"unknown symptom {name!r}; {hint}")


def plan(name: str, known: Knowledge) -> Plan:
    """The rules of a symptom (all of them where it names none) and everything they read; identity always comes along."""
    chosen = symptom(name, known)
    rules = tuple(BY_ID[one] for one in chosen.rules) if chosen.rules else RULES
    wanted = {one.id for rule in rules for one in rule.collectors} | {"identity"}
    if not chosen.rules:
        wanted |= {one.id for one in COLLECTORS}
    return Plan(name, rules, tuple(one for one in COLLECTORS if one.id in wanted), chosen.pairs)


def symptom_of_error(text: str, known: Knowledge) -> str | None:
    """The first symptom whose error patterns the pasted text matches."""
    for name, one in known.symptoms.items():
        if any(re.search(pattern, text, re.IGNORECASE) for pattern in one.errors):
            return name
    return None


def recheck(rule: str) -> tuple[AnyCollector, ...]:
    """What one finding's rule reads: the collectors to run again for a before/after of just that finding."""
    return BY_ID[rule].collectors if rule in BY_ID else tuple(COLLECTOR_BY_ID.values())
