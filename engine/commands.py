"""Suggested commands: shown with what they need, risk and undo; never run. Every value is checked by its kind.

A block in a section is TOML: `argv` with `{name:kind}` placeholders, `preconditions`, `blast_radius`, `undo`, and what else
`Template` names. Text from a cluster gets in only where it fits its kind whole; then `shlex.join` makes the line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Finding, Node, SuggestedCommand
from straggler.engine.nodesets import fold

PLACEHOLDER = re.compile(r"\{([a-z_]+):([a-z-]+)\}")

KINDS: Mapping[str, re.Pattern[str]] = {
    "node": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"),
    "nodeset": re.compile(r"[A-Za-z0-9][A-Za-z0-9._,\[\]-]{0,20000}"),
    "instance-id": re.compile(r"i-[0-9a-f]{8,17}"),
    "sg-id": re.compile(r"sg-[0-9a-f]{8,17}"),
    "job-id": re.compile(r"[0-9]{1,12}(_[0-9]{1,9})?"),
    "governor": re.compile(r"[a-z_]{1,32}"),
    "pci": re.compile(r"([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}(\.[0-7])?", re.IGNORECASE),
    "gpu-index": re.compile(r"[0-9]{1,2}"),
    "number": re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?"),
    "word": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}"),
    "group": re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}"),
    "cluster": re.compile(
        r"[A-Za-z0-9][A-Za-z0-9-]{0,62}|arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:cluster/[a-z0-9]{12}"
    ),
    "region": re.compile(r"[a-z]{2,3}(-[a-z]+)+-[0-9]"),
    "path": re.compile(r"/[A-Za-z0-9._/+-]{0,255}"),
    "mount": re.compile(r"/[A-Za-z0-9._/+-]{0,255}"),
}
"""What a value of each kind may look like, whole."""

FILL_IN: Mapping[str, str] = {"cluster": "YOUR-CLUSTER", "region": "YOUR-REGION"}
"""What only the operator knows on a target by SSH: shown in capitals, and said to be filled in."""

GUARDS: Mapping[str, str] = {
    "reboot": "reboot",
    "--gpu-reset": "reboot",
    "batch-reboot-cluster-nodes": "reboot",
    "batch-replace-cluster-nodes": "replace",
    "batch-delete-cluster-nodes": "replace",
    "terminate-instances": "replace",
}
"""Words of a command line that stop or destroy nodes, and the guard such a block must carry."""

_CONTROLLER = re.compile(r"controller|head|login|master", re.IGNORECASE)
_INSTANCE_ID = KINDS["instance-id"]


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `suggested-command` block. `when`: where it applies (`Slurm`, `HyperPod`, `EKS`); `each`: one line per node.

    `guard` is `reboot` or `replace` for commands that stop or destroy nodes: those get the checks of `_guard`.
    """

    argv: tuple[str, ...]
    preconditions: str
    blast_radius: str
    undo: str
    iac: str = ""
    when: str = ""
    each: bool = False
    guard: str = ""
    note: str = ""

    @property
    def placeholders(self) -> tuple[tuple[str, str], ...]:
        """(name, kind) of every placeholder in any of its texts."""
        texts = (*self.argv, self.preconditions, self.blast_radius, self.undo, self.iac, self.note)
        return tuple(dict.fromkeys(found for text in texts for found in PLACEHOLDER.findall(text)))

    @property
    def alike(self) -> bool:
        """One line per node that differs from the others' in the node's name only."""
        return self.each and {name for name, _ in self.placeholders} <= {"node", "nodes", *FILL_IN}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A command that could not be offered, and why."""

    what: str
    why: str


class UnfitError(ValueError):
    """A value is missing or does not fit its kind."""


def render(
    template: Template, finding: Finding, nodes: Sequence[Node], known: Knowledge
) -> tuple[tuple[SuggestedCommand, ...], tuple[LeftOut, ...]]:
    """The lines of one block for this finding's nodes, or why there are none."""
    wanted = set(finding.subjects)
    subjects = [node for node in nodes if node.id in wanted]
    what = " ".join(template.argv[:3])
    try:
        notes = _guard(template, subjects, nodes, known)
    except UnfitError as error:
        return (), (LeftOut(what, str(error)),)
    groups = [[node] for node in subjects] if template.each else _batches(template, subjects, known)
    most = int(known.number("commands.shown"))
    if len(groups) > most and template.alike:
        return _example(template, finding, subjects, notes)
    shown = groups[:most]
    if len(groups) > 1 and not template.each:
        notes.append(
            f"{len(subjects)} nodes are too many for one call: {len(groups)} calls, one after the other."
        )
    lines: list[SuggestedCommand] = []
    left_out: dict[LeftOut, None] = {}
    for group in shown:
        try:
            lines.append(_line(template, finding, group, notes))
        except UnfitError as error:
            left_out[LeftOut(what, str(error))] = None
    if more := len(groups) - len(shown):
        left_out[LeftOut(what, f"{more} more of the same{', one per node' if template.each else ''}")] = None
    return tuple(lines), tuple(left_out)


