"""Every acronym the screens use, one sentence each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from straggler.engine.knowledge import Term

_WORD = re.compile(r"[A-Za-z0-9/][A-Za-z0-9/_-]*")


def lookup(term: str, glossary: Mapping[str, Term]) -> tuple[str, Term] | None:
    """The entry of a term or of one of its other names, whatever its case; None where there is none."""
    wanted = term.casefold()
    for name, one in glossary.items():
        if wanted in (name.casefold(), *(other.casefold() for other in one.also)):
            return name, one
    return None


def terms_in(text: str, glossary: Mapping[str, Term]) -> list[tuple[str, Term]]:
    """The entries of the terms a text uses, in order of first appearance, each once."""
    names = {key.casefold(): name for name, one in glossary.items() for key in (name, *one.also)}
    words = [found[0] for found in _WORD.finditer(text)]
    pairs = [f"{first} {second}" for first, second in pairwise(words)]
    places: dict[str, int] = {}
    for at, candidate in [*enumerate(words), *enumerate(pairs)]:
        name = names.get(candidate.casefold()) or names.get(candidate.casefold().rstrip("s"))
        if name is not None:
            places[name] = min(at, places.get(name, at))
    return [(name, glossary[name]) for name in sorted(places, key=lambda name: places[name])]
