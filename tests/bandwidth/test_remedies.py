"""What an operator is offered for a finding about pairs: whole commands with the right nodes, the harmless ones first."""

from __future__ import annotations

import pytest

from straggler.engine import knowledge
from straggler.engine.model import Finding, Level, Node
from straggler.engine.sections import Rendered, Sections

KNOWN = knowledge.load()
KINDS = sorted(name for name in KNOWN.findings if name.startswith(("bandwidth.", "nccl-tests.")))
NODES = [Node(f"worker-{at:03d}", (f"i-0123456789abcdef{at}",), "workers", "p5.48xlarge") for at in range(4)]


def offered(name: str, *subjects: str) -> Rendered:
    kind = KNOWN.finding_kind(name)
    finding = Finding(
        id=name,
        level=Level.WARN,
        priority=kind.priority,
        title="slow",
        subjects=subjects,
        details=(),
        evidence=(),
        confidence=0.9,
        why=kind.why,
        false_alarm=kind.false_alarm,
        next_step=kind.next_step,
        reference=f"remedies/{kind.section}",
        route=kind.route,
        rule="pairs",
    )
    return Sections.load().render(finding, NODES, KNOWN)


@pytest.mark.parametrize("name", KINDS)
def test_every_command_of_a_section_can_be_offered(name: str) -> None:
    section = offered(name, "worker-001", "worker-002")
    assert section.left_out == ()
    assert all("{" not in one.command for one in section.commands)
    assert "Not this if" in section.markdown


def test_a_pair_is_repeated_on_exactly_its_two_nodes() -> None:
    [repeat] = offered("bandwidth.repeat-pair", "worker-001", "worker-003").commands
    assert "--nodelist=worker-[001,003]" in repeat.command
    assert "nothing else runs" in repeat.preconditions.lower()


def test_a_slow_node_is_looked_at_then_drained_then_rebooted_and_replaced_last() -> None:
    commands = [one.command for one in offered("bandwidth.slow-node", "worker-002").commands]
    at = [
        next(i for i, one in enumerate(commands) if word in one)
        for word in ("hw_counters", "bug-report", "drain", "batch-reboot", "batch-replace")
    ]
    assert at == sorted(at)
    assert "i-0123456789abcdef2" in commands[-1]


@pytest.mark.parametrize(
    "name",
    [
        "bandwidth.slow-link",
        "bandwidth.slow-boundary",
        "bandwidth.slow-cluster",
        "bandwidth.repeat-pair",
        "bandwidth.implausible",
        "bandwidth.too-small",
    ],
)
def test_where_no_node_is_to_blame_none_is_rebooted_or_replaced(name: str) -> None:
    words = " ".join(one.command for one in offered(name, "worker-001", "worker-002").commands)
    assert not any(word in words for word in ("reboot", "replace", "drain", "cordon"))


def test_a_boundary_has_its_commands_without_a_node_too() -> None:
    section = offered("bandwidth.slow-boundary")
    assert [one.command.split()[0] for one in section.commands] == ["kubectl", "scontrol"]
