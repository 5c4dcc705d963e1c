"""Xids are judged by NVIDIA's catalogue, by the driver's own word and by recurrence; old lines accuse nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine import knowledge
from straggler.engine.errors import KnowledgeError
from straggler.engine.judge import Report
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Level
from straggler.engine.rules import xid
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import Case, cases
from tests.support.judging import NOW, SHIPPED, WINDOW, ids, judged, only

UPTIME = 900_000
IN_SCOPE = ("xid.", "gpu.", "ecc.", "row-remap.", "nvlink.", "gsp.")
AT = UPTIME - 600
"""Seconds since boot of a line ten minutes before the reading."""


def log(*lines: str, uptime: int = UPTIME, at: float = AT) -> str:
    """A whole reply with these ring-buffer lines; a text without a stamp of its own gets `at`."""
    stamped = [line if line.startswith(("[", " ")) else f"[{at:12.6f}] {line}" for line in lines]
    body = "\n".join(["first [    0.000000] Linux version 6.1", *stamped])
    return f"clock {int(NOW)} {uptime}\nfrom dmesg\n{body}\nended\nend\n"


def xid_line(code: int, pci: str = "0000:53:00", text: str = "", at: float = AT) -> str:
    return f"[{at:12.6f}] NVRM: Xid (PCI:{pci}): {code}, pid=1, name=python3{text}"


def verdict(
    *lines: str, known: Knowledge = SHIPPED, instance_type: str = "p5.48xlarge", read_at: float = NOW
) -> Report:
    return judged(
        xid.RULE, {"kernel-log": log(*lines)}, known=known, instance_type=instance_type, read_at=read_at
    )


@pytest.mark.parametrize("case", cases("dmesg"), ids=lambda one: one.name)
def test_a_recorded_log_gives_its_findings_and_none_that_it_must_not(case: Case) -> None:
    bare = [text.split("] ", 1)[1] if text.startswith("[") else text for text in case.text.splitlines()]
    found = ids(verdict(*(line for line in bare if line)))
    assert {one for one in case.expected["findings"] if one.startswith(IN_SCOPE)} <= found
    assert not found & set(case.expected["not"])


@pytest.mark.parametrize(
    ("code", "level"),
    [
        (79, Level.FAIL),
        (48, Level.FAIL),
        (95, Level.FAIL),
        (119, Level.FAIL),
        (74, Level.FAIL),
        (145, Level.FAIL),
        (64, Level.FAIL),
        (62, Level.FAIL),
        (63, Level.WARN),
        (94, Level.WARN),
        (13, Level.INFO),
        (31, Level.INFO),
        (43, Level.INFO),
        (92, Level.INFO),
        (45, Level.INFO),
        (171, Level.WARN),
        (9999, Level.WARN),
    ],
)
def test_a_code_is_as_bad_as_the_catalogue_says(code: int, level: Level) -> None:
    assert only(verdict(xid_line(code)), f"xid.{code}").level is level


def test_a_code_outside_the_catalogue_is_reported_raw() -> None:
    found = only(verdict(xid_line(200, text=", something new")), "xid.200")
    assert "not in the catalogue" in found.title
    assert "something new" in found.evidence[0].text


def test_a_gpu_off_the_bus_is_one_finding_with_the_drivers_own_remedy() -> None:
    words = ", GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    report = verdict(
        xid_line(79),
        "NVRM: GPU 0000:53:00.0: GPU has fallen off the bus.",
        xid_line(154, text=words),
        xid_line(45),
    )
    [found] = report.findings
    assert found.id == "xid.79"
    assert set(found.also) == {"gpu.fallen-off-bus", "xid.154", "xid.45"}
    assert "Node Reboot Required" in found.details[0][1]
    assert found.values["pci"] == "0000:53:00.0"


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("None", Level.INFO),
        ("Node Reboot Required", Level.FAIL),
        ("GPU Reset Required", Level.FAIL),
        ("Drain and Reset", Level.FAIL),
        ("Drain P2P", Level.FAIL),
        ("Something New", Level.WARN),
    ],
)
def test_xid_154_is_as_bad_as_the_action_it_names(word: str, level: Level) -> None:
    line = xid_line(154, text=f", GPU recovery action changed from 0x0 (None) to 0x9 ({word})")
    assert only(verdict(line), "xid.154").level is level


def test_the_drivers_word_goes_before_the_table() -> None:
    """Xid 63 alone is a warning; where the driver asks for a reboot of the same GPU it is a failure."""
    words = ", GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    assert only(verdict(xid_line(63), xid_line(154, text=words)), "xid.63").level is Level.FAIL
    other = verdict(xid_line(63), xid_line(154, "0000:64:00", words))
    assert only(other, "xid.63").level is Level.WARN


def test_a_program_fault_that_comes_back_on_the_node_is_a_warning() -> None:
    once = verdict(xid_line(31), xid_line(31, at=AT + 1), xid_line(31, at=AT + 2))
    assert only(once, "xid.31").level is Level.INFO
    again = verdict(xid_line(31, at=AT - 3000), xid_line(31))
    assert only(again, "xid.31").level is Level.WARN
    assert "not for the first time" in only(again, "xid.31").title


def test_a_fault_before_the_window_makes_a_recurrence_and_no_accusation() -> None:
    old = xid_line(79, at=AT - 90_000)
    quiet = verdict(old)
    assert {one.level for one in quiet.findings} == {Level.INFO, Level.PASS}
    assert "Xid 79" in only(quiet, "xid.outside").details[0][1]
    both = verdict(old, xid_line(79))
    assert "not for the first time" in only(both, "xid.79").title


def test_what_a_line_names_as_its_cause_is_the_finding() -> None:
    found = only(verdict(xid_line(45, text=", Ch 1 caused by previous Xid 149")), "xid.149")
    assert found.level is Level.FAIL
    assert set(found.also) == {"nvlink.error", "xid.45", "xid.caused-by.149"}


def test_a_clock_that_is_wrong_does_not_move_a_line_out_of_the_window() -> None:
    """The node's clock runs a day ahead of the operator's; ten minutes ago stays ten minutes ago."""
    ahead = judged(
        xid.RULE, {"kernel-log": log(xid_line(79)).replace(f"clock {int(NOW)}", f"clock {int(NOW) + 86_400}")}
    )
    assert only(ahead, "xid.79").level is Level.FAIL
    assert "last 10 min ago" in only(ahead, "xid.79").details[0][1]


def test_a_line_without_a_time_is_not_explained_away() -> None:
    lines = "first [    0.0] Linux\n[899400.0] NVRM: GPU\nNVRM: Xid (PCI:0000:53:00): 79"
    text = f"clock {int(NOW)} 900000\nfrom dmesg\n{lines}\nended\nend\n"
    assert "xid.79" in ids(judged(xid.RULE, {"kernel-log": text}))


def test_a_quiet_log_passes_only_where_it_covers_the_window() -> None:
    whole = judged(xid.RULE, {"kernel-log": log()})
    assert only(whole, "xid.none").level is Level.PASS
    short = judged(xid.RULE, {"kernel-log": log(uptime=1200)})
    assert only(short, "xid.none").level is Level.UNKNOWN
    assert "first 100 min of the window are missing" in only(short, "xid.none").details[0][1]


def test_a_users_own_verdict_goes_before_the_catalogue_and_is_shown_as_theirs(tmp_path: Path) -> None:
    entry = 'name = "X"\nmeaning = "Our fleet ignores it."\naction = "{}"\nsource = "https://wiki.example.org"\ndate = 2026-11-01\n'
    (tmp_path / "xid.toml").write_text(
        "[79]\n" + entry.format("IGNORE") + "[13]\n" + entry.format("RESET_GPU")
    )
    known = knowledge.load(tmp_path)
    report = verdict(xid_line(79), xid_line(13, "0000:64:00"), known=known)
    assert only(report, "xid.79").level is Level.INFO
    assert only(report, "xid.13").level is Level.FAIL
    assert "your own xid.toml" in only(report, "xid.79").title
    assert only(report, "xid.79").reference.endswith("xid.md#note-and-go-on")


def test_a_users_verdict_with_an_unknown_action_is_refused_by_name(tmp_path: Path) -> None:
    entry = 'name = "X"\nmeaning = "x"\naction = "EXPLODE"\nsource = "https://wiki.example.org"\ndate = 2026-11-01\n'
    (tmp_path / "xid.toml").write_text("[79]\n" + entry)
    with pytest.raises(KnowledgeError, match=r"Xid 79: 'EXPLODE' is not one of .*RESET_GPU"):
        knowledge.load(tmp_path)


def test_a_generation_can_have_an_action_of_its_own(tmp_path: Path) -> None:
    entry = 'name = "X"\nmeaning = "x"\naction = "IGNORE"\nsource = "https://wiki.example.org"\ndate = 2026-11-01\n'
    (tmp_path / "xid.toml").write_text("[121]\n" + entry + '[121.by_generation]\nhopper = "RESET_GPU"\n')
    known = knowledge.load(tmp_path)
    assert only(verdict(xid_line(121), known=known), "xid.121").level is Level.FAIL


def test_every_action_of_the_catalogue_and_every_code_leads_to_a_finding() -> None:
    for code, one in SHIPPED.xids.items():
        assert SHIPPED.finding_kind(f"xid.{code}").section
        assert f"xid:{one.action}" in xid.RULE.finds
    assert {f"xid.{code}" for code in (48, 63, 64, 74, 79, 94, 95, 119, 120, 154)} <= SHIPPED.findings.keys()
    with pytest.raises(KeyError):
        SHIPPED.finding_kind("xid.seventy-nine")
    with pytest.raises(KeyError):
        SHIPPED.finding_kind("gpu.unheard-of")


def test_the_catalogue_holds_the_codes_with_a_published_action() -> None:
    assert set(SHIPPED.xids) == set(range(1, 162))


def test_the_simulated_fault_is_seen_and_the_healthy_node_passes() -> None:
    faulty = judged(
        xid.RULE, {"kernel-log": SAYS["kernel-log"](SimNode("w-1", 1, faults=frozenset({"xid-79"}))).text}
    )
    assert ids(faulty) == {"xid.79", "gpu.fallen-off-bus", "xid.154"}
    fine = judged(xid.RULE, {"kernel-log": SAYS["kernel-log"](SimNode("w-2", 2)).text})
    assert [one.level for one in fine.findings] == [Level.PASS]


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_no_text_from_a_node_passes_but_a_whole_quiet_log(text: str) -> None:
    report = judged(xid.RULE, {"kernel-log": text}, window=WINDOW)
    assert all(one.level is not Level.PASS for one in report.findings)
    judged(xid.RULE, {"kernel-log": log(xid_line(79, text=text))})
