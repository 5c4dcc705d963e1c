"""What the user's own config directory adds: shown as theirs, held to the bounds, and refused by name when it is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from straggler.engine import knowledge
from straggler.engine.collectors import governor
from straggler.engine.errors import KnowledgeError
from straggler.engine.judge import Facts, judge
from straggler.engine.model import Level, Node, Observation, Status, Vantage, Window
from straggler.engine.rules import governor as governor_rule
from straggler.engine.sections import Sections

LIMIT = """["{name}"]
value = {value}
unit = "{unit}"
source = "our own runbook"
date = 2026-11-01
"""

XID = """[{number}]
name = "OURS"
meaning = "Seen with our own library; harmless."
action = "{action}"
source = "our own runbook"
date = 2026-11-01
"""


def limit(config: Path, name: str = "disk.warn", value: str = "70", unit: str | None = None) -> Path:
    unit = unit or knowledge.load().thresholds["disk.warn"].unit
    (config / "thresholds.toml").write_text(LIMIT.format(name=name, value=value, unit=unit))
    return config


def test_without_a_config_directory_there_is_only_what_is_shipped(tmp_path: Path) -> None:
    assert knowledge.load(tmp_path / "absent").theirs == ()
    assert not any(one.theirs for one in Sections.load(tmp_path / "absent").by_ref.values())


def test_a_limit_of_theirs_goes_before_ours_and_is_marked(tmp_path: Path) -> None:
    known = knowledge.load(limit(tmp_path))
    assert known.number("disk.warn") == 70
    assert known.thresholds["disk.warn"].theirs
    assert known.theirs == ("threshold disk.warn",)
    assert knowledge.load().number("disk.warn") == 80, "ours stays as it was"


def test_a_limit_of_theirs_is_what_the_rules_judge_by(tmp_path: Path) -> None:
    known = knowledge.load(limit(tmp_path, "cpu.governor", '"schedutil"', "governor"))
    facts = Facts()
    facts.add(
        Observation(
            governor.COLLECTOR.id, "w-1", Vantage.HOST_ROOT, Status.OK, text="cpu0 performance\nend\n"
        )
    )
    [found] = judge([Node("w-1")], facts, [governor_rule.RULE], known, Window(0.0, 1.0)).findings
    assert (found.level, found.title) == (Level.WARN, "the CPU governor is not schedutil")


WRONG_LIMITS = {
    "beyond the bound": (("disk.warn", "10", None), r"disk\.warn = 10 is outside 50\.0\.\.99\.0"),
    "above the bound": (("disk.warn", "150", None), "outside"),
    "another unit": (("disk.warn", "70", "GiB"), "is in % used of the root volume, not in GiB"),
    "a word for a number": (("disk.warn", '"70"', None), "must be a number"),
    "a number for a word": (("cpu.governor", "1", "governor"), "must be a word"),
    "no such limit": (("disk.wrn", "70", None), "no threshold is called 'disk.wrn'"),
    "a value that is a list": (("disk.warn", "[1]", None), "thresholds.toml"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_LIMITS)
def test_a_wrong_limit_is_refused_with_file_and_reason(what: str, tmp_path: Path) -> None:
    (name, value, unit), said = WRONG_LIMITS[what]
    with pytest.raises(KnowledgeError, match=said) as caught:
        knowledge.load(limit(tmp_path, name, value, unit))
    assert str(tmp_path / "thresholds.toml") in str(caught.value)


def test_a_limit_without_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thresholds.toml").write_text('["disk.warn"]\nvalue = 70\nunit = "x"\ndate = 2026-11-01\n')
    with pytest.raises(KnowledgeError, match="source"):
        knowledge.load(tmp_path)


def test_an_xid_verdict_of_theirs_goes_before_nvidias(tmp_path: Path) -> None:
    (tmp_path / "xid.toml").write_text(XID.format(number=79, action="IGNORE"))
    known = knowledge.load(tmp_path)
    assert known.xids[79].theirs
    assert known.theirs == ("Xid 79",)
    assert known.finding_kind("xid.79") == known.findings["xid:IGNORE"]
    assert knowledge.load().finding_kind("xid.79") == known.findings["xid.79"]


def test_an_xid_the_catalogue_lacks_can_be_added(tmp_path: Path) -> None:
    (tmp_path / "xid.toml").write_text(XID.format(number=999, action="RESTART_APP"))
    assert knowledge.load(tmp_path).finding_kind("xid.999").section == "xid.md#restart-the-program"


@pytest.mark.parametrize(
    ("number", "action", "said"),
    [("79", "SHRUG", "'SHRUG' is not one of"), ("x79", "IGNORE", "not an Xid number")],
)
def test_a_wrong_xid_is_refused(number: str, action: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "xid.toml").write_text(XID.format(number=number, action=action))
    with pytest.raises(KnowledgeError, match=said):
        knowledge.load(tmp_path)


def test_a_section_of_theirs_replaces_ours_of_that_anchor_and_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "remedies").mkdir()
    (tmp_path / "remedies" / "cpu.md").write_text("## CPU governor\nAsk Ada.\n\n## Our own\nText.\n")
    sections = Sections.load(tmp_path)
    assert sections.get("remedies/cpu.md#cpu-governor").body == "Ask Ada."
    assert sections.get("remedies/cpu.md#cpu-governor").theirs
    assert sections.get("cpu.md#our-own").theirs
    assert not sections.get("cpu.md#cpu-time-is-stolen").theirs
    assert "Ask Ada." not in Sections.load().get("cpu.md#cpu-governor").body


def test_an_unreadable_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "xid.toml").mkdir()
    with pytest.raises(KnowledgeError, match="make it readable or move it away"):
        knowledge.load(tmp_path)


@contextmanager
def closed(directory: Path) -> Iterator[None]:
    """The directory is nobody's to read; the superuser, whom no mode keeps out, becomes somebody else for the time."""
    directory.mkdir(exist_ok=True)
    mode, user = directory.stat().st_mode, os.geteuid()
    directory.chmod(0)
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        os.seteuid(user)
        directory.chmod(mode)


def test_a_config_directory_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    said = "make it readable or move it away"
    with closed(tmp_path / "config"), pytest.raises(KnowledgeError, match=said):
        knowledge.load(tmp_path / "config")


def test_remedies_that_cannot_be_read_are_not_taken_for_none(tmp_path: Path) -> None:
    with closed(tmp_path / "remedies"), pytest.raises(KnowledgeError, match="remedies"):
        Sections.load(tmp_path)


def test_a_file_where_the_config_directory_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    with pytest.raises(KnowledgeError, match="Not a directory"):
        knowledge.load(tmp_path / "config")


def test_a_pipe_in_place_of_a_file_is_refused_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "xid.toml")
    with pytest.raises(KnowledgeError, match="neither a file nor a directory"):
        knowledge.load(tmp_path)
