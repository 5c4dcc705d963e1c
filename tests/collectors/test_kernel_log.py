"""Kernel lines of every dress become times and texts; a log that may not be read is never a quiet one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine import kernel_lines
from straggler.engine.collectors import kernel_log
from straggler.engine.collectors.kernel_log import KernelLog
from straggler.engine.kernel_lines import Line
from straggler.engine.model import Status, Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import Case, cases
from tests.support.fake_tools import FakeTools, Said

XID = "NVRM: Xid (PCI:0000:53:00): 79, pid=1, name=python3, GPU has fallen off the bus."
BOOT_0 = ("-k", "-b", "0", "-o", "short-unix", "--no-pager", "-q")
BOOT_1 = ("-k", "-b", "-1", "-o", "short-unix", "--no-pager", "-q")


def lines_of(case: Case) -> list[Line]:
    return [Line(text) for text in case.text.splitlines()]


@pytest.mark.parametrize("case", cases("dmesg"), ids=lambda one: one.name)
def test_a_recorded_log_is_read_as_a_careful_reader_does(case: Case) -> None:
    lines = lines_of(case)
    count: dict[tuple[int, str], int] = {}
    caused: dict[str, list[str]] = {}
    for event in kernel_lines.xids(lines):
        count[event.xid, event.pci] = count.get((event.xid, event.pci), 0) + 1
        if event.cause is not None and event.pci not in caused.setdefault(str(event.cause), []):
            caused[str(event.cause)].append(event.pci)
    assert [{"xid": xid, "pci": pci, "count": n} for (xid, pci), n in count.items()] == case.expected["xids"]
    assert caused == case.expected.get("caused_by", {})
    fallen = [one.pci for one in kernel_lines.fallen(lines)]
    assert fallen == case.expected.get("fallen_off_bus_pci", [])
    sxids = dict.fromkeys((one.sxid, one.pci) for one in kernel_lines.sxids(lines))
    assert list(sxids) == [(one["sxid"], one["pci"]) for one in case.expected.get("sxids", [])]
    assert any(kernel_lines.gsp_timeouts(lines)) is ("gsp.timeout" in case.expected["findings"])
    assert any(kernel_lines.probe_failures(lines)) is ("gpu.probe-failed" in case.expected["findings"])


@pytest.mark.parametrize(
    ("text", "xid", "pci"),
    [
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00"),
        ("NVRM: Xid (PCI:00000000:53:00.0): 63, Row Remapper", 63, "0000:53:00"),
        ("NVRM: Xid (PCI:0000:48:00 GPU-I:05): 94, Contained: CE", 94, "0000:48:00"),
        ("<3>[  1.5] NVRM: Xid (PCI:0000:DC:00): 45", 45, "0000:dc:00"),
    ],
)
def test_old_and_new_forms_name_the_same_device_alike(text: str, xid: int, pci: str) -> None:
    [event] = kernel_lines.xids([Line(text)])
    assert (event.xid, event.pci) == (xid, pci)


def test_a_line_that_talks_of_an_xid_but_is_none_is_no_event() -> None:
    decoys = [
        "nvidia-nvswitch0: SXid (PCI:0000:aa:00.0): 24007, Data",
        "audit: NVRM: Xid without device: 79",
        "Xid (PCI:0000:53:00): 79",
    ]
    assert not list(kernel_lines.xids(Line(text) for text in decoys))


def read(text: str) -> KernelLog:
    facts = kernel_log.COLLECTOR.read(text)
    assert isinstance(facts, KernelLog), facts
    return facts


def test_a_message_in_ring_buffer_and_journal_is_counted_once_and_two_equal_ones_twice() -> None:
    ring = f"first [    0.000000] Linux\n[  100.000000] {XID}\n[  200.000000] {XID}\n"
    journal = f"first 1000.5 h kernel: Linux\n1100.100000 h kernel: {XID}\n".replace(
        "1000.5", "1000000000.5"
    ).replace("1100.1", "1000000100.1")
    facts = read(f"clock 1000000300 300\nfrom dmesg\n{ring}ended\nfrom journal 0\n{journal}ended\nend\n")
    assert [line.text for line in facts.lines] == [XID, XID]


def test_seconds_since_boot_become_the_nodes_time() -> None:
    facts = read(
        f"clock 2000 300\nfrom dmesg\nfirst [    0.000000] Linux\n[  100.500000] {XID}\nended\nend\n"
    )
    assert facts.boot == 1700
    assert facts.lines[0].at == 1800.5
    assert facts.since == 1700


def test_a_ring_buffer_that_has_wrapped_says_from_when_on_it_knows() -> None:
    facts = read("clock 2000 1300\nfrom dmesg\nfirst [ 1000.000000] eth0: up\nended\nend\n")
    assert facts.since == 1700


@pytest.mark.parametrize(
    "text",
    [
        "",
        "end\n",
        "clock 1 1\nend",
        "clock 1 1\nfrom dmesg\nfirst [0.0] x\nend\n",
        "clock 1 1\nhello\nend\n",
        "Last login\nclock 1 1\nfrom dmesg\nended\nend\n",
    ],
)
def test_a_reply_that_is_not_whole_is_unread(text: str) -> None:
    assert isinstance(kernel_log.COLLECTOR.read(text), Unread)


def test_an_empty_log_is_not_a_quiet_log() -> None:
    facts = kernel_log.COLLECTOR.read("clock 1 1\nfrom dmesg\nended\nfrom journal 0\nended\nend\n")
    assert isinstance(facts, Unread)
    assert "printed nothing" in facts.why


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_gives_facts_or_a_reason_never_an_exception(text: str) -> None:
    for whole in (
        text,
        f"clock 9 9\nfrom dmesg\nfirst [ 0.0] x\n{text}\nended\nend\n",
        f"clock 9 9\nfrom dmesg\n{text}\nended\nend\n",
    ):
        assert isinstance(kernel_log.COLLECTOR.read(whole), KernelLog | Unread)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_line_is_read_without_an_exception(text: str) -> None:
    lines = [
        Line(text),
        Line(f"NVRM: Xid (PCI:{text}): 79, {text}"),
        Line(f"NVRM: Xid (PCI:0000:53:00): {text}"),
    ]
    for reader in (
        kernel_lines.xids,
        kernel_lines.sxids,
        kernel_lines.fallen,
        kernel_lines.probe_failures,
        kernel_lines.gsp_timeouts,
    ):
        list(reader(lines))


RING = f"[    0.000000] Linux version 6.1\n[    5.000000] usb 1-1: new device\n[   50.000000] {XID}\n"


def test_the_ring_buffer_is_filtered_on_the_node_and_its_reach_is_kept(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    tools.tool("dmesg", {(): RING})
    block = tools.run(kernel_log.COLLECTOR, hide=["journalctl"])
    assert (block.status, block.errors) == (Status.OK, "")
    assert "usb" not in block.text
    facts = read(block.text)
    assert [line.text for line in facts.lines] == [XID]
    assert facts.since == facts.boot


def test_where_dmesg_is_refused_the_answer_is_that_root_is_needed(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    tools.tool("dmesg", {(): Said(err="dmesg: read kernel buffer failed: Operation not permitted\n", code=1)})
    facts = kernel_log.COLLECTOR.read(tools.run(kernel_log.COLLECTOR, hide=["journalctl"]).text)
    assert isinstance(facts, Unread)
    assert facts.status is Status.NEEDS_ROOT
    assert "Operation not permitted" in facts.why


def test_where_dmesg_is_refused_the_journal_is_enough_and_reaches_into_the_boot_before(
    tmp_path: Path,
) -> None:
    tools = FakeTools(tmp_path)
    tools.tool("dmesg", {(): Said(err="dmesg: read kernel buffer failed: Operation not permitted\n", code=1)})
    tools.tool(
        "journalctl",
        {
            BOOT_0: "1796080000.000000 ip-10-1-0-2 kernel: Linux version 6.1\n",
            BOOT_1: f"1796000000.000000 ip-10-1-0-2 kernel: Linux version 6.1\n1796070000.500000 ip-10-1-0-2 kernel: {XID}\n",
        },
    )
    facts = read(tools.run(kernel_log.COLLECTOR).text)
    assert [(line.text, line.at) for line in facts.lines] == [(XID, 1796070000.5)]
    assert facts.since == 1796000000.0


def test_a_node_without_either_tool_says_so(tmp_path: Path) -> None:
    block = FakeTools(tmp_path).run(kernel_log.COLLECTOR, hide=["dmesg", "journalctl"])
    assert block.status is Status.TOOL_MISSING


def test_a_storm_of_lines_keeps_the_newest_and_says_that_older_ones_are_gone(tmp_path: Path) -> None:
    storm = "[    0.000000] Linux\n" + "".join(f"[{at:5}.000000] {XID}\n" for at in range(1, 1000))
    tools = FakeTools(tmp_path)
    tools.tool("dmesg", {(): storm})
    block = tools.run(kernel_log.COLLECTOR, hide=["journalctl"])
    assert block.status is Status.OK
    facts = read(block.text)
    assert facts.sources[0].cut
    assert facts.since > facts.boot + 700
    assert facts.lines[-1].at == facts.boot + 999


def test_the_simulated_node_prints_what_the_snippet_prints(tmp_path: Path) -> None:
    """Same tools' output, same shape: every line of the simulated reply is one the real snippet makes of such a log."""
    simulated = SAYS["kernel-log"](SimNode("w-1", 1, faults=frozenset({"xid-79"}))).text
    ring, journal = (
        part.split("ended\n")[0].replace("first ", "") for part in simulated.split("\nfrom ")[1:3]
    )
    tools = FakeTools(tmp_path)
    tools.tool("dmesg", {(): ring.split("\n", 1)[1]})
    none = "Data from the specified boot (-1) is not available: No such boot ID in journal\n"
    tools.tool("journalctl", {BOOT_0: journal.split("\n", 1)[1], BOOT_1: Said(err=none, code=1)})
    real = tools.run(kernel_log.COLLECTOR).text
    assert real.split("\n")[1:] == simulated.split("\n")[1:]