def _example(
    template: Template, finding: Finding, subjects: Sequence[Node], notes: Sequence[str]
) -> tuple[tuple[SuggestedCommand, ...], tuple[LeftOut, ...]]:
    """The line of the first node, and for whom else it holds: sixteen lines that differ in a name hide the rest of a page."""
    fit = [node for node in subjects if KINDS["node"].fullmatch(node.id)]
    left = [LeftOut(" ".join(template.argv[:3]), "a node's name does not look like one")] * (
        fit != [*subjects]
    )
    if not fit:
        return (), tuple(left)
    others = f"The same on {fold(node.id for node in fit[1:])}." if len(fit) > 1 else ""
    return (_line(template, finding, fit[:1], [*notes, others]),), tuple(left)


def fill(text: str, finding: Finding, subjects: Sequence[Node]) -> str:
    """Prose with its placeholders filled. Raises UnfitError."""
    return PLACEHOLDER.sub(lambda found: " ".join(_values(found[1], found[2], finding, subjects)), text)


def _line(
    template: Template, finding: Finding, subjects: Sequence[Node], notes: list[str]
) -> SuggestedCommand:
    argv: list[str] = []
    for word in template.argv:
        if whole := PLACEHOLDER.fullmatch(word):
            argv += _values(whole[1], whole[2], finding, subjects)
        else:
            argv.append(fill(word, finding, subjects))
    words = [template.when and f"On {template.when}.", *notes, template.note, template.iac]
    if fills := [name for name in FILL_IN.values() if any(name in word for word in argv)]:
        words.append(f"Put in your own: {', '.join(fills)}.")
    return SuggestedCommand(
        command=shlex.join(argv),
        preconditions=fill(template.preconditions, finding, subjects),
        blast_radius=fill(template.blast_radius, finding, subjects),
        undo=fill(template.undo, finding, subjects),
        note=" ".join(fill(word, finding, subjects) for word in words if word),
    )


def _values(name: str, kind: str, finding: Finding, subjects: Sequence[Node]) -> list[str]:
    if kind not in KINDS:
        raise UnfitError(f"no kind of value is called {kind}")
    if name == "nodes":
        # Each by itself: a name like `w-1,w-2` or `w-[1-9]` would name other nodes once it is in a set.
        for node in subjects:
            if not KINDS["node"].fullmatch(node.id):
                raise UnfitError("a node's name does not look like one")
        found = [fold(node.id for node in subjects)]
    elif name == "node":
        found = [node.id for node in subjects]
    elif name == "instance_ids":
        found = [_instance_id(node) for node in subjects]
    elif name in FILL_IN:
        return [FILL_IN[name]]
    else:
        found = [_own_value(name, finding, subjects)]
    for value in found:
        if not KINDS[kind].fullmatch(value):
            raise UnfitError(f"{name} does not look like a {kind}")
    return found


def _own_value(name: str, finding: Finding, subjects: Sequence[Node]) -> str:
    """A value of the finding that holds for exactly these nodes."""
    shown = {finding.node_values.get(node.id, finding.values).get(name) for node in subjects}
    if len(shown) > 1:
        raise UnfitError(f"{name} is not the same on all of these nodes")
    value = next(iter(shown), None)
    if value is None:
        raise UnfitError(f"{name} is not known")
    return value


def _instance_id(node: Node) -> str:
    for name in (node.id, *node.names):
        if _INSTANCE_ID.fullmatch(name):
            return name
    raise UnfitError(f"the instance id of {node.id} is not known")


def _batches(template: Template, subjects: Sequence[Node], known: Knowledge) -> list[list[Node]]:
    """All nodes in one line, or as many lines as the API's limit of ids per call asks for."""
    if not template.guard:
        return [list(subjects)]
    most = int(known.number("commands.batch-nodes"))
    return [list(subjects[at : at + most]) for at in range(0, len(subjects), most)]


def _guard(
    template: Template, subjects: Sequence[Node], nodes: Sequence[Node], known: Knowledge
) -> list[str]:
    """Checks of commands that stop or destroy nodes. Raises UnfitError where one must not even be shown."""
    notes: list[str] = []
    if template.guard == "replace":
        for node in subjects:
            if any(_CONTROLLER.search(name) for name in (node.group, node.id, *node.names)):
                raise UnfitError(f"{node.id} looks like a controller or login node; those are never replaced")
    if template.guard:
        share = 100 * len(subjects) / max(1, len(nodes))
        if len(subjects) > known.number("commands.share-nodes") and share > known.number("commands.share"):
            notes.append(
                f"CAUTION: this is {len(subjects)} of {len(nodes)} nodes ({share:.0f} %). A fault on so many at once is "
                "rarely the nodes' own: look for a common cause first."
            )
    return notes
