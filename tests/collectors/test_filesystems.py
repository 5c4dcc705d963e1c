"""Every mount is asked on its own; one that hangs, is stale or speaks nonsense takes none of the others with it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.collectors import filesystems
from straggler.engine.collectors.filesystems import ASKED, SKIPPED, Filesystems
from straggler.engine.model import Status, Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import Case, cases
from tests.support.fake_tools import FakeTools
from tests.support.own_root import own_root

HEAD = "Filesystem     1024-blocks      Used Available Capacity Mounted on"
DF = r"for last; do :; done; case $last in /fsx*) exec sleep 40 ;; esac; exec /usr/bin/df "
MODES = ("dash", "/bin/busybox sh")


def reply(mounts: list[str], df: list[str], inodes: str = "/dev/a 100 7 93 7% /") -> str:
    return "\n".join(["mounts", *mounts, "df", *df, "inodes", inodes, "end"]) + "\n"


def read(text: str) -> Filesystems:
    facts = filesystems.COLLECTOR.read(text)
    assert isinstance(facts, Filesystems), facts
    return facts


def said_of(case: Case) -> list[str]:
    """The recorded lines as the snippet would label them, one mount at a time and (as with -P) unwrapped."""
    lines = re.sub(r"\n {10,}", " ", case.text).splitlines()
    errors = {one["mount"]: one["message"] for one in case.expected.get("errors", [])}
    labelled = [f"said {mount} | {line}" for mount in errors for line in lines if mount in line]
    return labelled + [
        f"said {line.split()[-1]} | {line}" for line in lines if line.split()[-1].startswith("/")
    ]


def test_sizes_recorded_in_blocks_are_read_as_a_careful_reader_does() -> None:
    [case] = [one for one in cases("df") if one.name == "wrapped-device-names"]
    facts = read(reply([], said_of(case)))
    rows = case.expected["rows"]
    assert {path: one.used_pct for path, one in facts.sizes.items()} == {
        one["mount"]: one["use_pct"] for one in rows
    }
    assert facts.troubles == {}


def test_a_stale_mount_keeps_the_words_of_df_however_they_are_quoted() -> None:
    [case] = [one for one in cases("df") if one.name == "stale-mount-quotes"]
    facts = read(reply([], said_of(case)))
    for one in case.expected["errors"]:
        assert one["message"] in facts.troubles[one["mount"]]


def test_a_row_without_a_percentage_is_neither_a_size_nor_a_trouble() -> None:
    facts = read(
        reply(["lxcfs /x fuse.lxcfs rw 0 0"], [f"said /x | {HEAD}", "said /x | lxcfs 0 0 0 - /x", "ended /x"])
    )
    assert (facts.sizes, facts.troubles, facts.silent) == ({}, {}, ())


def test_blanks_in_the_names_of_device_and_mount_do_not_move_the_columns() -> None:
    row = "said /a\\040b | my disk 1000 900 100 90% /a b"
    facts = read(reply(["my\\040disk /a\\040b ext4 rw 0 0"], [row, "ended /a\\040b"]))
    assert (facts.sizes["/a b"].used_pct, facts.silent) == (90, ())


def test_a_mount_that_was_asked_and_did_not_end_is_silent() -> None:
    facts = read(
        reply(["h:/ /fsx lustre rw 0 0", "/dev/a / xfs rw 0 0"], ["said / | /dev/a 9 1 8 12% /", "ended /"])
    )
    assert facts.silent == ("/fsx",)


@pytest.mark.parametrize(("line", "pct"), [("/dev/a 100 7 93 7% /", 7), ("none 0 0 0 - /", None)])
def test_inodes_are_a_percentage_or_not_counted(line: str, pct: int | None) -> None:
    facts = read(reply([], [], line))
    assert (facts.root_inodes_pct, facts.inodes_said) == (pct, "")


def test_inodes_that_df_would_not_say_are_kept_as_its_words() -> None:
    facts = read(reply([], [], "df: /: Permission denied"))
    assert (facts.root_inodes_pct, facts.inodes_said) == (None, "df: /: Permission denied")


@given(st.text())
def test_any_text_is_facts_or_a_reason_and_never_trips(text: str) -> None:
    filesystems.COLLECTOR.read(text)
    filesystems.COLLECTOR.read(reply([text], [text], text))


@given(st.text(min_size=1).filter(lambda one: one.strip() and not one.startswith(("said ", "ended "))))
def test_a_banner_between_the_sizes_makes_the_reply_unread(banner: str) -> None:
    assert isinstance(filesystems.COLLECTOR.read(reply([], [banner])), Unread)


def test_a_reply_cut_anywhere_is_unread() -> None:
    text = SAYS["filesystems"](SimNode("w-1", 1)).text
    assert all(isinstance(filesystems.COLLECTOR.read(text[:at]), Unread) for at in range(len(text) - 1))


@pytest.mark.parametrize("filler", [" ", "1 ", "1", "\\040"])
def test_a_hostile_flood_is_read_in_no_time(filler: str) -> None:
    begun = time.process_time()
    flood = filler * (200_000 // len(filler))
    filesystems.COLLECTOR.read(reply([f"a {flood} ext4 rw"], [f"said / | {flood}"], flood))
    assert time.process_time() - begun < 3


def test_what_the_snippet_asks_is_what_the_parser_waits_for() -> None:
    """Both lists name the same kinds and the same places, or a mount that was never asked would seem to hang."""
    for kind in (
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "overlay",
        "lustre",
        "nfs4",
        "tmpfs",
        "fuse.s3",
        "9p",
        "virtiofs",
        "f2fs",
    ):
        assert ASKED.fullmatch(kind)
        stem = kind.rstrip("4").removesuffix(".s3")
        assert (
            f"{stem}|" in filesystems.SNIPPET
            or f"{stem}*" in filesystems.SNIPPET
            or f"{stem})" in filesystems.SNIPPET
        )
    assert all(f"{place}*" in filesystems.SNIPPET for place in SKIPPED)
    assert f"besides {filesystems.WAIT}\n" in filesystems.SNIPPET


@pytest.mark.real
@pytest.mark.parametrize("shell", MODES)
def test_the_real_snippet_reads_a_small_shm_and_a_mount_with_a_blank(tmp_path: Path, shell: str) -> None:
    blank = tmp_path / "with blank"
    blank.mkdir()
    mounts = ["mount -t tmpfs -o size=64m shm /dev/shm", f'mount -t tmpfs -o size=2m t "{blank}"']
    node = own_root(tmp_path, {}, mounts, shell="/usr/bin/dash" if shell == "dash" else shell)
    block = FakeTools(tmp_path / "bin").run(filesystems.COLLECTOR, shell=node)
    assert block.status is Status.OK, (block.why, block.errors)
    facts = read(block.text)
    assert facts.sizes["/dev/shm"].kib == 64 * 1024
    assert facts.sizes[str(blank)].kib == 2 * 1024
    assert "/" in facts.sizes
    assert facts.silent == ()


@pytest.mark.real
@pytest.mark.parametrize("shell", MODES)
def test_a_mount_that_hangs_is_named_and_the_others_are_read(tmp_path: Path, shell: str) -> None:
    mounts = ["mount -t tmpfs tmpfs /mnt", "mkdir /mnt/fsx", "mount -t tmpfs lustre /mnt/fsx"]
    node = own_root(tmp_path, {}, mounts, shell="/usr/bin/dash" if shell == "dash" else shell)
    tools = FakeTools(tmp_path / "bin")
    tools.script("df", DF.replace("/fsx*", "/mnt/fsx") + '"$@"')
    block = tools.run(filesystems.COLLECTOR, shell=node)
    assert block.status is Status.OK, (block.why, block.errors)
    facts = read(block.text)
    assert facts.silent == ("/mnt/fsx",)
    assert {"/", "/mnt"} <= facts.sizes.keys()
