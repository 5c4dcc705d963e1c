"""Recorded outputs of real tools under tests/cases, each with the right reading beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1] / "cases"


@dataclass(frozen=True, slots=True)
class Case:
    """`text` is what the tool printed, byte for byte as UTF-8; `expected` is its reading."""

    name: str
    text: str
    expected: dict[str, Any]


def cases(kind: str) -> list[Case]:
    """Every case of a kind. An empty folder is a mistake, not a pass."""
    found = []
    for path in sorted((HOME / kind).glob("*.expected.json")):
        name = path.name.removesuffix(".expected.json")
        [output] = [one for one in (HOME / kind).glob(f"{name}.*") if one != path]
        text = output.read_bytes().decode("utf-8", "backslashreplace")
        found.append(Case(name, text, json.loads(path.read_text())))
    if not found:
        raise AssertionError(f"no case of kind {kind}")
    return found
