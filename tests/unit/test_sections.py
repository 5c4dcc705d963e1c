"""Remedy sections: how a file is cut into them, how a finding's values get in, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from straggler.engine import knowledge
from straggler.engine.errors import KnowledgeError
from straggler.engine.judge import Report
from straggler.engine.model import Finding, Level, Node, Priority
from straggler.engine.sections import Sections, slug

KNOWN = knowledge.load()
OURS = Sections.load()

BLOCK = """
```suggested-command
argv = ["ssh", "{node:node}", "uptime"]
preconditions = "p"
blast_radius = "b"
undo = "u"
```
"""


def finding(
    reference: str, *subjects: str, level: Level = Level.WARN, values: Mapping[str, str] | None = None
) -> Finding:
    words = ("why", "false alarm", "next", f"remedies/{reference}", "", "rule")
    return Finding("x", level, Priority.P2, "title", subjects, (), (), 1.0, *words, values=values or {})


def own(tmp_path: Path, text: str, name: str = "mine.md") -> Sections:
    (tmp_path / "remedies").mkdir(exist_ok=True)
    (tmp_path / "remedies" / name).write_text(text, encoding="utf-8")
    return Sections.load(tmp_path)


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("GPU missing", "gpu-missing"),
        ("Xid 119 and 120", "xid-119-and-120"),
        ("What's on /dev/shm?", "whats-on-devshm"),
        ("A - b", "a---b"),
    ],
)
def test_anchors_are_those_github_makes(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_a_section_names_the_nodes_of_the_finding() -> None:
    nodes = [Node(f"w-{at}") for at in (1, 2, 3)]
    made = OURS.render(
        finding("cpu.md#cpu-governor", "w-1", "w-3", values={"wanted": "performance"}), nodes, KNOWN
    )
    [one] = made.commands
    assert one.command == "sudo cpupower frequency-set --governor performance"
    assert one.preconditions.startswith("On w-[1,3].")
    assert not made.theirs


def test_command_blocks_do_not_stay_in_the_prose(tmp_path: Path) -> None:
    sections = own(tmp_path, f"## One\n\nbefore\n{BLOCK}\nafter\n")
    made = sections.render(finding("mine.md#one", "w-1"), [Node("w-1")], KNOWN)
    assert made.markdown.split() == ["before", "after"]
    assert [one.command for one in made.commands] == ["ssh w-1 uptime"]


def test_a_value_in_prose_is_code_and_one_that_does_not_fit_is_named_in_words(tmp_path: Path) -> None:
    sections = own(tmp_path, "## One\nLook at {mount:mount} on {nodes:nodeset}.\n")
    good = finding("mine.md#one", "w-1", values={"mount": "/fsx"})
    bad = finding("mine.md#one", "w-1", values={"mount": "/fsx`[x](http://evil)"})
    assert sections.render(good, [Node("w-1")], KNOWN).markdown == "Look at `/fsx` on `w-1`."
    assert sections.render(bad, [Node("w-1")], KNOWN).markdown == "Look at (the mount) on `w-1`."


def test_only_faults_get_commands() -> None:
    ref, nodes = "cpu.md#cpu-governor", [Node("w-1")]
    found = tuple(finding(ref, "w-1", level=level, values={"wanted": "performance"}) for level in Level)
    report = OURS.with_commands(Report(found, (), {}, 1, 1, 100.0), nodes, KNOWN)
    assert {one.level for one in report.findings if one.commands} == {Level.WARN, Level.FAIL}


def test_a_section_that_does_not_exist_is_an_error_not_an_empty_page() -> None:
    assert not OURS.has("remedies/cpu.md#nothing")
    with pytest.raises(KeyError):
        OURS.get("remedies/cpu.md#nothing")


def test_a_heading_inside_a_code_block_is_no_section(tmp_path: Path) -> None:
    sections = own(tmp_path, "## One\n```sh\n## not a heading\n```\n## Two\ntext\n")
    assert sections.has("mine.md#two")
    assert not sections.has("mine.md#not-a-heading")


BROKEN = {
    "no undo": (BLOCK.replace('undo = "u"\n', ""), "mine.md:3: .*undo"),
    "empty undo": (BLOCK.replace('"u"', '""'), "mine.md:3: .*lacks undo"),
    "no argv": (BLOCK.replace('["ssh", "{node:node}", "uptime"]', "[]"), "lacks argv"),
    "a line for the shell": (BLOCK.replace('["ssh", "{node:node}", "uptime"]', '"rm -rf /"'), "mine.md:3"),
    "an unknown kind": (BLOCK.replace("{node:node}", "{node:anything}"), "no kind of value called anything"),
    "an unknown key": (BLOCK.replace("undo =", 'run = true\nundo ='), "mine.md:3.*run"),
    "no TOML": (BLOCK.replace('undo = "u"', "undo ="), "mine.md:3"),
    "no end": (BLOCK.removesuffix("```\n"), "mine.md:3: .*no end"),
    "an unknown guard": (BLOCK.replace("undo =", 'guard = "none"\nundo ='), "guard 'none'"),
    "a replacement without its guard": (BLOCK.replace('"uptime"', '"batch-replace-cluster-nodes"'), "needs guard = 'replace'"),
    "a reboot in a remote line without its guard": (BLOCK.replace('"uptime"', '"sudo reboot"'), "needs guard = 'reboot'"),
    "a code block without end": ("```sh\nls\n", "no end"),
    "two sections of one name": ("## One\ntext\n", "two sections are called 'One'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_of_the_user_is_refused_with_its_name_and_line(what: str, tmp_path: Path) -> None:
    body, said = BROKEN[what]
    with pytest.raises(KnowledgeError, match=said) as caught:
        own(tmp_path, f"## One\n{body}")
    assert str(tmp_path / "remedies" / "mine.md") in str(caught.value)


def test_a_file_without_sections_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="begins with a line `## Heading`"):
        own(tmp_path, "some notes\n")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "remedies").mkdir()
    (tmp_path / "remedies" / "mine.md").write_bytes(b"## One\n\xff\xfe\n")
    with pytest.raises(KnowledgeError, match="cannot be read as text"):
        Sections.load(tmp_path)