def test_what_lies_between_the_boot_before_and_a_wrapped_ring_buffer_was_not_seen() -> None:
    """The boot before reaches far back; of this one, only the last minutes are there."""
    before = "from journal -1\nfirst 1795000000.000000 w kernel: Linux\nended\n"
    ring = "from dmesg\nfirst [ 9000.000000] eth0: up\nended\n"
    facts = read(f"clock 1796000000 10000\n{ring}{before}end\n")
    assert facts.since == facts.boot + 9000
    whole = read(f"clock 1796000000 10000\n{ring.replace(' 9000', '    0')}{before}end\n")
    assert whole.since == 1795000000.0


WARNED = "sudo: unable to resolve host w-1: Temporary failure in name resolution\n"


def test_a_warning_of_sudo_costs_neither_the_log_nor_its_reach(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    tools.tool("dmesg", {(): Said(RING, err=WARNED)})
    facts = read(tools.run(kernel_log.COLLECTOR, hide=["journalctl"]).text)
    assert [line.text for line in facts.lines] == [XID]
    assert facts.since == facts.boot


@pytest.mark.parametrize(
    "refusal",
    [
        "sudo: a password is required\n",
        f"{WARNED}sudo: a password is required\n",
        "Sorry, user op may not run sudo on w-1.\n",
        "Sorry, user op is not allowed to execute '/usr/bin/dmesg' as root on w-1.\n",
    ],
)
def test_where_sudo_refuses_the_answer_is_that_root_is_needed(refusal: str, tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    tools.tool("dmesg", {(): Said(err=refusal, code=1)})
    facts = kernel_log.COLLECTOR.read(tools.run(kernel_log.COLLECTOR, hide=["journalctl"]).text)
    assert isinstance(facts, Unread)
    assert facts.status is Status.NEEDS_ROOT
    assert refusal.splitlines()[-1] in facts.why
