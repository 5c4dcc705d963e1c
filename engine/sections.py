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

from straggler.engine import commands, knowledge
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
        for path in knowledge.files_in(config / "remedies") if config else ():
            if path.suffix == ".md":
                found.update({one.ref: replace(one, theirs=True) for one in _theirs(path)})
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
        left_out = tuple(f"{other.what}: {other.why}" for other in made.left_out)
        return replace(one, commands=made.commands, left_out=left_out, theirs=made.theirs)


def slug(heading: str) -> str:
    """The anchor GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def _shipped() -> Mapping[str, Section]:
    home = files("straggler.references").joinpath("remedies")
    found: dict[str, Section] = {}
    for path in sorted(home.iterdir(), key=lambda one: one.name):
        if path.name.endswith(".md"):
            found.update(
                {one.ref: one for one in _split(path.read_text(encoding="utf-8"), path.name, path.name)}
            )
    return found


def _theirs(path: Path) -> list[Section]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{path}: cannot be read as text; make it readable or move it away") from error
    sections = list(_split(text, path.name, str(path)))
    if not sections:
        raise KnowledgeError(f"{path}: has no section; a section begins with a line `## Heading`")
    return sections


def _split(text: str, file: str, where: str) -> Iterator[Section]:
    title, started, fenced = "", 0, False
    body: list[str] = []
    templates: list[Template] = []
    block: list[str] | None = None
    anchors: set[str] = set()
    for number, line in enumerate([*text.splitlines(), "## "], 1):
        if block is not None:
            if line.strip() == "```":
                templates.append(_template("\n".join(block), f"{where}:{started}"))
                block = None
            elif line.startswith("## "):
                raise KnowledgeError(f"{where}:{started}: the suggested-command block has no end")
            else:
                block.append(line)
        elif line.strip() == _FENCE and not fenced:
            if not title:
                raise KnowledgeError(
                    f"{where}:{number}: a suggested-command block before the first `## Heading`"
                )
            block, started = [], number
        elif line.startswith("## ") and (not fenced or line == "## "):
            if fenced:
                raise KnowledgeError(f"{where}: a ``` block in {title!r} has no end")
            if title:
                anchor = slug(title)
                if anchor in anchors:
                    raise KnowledgeError(f"{where}: two sections are called {title!r}")
                anchors.add(anchor)
                yield Section(f"{file}#{anchor}", title, "\n".join(body).strip(), tuple(templates))
            title, body, templates = line[3:].strip(), [], []
        elif title:
            fenced ^= line.startswith("```")
            body.append(line)


def _template(raw: str, where: str) -> Template:
    try:
        made = msgspec.convert(tomllib.loads(raw), type=Template)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise KnowledgeError(f"{where}: suggested-command: {error}") from error
    wrong = [
        f"lacks {name}"
        for name in ("argv", "preconditions", "blast_radius", "undo")
        if not getattr(made, name)
    ]
    wrong += [
        f"has no kind of value called {kind}" for _, kind in made.placeholders if kind not in commands.KINDS
    ]
    wrong += [f"needs guard = {need!r}" for need in _guards(made.argv) if made.guard != need]
    if made.guard and made.guard not in commands.GUARDS.values():
        wrong.append(f"has a guard {made.guard!r}, which is neither 'reboot' nor 'replace'")
    if wrong:
        raise KnowledgeError(f"{where}: suggested-command {'; '.join(wrong)}")
    return made


def _guards(argv: Sequence[str]) -> set[str]:
    words = {word for part in argv for word in part.split()}
    return {guard for word, guard in commands.GUARDS.items() if word in words}


def _fill_prose(body: str, finding: Finding, subjects: Sequence[Node]) -> str:
    """Placeholders in prose; one that cannot be filled is named in words, for prose must not vanish with it."""

    def one(found: re.Match[str]) -> str:
        try:
            return f"`{commands.fill(found[0], finding, subjects)}`"
        except commands.UnfitError:
            return f"(the {found[1].replace('_', ' ')})"

    return commands.PLACEHOLDER.sub(one, body)
