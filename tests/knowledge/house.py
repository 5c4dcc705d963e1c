"""Everything the references must hold together with: rules, code, and the data files of these tests, as one object to break."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from straggler.engine import knowledge
from straggler.engine.compat import tomllib
from straggler.engine.coverage import SECTIONS
from straggler.engine.inspect import kinds
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Status
from straggler.engine.rules import RULES, cluster_state, pairs, peers
from straggler.engine.rules.base import Rule
from straggler.engine.sections import Sections

HERE = Path(__file__).parent


@dataclass(frozen=True)
class House:
    """`fleet`: findings made over many nodes or a captured file. `code`: module file -> its tree. `rows`: the specification's rows."""

    known: Knowledge
    sections: Sections
    rules: tuple[Rule, ...]
    fleet: tuple[str, ...]
    code: Mapping[str, ast.Module]
    coverage: Mapping[Status, str]
    rows: Mapping[str, Mapping[str, str]]
    plain: Mapping[str, str]

    @property
    def finds(self) -> set[str]:
        """Every finding id somebody may give."""
        return {name for rule in self.rules for name in (*rule.finds, rule.unknown)} | set(self.fleet)


@cache
def house() -> House:
    return House(
        known=knowledge.load(),
        sections=Sections.load(),
        rules=RULES,
        fleet=(*peers.FINDS, *pairs.FINDS, *cluster_state.FINDS, *kinds.FINDS),
        code={
            name: ast.parse(text)
            for package in ("engine", "tui")
            for name, text in _sources(files(f"straggler.{package}"), package)
        },
        coverage=SECTIONS,
        rows=_data("spec_rows.toml"),
        plain=_data("plain_words.toml")["plain"],
    )


def _sources(folder: Any, where: str) -> Iterator[tuple[str, str]]:
    for one in folder.iterdir():
        if one.is_dir() and one.name != "__pycache__":
            yield from _sources(one, f"{where}/{one.name}")
        elif one.name.endswith(".py"):
            yield f"{where}/{one.name}", one.read_text(encoding="utf-8")


def _data(name: str) -> dict[str, Any]:
    return dict(tomllib.loads((HERE / name).read_text(encoding="utf-8")))
