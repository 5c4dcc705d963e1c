"""What a piece of shell could start and write, by a real grammar: for the test of the closed list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from straggler.engine.gate import OPEN

BUILTINS = frozenset(
    """: [ [[ break case cd continue do done echo exit false for if local printf pwd read return set shift test true
    type ulimit umask unset wait""".split()  # noqa: SIM905 - a list is ten times as long
)
"""The shell's own words, without those that run what is handed to them (eval, exec, source, command, trap) or pass it on (export)."""

STATIC = {"word", "string_content", "number", "raw_string", "extglob_pattern", "regex", "test_operator"}


@dataclass(frozen=True)
class Shell:
    """`commands`: argv of everything that is started; `writes`: targets of redirections; `trouble`: what no eye can check."""

    commands: tuple[tuple[str, ...], ...]
    writes: tuple[str, ...]
    functions: frozenset[str]
    trouble: tuple[str, ...]


EMPTY = re.compile(r"(?<![\w$'\"{-])([A-Za-z_]\w*)=(?=[\s;)])")
"""`x=` with nothing behind it: this grammar takes the next line for its value, so the nothing is written out."""

ASSIGNMENTS = re.compile(
    r"^[ \t]*[A-Za-z_]\w*=[^\s\"();|&]*([ \t]+[A-Za-z_]\w*=([^\s\"();|&]|\"[^\"]*\")*)+$", re.MULTILINE
)
"""A line of several assignments: this grammar takes the next line for a program they are set for, so they are set apart."""

HARMLESS = frozenset({"IFS", "LC_ALL", "TZ"})
"""Variables that may be set for one program."""


def scan(text: str) -> Shell:
    text = ASSIGNMENTS.sub(
        lambda line: re.sub(r"\s+(?=[A-Za-z_]\w*=)", "; ", line[0].strip()), EMPTY.sub(r"\1=''", text)
    )
    root = Parser(Language(tree_sitter_bash.language())).parse(text.encode()).root_node
    commands, writes, trouble, functions = [], [], [], set()
    for node in walk(root):
        if node.type == "ERROR" or node.is_missing:
            trouble.append(f"not understood: {said(node)!r}")
        elif node.type == "function_definition":
            name = node.child_by_field_name("name")
            functions.add(said(name) if name else "")
        elif node.type == "command":
            for part in node.named_children:
                name = part.child_by_field_name("name") if part.type == "variable_assignment" else None
                if name is not None and said(name) not in HARMLESS:
                    trouble.append(f"sets {said(name)} for a program")
            argv = tuple(word(part) for part in node.named_children if part.type not in SKIPPED)
            if argv:
                commands.append(argv)
        elif node.type in ("declaration_command", "unset_command"):
            commands.append((said(node).split()[0],))
        elif node.type == "file_redirect":
            operator = next((said(part) for part in node.children if not part.is_named), "")
            target = node.child_by_field_name("destination")
            if operator not in ("<", "<&") and target is not None:
                writes.append(operator.strip("0123456789") + word(target))
        elif node.type == "process_substitution":
            trouble.append(f"process substitution: {said(node)!r}")
    return Shell(tuple(commands), tuple(writes), frozenset(functions), tuple(trouble))


SKIPPED = {"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect", "comment"}


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def said(node: Node) -> str:
    return (node.text or b"").decode()


def word(node: Node) -> str:
    """The word as the shell would make it, with OPEN for every part that is only known on the node."""
    if node.type == "raw_string":
        return said(node)[1:-1]
    if node.type in (
        "simple_expansion",
        "expansion",
        "command_substitution",
        "arithmetic_expansion",
        "ansi_c_string",
    ):
        return OPEN
    if node.type == "string":
        # The grammar leaves blanks between expansions out of the tree: they are taken from the text.
        out, at = "", node.start_byte + 1
        for part in node.named_children:
            out += between(node, at, part.start_byte) + word(part)
            at = part.end_byte
        return out + between(node, at, node.end_byte - 1)
    if node.type in ("concatenation", "command_name") and node.named_children:
        return "".join(word(part) for part in node.named_children)
    return said(node).replace("\\\n", "").replace("\\", "")


def between(node: Node, start: int, end: int) -> str:
    return (node.text or b"")[start - node.start_byte : end - node.start_byte].decode()
