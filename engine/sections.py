"""The remedy sections a finding points to: loaded from references/remedies and from the user's own, filled with real names.

A section is everything from one `## Heading` to the next; its anchor is the heading's slug as GitHub makes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from straggler.engine import commands
from straggler.engine.commands import LeftOut, Template
from straggler.engine.compat import tomllib
from straggler.engine.errors import KnowledgeError
from straggler.engine.judge import Report
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Finding, Node, SuggestedCommand

_FENCE = "```suggested-command"


@dataclass(frozen=True, slots=True)
class Section:
    """`ref` is FILE.md#anchor; `body` is markdown without heading and command blocks; `theirs`: from the user's config."""

    ref: str
    title: str
    body: str
    templates: tuple[Template, ...]
    theirs: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A section with a finding's values in it. `left_out`: commands that could not be offered, and why."""

    title: str
    markdown: str
    commands: tuple[SuggestedCommand, ...]
    left_out: tuple[LeftOut, ...]
    theirs: bool


@dataclass(frozen=True)
class Sections:
    """Every section there is, by FILE.md#anchor."""

    by_ref: Mapping[str, Section]

    @classmethod
    def load(cls, config: Path | None = None) -> Sections:
        """Ours, and on top of them the user's `remedies/*.md`. Raises KnowledgeError with file and line."""
        found = dict(_shipped())
        own = config / "remedies" if config else None
        if own is not None and own.is_dir():
            for path in sorted(own.glob("*.md")):
                try:
                    text = path.read_text()
                except (OSError, UnicodeDecodeError) as error:
                    raise KnowledgeError(
                        f"{path}: cannot be read as text; make it readable or move it away"
                    ) from error
                found.update(
                    {one.ref: replace(one, theirs=True) for one in _split(text, path.name, str(path))}
                )
        return cls(found)

    def has(self, reference: str) -> bool:
        return reference.removeprefix("remedies/") in self.by_ref

    def get(self, reference: str) -> Section:
        """The section of `remedies/FILE.md#anchor`. Raises KeyError: a test keeps every reference alive."""
        return self.by_ref[reference.removeprefix("remedies/")]

    def render(self, finding: Finding, nodes: Sequence[Node], known: Knowledge) -> Rendered:
        """The finding's section with its nodes and values."""
        section = self.get(finding.reference)
        lines: list[SuggestedCommand] = []
        left_out: list[LeftOut] = []
        for template in section.templates:
            made, not_made = commands.render(template, finding, nodes, known)
            lines += made
            left_out += not_made
        subjects = [node for node in nodes if node.id in set(finding.subjects)]
        return Rendered(
            section.title,
            _fill_prose(section.body, finding, subjects),
            tuple(lines),
            tuple(left_out),
            section.theirs,
        )

    def with_commands(self, report: Report, nodes: Sequence[Node], known: Knowledge) -> Report:
        """The report with every fault's suggested commands filled in."""
        done = tuple(self._with_commands(one, nodes, known) for one in report.findings)
        return replace(report, findings=done)

    def _with_commands(self, one: Finding, nodes: Sequence[Node], known: Knowledge) -> Finding:
        if not one.level.is_fault:
            return replace(one, theirs=self.get(one.reference).theirs)
        made = self.render(one, nodes, known)
        return replace(one, commands=made.commands, theirs=made.theirs)


def slug(heading: str) -> str:
    """The anchor GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def _shipped() -> Mapping[str, Section]:
    home = files("straggler.references").joinpath("remedies")
    found: dict[str, Section] = {}
    for path in sorted(home.iterdir(), key=lambda one: one.name):
        if path.name.endswith(".md"):
            for one in _split(path.read_text(encoding="utf-8"), path.name, path.name):
                if one.ref in found:
                    raise KnowledgeError(f"{path.name}: two sections are called {one.title!r}")
                found[one.ref] = one
    return found


def _split(text: str, file: str, where: str) -> Iterator[Section]:
    title, started = "", 0
    body: list[str] = []
    templates: list[Template] = []
    block: list[str] | None = None
    for number, line in enumerate([*text.splitlines(), "## "], 1):
        if block is not None:
            if line.strip() == "```":
                templates.append(_template("\n".join(block), f"{where}:{started}"))
                block = None
            elif line.startswith("## "):
                raise KnowledgeError(f"{where}:{started}: the suggested-command block has no end")
            else:
                block.append(line)
        elif line.strip() == _FENCE:
            block, started = [], number
        elif line.startswith("## "):
            if title:
                yield Section(f"{file}#{slug(title)}", title, "\n".join(body).strip(), tuple(templates))
            title, body, templates = line[3:].strip(), [], []
        elif title:
            body.append(line)


def _template(raw: str, where: str) -> Template:
    try:
        made = msgspec.convert(tomllib.loads(raw), type=Template)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise KnowledgeError(f"{where}: suggested-command: {error}") from error
    empty = [name for name in ("argv", "preconditions", "blast_radius", "undo") if not getattr(made, name)]
    unknown = [kind for _, kind in made.placeholders if kind not in commands.KINDS]
    if empty or unknown:
        wrong = f"lacks {', '.join(empty)}" if empty else f"has no kind of value called {', '.join(unknown)}"
        raise KnowledgeError(f"{where}: suggested-command {wrong}")
    return made


def _fill_prose(body: str, finding: Finding, subjects: Sequence[Node]) -> str:
    """Placeholders in prose; one that cannot be filled is named in words, for prose must not vanish with it."""

    def one(found: re.Match[str]) -> str:
        try:
            return f"`{commands.fill(found[0], finding, subjects)}`"
        except commands.UnfitError:
            return f"(the {found[1].replace('_', ' ')})"

    return commands.PLACEHOLDER.sub(one, body)
