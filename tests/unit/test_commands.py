"""Suggested commands: only values that fit their kind get in, and nodes are not rebooted or replaced lightly."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine import commands, knowledge
from straggler.engine.commands import LeftOut, Template
from straggler.engine.model import Finding, Level, Node, Priority, SuggestedCommand

KNOWN = knowledge.load()


def finding(*subjects: str, values: Mapping[str, str] | None = None) -> Finding:
    words = ("why", "false alarm", "next step", "remedies/cpu.md#cpu-governor", "", "rule")
    return Finding(
        "x", Level.FAIL, Priority.P0, "title", subjects, (), (), 1.0, *words, values=values or {}
    )  # fmt: skip


def template(*argv: str, each: bool = False, guard: str = "", when: str = "", iac: str = "") -> Template:
    return Template(
        argv, "before {nodes:nodeset}", "hurts", "undo", iac=iac, when=when, each=each, guard=guard
    )


def offered(
    made: Template,
    subjects: list[Node],
    *,
    of: list[Node] | None = None,
    values: Mapping[str, str] | None = None,
) -> tuple[tuple[SuggestedCommand, ...], tuple[LeftOut, ...]]:
    return commands.render(made, finding(*(one.id for one in subjects), values=values), of or subjects, KNOWN)


def workers(count: int, ids: bool = True) -> list[Node]:
    return [
        Node(f"w-{at:03}", names=(f"i-{at:017x}",) if ids else (), group="workers")
        for at in range(1, count + 1)
    ]


def test_nodes_are_folded_into_one_line() -> None:
    [one], left = offered(template("scontrol", "update", "nodename={nodes:nodeset}"), workers(3))
    assert shlex.split(one.command) == ["scontrol", "update", "nodename=w-[001-003]"]
    assert one.preconditions == "before w-[001-003]"
    assert not left


def test_a_few_nodes_have_a_line_each() -> None:
    lines, left = offered(template("ssh", "{node:node}", "uptime", each=True), workers(2))
    assert [one.command for one in lines] == ["ssh w-001 uptime", "ssh w-002 uptime"]
    assert not left


def test_many_nodes_with_the_same_command_have_one_example_and_all_names() -> None:
    [one], left = offered(template("ssh", "{node:node}", "uptime", each=True), workers(20))
    assert one.command == "ssh w-001 uptime"
    assert "The same on w-[002-020]." in one.note
    assert not left


def test_of_many_nodes_one_with_a_hostile_name_is_neither_the_example_nor_among_the_names() -> None:
    nodes = [Node("w; reboot", group="workers"), *workers(20)]
    [one], [left] = offered(template("ssh", "{node:node}", "uptime", each=True), nodes)
    assert one.command == "ssh w-001 uptime"
    assert "reboot" not in one.note
    assert left.why == "a node's name does not look like one"


def test_lines_that_differ_in_more_than_the_name_are_shown_and_the_rest_is_counted() -> None:
    made = template("ssh", "{node:node}", "echo", "{instance_ids:instance-id}", each=True)
    lines, [left] = offered(made, workers(20))
    assert lines[1].command == "ssh w-002 echo i-00000000000000002"
    assert len(lines) == KNOWN.number("commands.shown")
    assert left.why == f"{20 - len(lines)} more of the same, one per node"


def test_without_an_instance_id_the_command_is_left_out_and_says_so() -> None:
    lines, [left] = offered(template("aws", "--node-id", "{instance_ids:instance-id}"), workers(2, ids=False))
    assert not lines
    assert left.why == "the instance id of w-001 is not known"


def test_a_node_without_an_instance_id_does_not_take_the_others_lines_away() -> None:
    nodes = [*workers(2), Node("odd")]
    lines, [left] = offered(template("aws", "--node-id", "{instance_ids:instance-id}", each=True), nodes)
    assert len(lines) == 2
    assert left.why == "the instance id of odd is not known"


def test_what_only_the_operator_knows_is_in_capitals_and_said() -> None:
    [one], _ = offered(template("aws", "--cluster-name", "{cluster:cluster}"), workers(1))
    assert "YOUR-CLUSTER" in one.command
    assert "Put in your own: YOUR-CLUSTER." in one.note


def test_a_value_no_rule_gave_leaves_the_command_out() -> None:
    assert offered(template("nvidia-smi", "--id={pci:pci}"), workers(1))[1][0].why == "pci is not known"


HOSTILE = [
    "$(reboot)",
    "`id`",
    "a;b",
    "a b",
    "-oProxyCommand=x",
    "w-1\n",
    "w-1\nrm",
    "",
    "é",
    "../x",
    "a|b",
    "[bold]x[/]",
    "\x1b[31m",
    "'; --",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", sorted(commands.KINDS))
def test_hostile_text_fits_no_kind(kind: str, text: str) -> None:
    lines, left = offered(template("x", f"{{it:{kind}}}"), workers(1), values={"it": text})
    assert not lines
    assert "does not look like" in left[0].why


@given(st.text(max_size=40))
def test_whatever_fits_a_kind_is_one_word_of_the_shell_that_is_no_option(text: str) -> None:
    for kind in commands.KINDS:
        lines, _ = offered(template("x", f"{{it:{kind}}}"), workers(1), values={"it": text})
        for one in lines:
            assert shlex.split(one.command) == ["x", text]
            assert not text.startswith("-")
            assert not set(text) & set(" \n\t;&|$`'\"\\<>(){}*?!#~")


def test_a_hostile_node_name_is_never_put_into_a_command() -> None:
    lines, _ = offered(template("ssh", "{node:node}"), [Node("-oProxyCommand=reboot")])
    assert not lines


@pytest.mark.parametrize("name", ["w-001,w-009", "w-[001-009]", "w-1 w-2", "$(id)", "w-1\n"])
def test_a_node_whose_name_would_mean_others_is_never_put_into_a_set(name: str) -> None:
    lines, [left] = offered(template("scontrol", "nodename={nodes:nodeset}"), [*workers(2), Node(name)])
    assert not lines
    assert left.why == "a node's name does not look like one"


@pytest.mark.parametrize(
    "node",
    [
        Node("w-1", group="controller-group"),
        Node("slurm-head-1"),
        Node("w-1", group="login"),
        Node("w", ("master-0",)),
    ],
)
def test_a_controller_or_login_node_is_never_offered_for_replacement(node: Node) -> None:
    made = template("aws", "{nodes:nodeset}", guard="replace")
    lines, [left] = offered(made, [node], of=[node, *workers(50)])
    assert not lines
    assert "never replaced" in left.why
    assert offered(replace_guard(made), [node], of=[node, *workers(50)])[0], "a reboot may be offered"


def replace_guard(made: Template) -> Template:
    return Template(made.argv, made.preconditions, made.blast_radius, made.undo, guard="reboot")


def test_more_ids_than_one_call_takes_are_split_and_said() -> None:
    made = template("aws", "--node-ids", "{instance_ids:instance-id}", guard="reboot")
    lines, _ = offered(made, workers(60), of=workers(1000))
    assert [len(one.command.split()) - 2 for one in lines] == [25, 25, 10]
    assert all("3 calls, one after the other" in one.note for one in lines)


def test_a_large_share_of_the_fleet_is_warned_of_loudly() -> None:
    made = template("reboot", "{nodes:nodeset}", guard="reboot")
    [one], _ = offered(made, workers(12), of=workers(100))
    assert "CAUTION: this is 12 of 100 nodes (12 %)" in one.note
    [one], _ = offered(made, workers(2), of=workers(4))
    assert "CAUTION" not in one.note
    [one], _ = offered(made, workers(10), of=workers(100))
    assert "CAUTION" not in one.note


def test_only_nodes_of_the_finding_are_named() -> None:
    [one], _ = offered(template("x", "{nodes:nodeset}"), workers(2), of=workers(9))
    assert one.command == "x 'w-[001-002]'"


def test_each_node_gets_its_own_gpus_address_never_its_neighbours() -> None:
    told = {"w-001": {"pci": "0000:53:00.0"}, "w-002": {"pci": "0000:9a:00.0"}, "w-003": {}}
    hurt = replace(finding("w-001", "w-002", "w-003"), node_values=told)
    made = template(
        "ssh", "{node:node}", "nvidia-smi", "--gpu-reset", "--id={pci:pci}", each=True, guard="reboot"
    )
    lines, [left] = commands.render(made, hurt, workers(3), KNOWN)
    assert [one.command.split()[1] + one.command[-12:] for one in lines] == [
        "w-0010000:53:00.0",
        "w-0020000:9a:00.0",
    ]
    assert left.why == "pci is not known"


def test_one_line_for_many_nodes_has_only_values_they_share() -> None:
    hurt = replace(finding("w-001", "w-002"), node_values={"w-001": {"gpu": "1"}, "w-002": {"gpu": "2"}})
    lines, [left] = commands.render(
        template("x", "{gpu:gpu-index}", "{nodes:nodeset}"), hurt, workers(2), KNOWN
    )
    assert not lines
    assert left.why == "gpu is not the same on all of these nodes"
