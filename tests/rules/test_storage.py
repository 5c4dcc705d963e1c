"""The root volume, /dev/shm and every mount: full, small, stale, hung and read-only are told apart, and none passes unread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.judge import Report
from straggler.engine.model import Level, Vantage
from straggler.engine.rules import disk, mounts, shm
from straggler.engine.rules.base import Rule
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import cases
from tests.support.judging import ids, judged, only

GIB = 1024**2


def reply(
    *rows: tuple[str, str, int, int],
    said: tuple[str, ...] = (),
    hangs: tuple[str, ...] = (),
    options: str = "rw",
    inodes: str = "/dev/a 100 7 93 7% /",
) -> str:
    """`rows`: path, kind, KiB, percent used. `hangs`: paths whose df does not answer."""
    table = [f"dev {path} {kind} {options} 0 0" for path, kind, _, _ in rows]
    answers = [
        f"said {path} | dev {kib} {kib * pct // 100} 0 {pct}% {path}\nended {path}"
        for path, _, kib, pct in rows
        if path not in hangs and not any(one.split()[1] == path for one in said)
    ]
    told = [line for one in said for line in (one, f"ended {one.split()[1]}")]
    return "\n".join(["mounts", *table, "df", *answers, *told, "inodes", inodes, "end"]) + "\n"


def root(pct: int, inodes: str = "/dev/a 100 7 93 7% /") -> str:
    return reply(("/", "xfs", 100 * GIB, pct), inodes=inodes)


def say(
    rule: Rule, text: str, kind: str | None = "p5.48xlarge", vantage: Vantage = Vantage.HOST_ROOT
) -> Report:
    return judged(rule, {"filesystems": text}, instance_type=kind, vantage=vantage)


def levels(report: Report) -> set[tuple[str, Level]]:
    return {(one.id, one.level) for one in report.findings}


@pytest.mark.parametrize(
    ("pct", "finding", "level"),
    [
        (79, "disk.root", Level.PASS),
        (80, "disk.filling", Level.WARN),
        (89, "disk.filling", Level.WARN),
        (90, "disk.nearly-full", Level.FAIL),
        (99, "disk.nearly-full", Level.FAIL),
        (100, "disk.full", Level.FAIL),
    ],
)
def test_the_root_volume_is_judged_by_how_full_it_is(pct: int, finding: str, level: Level) -> None:
    assert levels(say(disk.RULE, root(pct))) == {(finding, level)}


def test_a_root_volume_without_free_inodes_fails_though_it_has_room() -> None:
    assert ("disk.inodes", Level.FAIL) in levels(say(disk.RULE, root(20, "/dev/a 100 95 5 95% /")))


def test_inodes_that_were_not_read_are_unknown_and_a_file_system_that_counts_none_is_not() -> None:
    assert ("disk.inodes", Level.UNKNOWN) in levels(say(disk.RULE, root(20, "df: /: Permission denied")))
    assert levels(say(disk.RULE, root(20, "dev 0 0 0 - /"))) == {("disk.root", Level.PASS)}


@pytest.mark.parametrize(
    "text",
    [
        reply(("/", "xfs", GIB, 1), hangs=("/",)),
        reply(("/", "xfs", GIB, 1), said=("said / | df: /: Input/output error",)),
        reply(("/data", "xfs", GIB, 1)),
    ],
    ids=["hangs", "df-says-an-error", "not-listed"],
)
def test_a_root_volume_without_a_size_is_unknown(text: str) -> None:
    assert levels(say(disk.RULE, text)) == {("disk.root", Level.UNKNOWN)}


@pytest.mark.parametrize(
    ("kib", "kind", "vantage", "finding", "level"),
    [
        (1000 * GIB, "p5.48xlarge", Vantage.HOST_ROOT, "shm.size", Level.PASS),
        (15 * GIB, "p5.48xlarge", Vantage.HOST_ROOT, "shm.host-small", Level.WARN),
        (15 * GIB, None, Vantage.HOST_ROOT, "shm.host-small", Level.WARN),
        (15 * GIB, "m5.xlarge", Vantage.HOST_ROOT, "shm.size", Level.INFO),
        (64 * 1024, "p5.48xlarge", Vantage.HOST_ROOT, "shm.small", Level.WARN),
        (64 * 1024, "p5.48xlarge", Vantage.CONTAINER, "shm.small", Level.FAIL),
        (15 * GIB, "p5.48xlarge", Vantage.CONTAINER, "shm.size", Level.PASS),
    ],
)
def test_shared_memory_is_judged_by_where_it_is(
    kib: int, kind: str | None, vantage: Vantage, finding: str, level: Level
) -> None:
    text = reply(("/dev/shm", "tmpfs", kib, 1))
    assert levels(say(shm.RULE, text, kind, vantage)) == {(finding, level)}


def test_a_controller_of_unknown_type_is_known_by_its_empty_pci_bus() -> None:
    replies = {
        "filesystems": reply(("/dev/shm", "tmpfs", GIB, 1)),
        "identity": "hostname h\nkernel 6\nuptime 1\nclock 1\npci_gpus 0\npci_neuron 0\nend\n",
    }
    assert only(judged(shm.RULE, replies, instance_type=None), "shm.size").level is Level.INFO


@pytest.mark.parametrize(
    ("text", "finding", "level"),
    [
        (reply(("/", "xfs", GIB, 1)), "shm.absent", Level.FAIL),
        (reply(("/dev/shm", "ext4", 100 * GIB, 1)), "shm.not-memory", Level.WARN),
        (reply(("/dev/shm", "tmpfs", 100 * GIB, 100)), "shm.no-space", Level.FAIL),
        (reply(("/dev/shm", "tmpfs", GIB, 1), hangs=("/dev/shm",)), "shm.size", Level.UNKNOWN),
    ],
    ids=["absent", "on-disk", "full", "no-answer"],
)
def test_shared_memory_that_is_not_there_or_not_read(text: str, finding: str, level: Level) -> None:
    assert levels(say(shm.RULE, text)) == {(finding, level)}


FSX = ("/fsx", "lustre", 1000 * GIB, 50)


@pytest.mark.parametrize(
    ("text", "finding", "level"),
    [
        (reply(FSX), "mount.ok", Level.PASS),
        (reply(FSX, hangs=("/fsx",)), "mount.hung", Level.FAIL),
        (reply(FSX, said=("said /fsx | df: /fsx: Stale file handle",)), "mount.stale", Level.FAIL),
        (reply(FSX, said=("said /fsx | df: /fsx: Permission denied",)), "mount.ok", Level.UNKNOWN),
        (reply(FSX, said=("ended /fsx",)), "mount.ok", Level.UNKNOWN),
        (reply(("/d", "ext4", GIB, 1), options="ro,errors=remount-ro"), "mount.read-only", Level.FAIL),
        (reply(("/d", "ext4", GIB, 1), options="ro"), "mount.ok", Level.PASS),
    ],
    ids=["answers", "hangs", "stale", "denied", "says-nothing", "fell-to-read-only", "read-only-on-purpose"],
)
def test_a_mount_is_judged_by_its_answer(text: str, finding: str, level: Level) -> None:
    assert levels(say(mounts.RULE, text)) == {(finding, level), ("mount.list", Level.INFO)}


def test_the_hung_mount_is_named_with_its_kind() -> None:
    finding = only(say(mounts.RULE, reply(FSX, hangs=("/fsx",))), "mount.hung")
    assert "/fsx (lustre)" in finding.details[0][1]
    assert finding.values["mount"] == "/fsx"


def test_every_stale_mount_of_a_recorded_df_is_found() -> None:
    [case] = [one for one in cases("df") if one.name == "stale-mount-quotes"]
    lines = [line for line in case.text.splitlines() if line.startswith("df:")]
    wrong = tuple(
        f"said {one['mount']} | {line}" for one, line in zip(case.expected["errors"], lines, strict=True)
    )
    full = reply(("/", "ext4", 194 * GIB, 97), ("/dev/shm", "tmpfs", 560 * GIB, 1), said=wrong)
    said = {one for rule in (disk.RULE, shm.RULE, mounts.RULE) for one in ids(say(rule, full))}
    assert set(case.expected["findings"]) <= said
    assert not said & set(case.expected["not"])


def test_a_healthy_simulated_node_passes_all_three() -> None:
    text = SAYS["filesystems"](SimNode("w-1", 1)).text
    assert {one for rule in (disk.RULE, shm.RULE, mounts.RULE) for one in ids(say(rule, text))} == {
        "mount.list"
    }


@pytest.mark.parametrize("rule", [disk.RULE, shm.RULE, mounts.RULE], ids=lambda one: one.id)
@given(text=st.text())
def test_no_text_but_a_whole_list_passes(rule: Rule, text: str) -> None:
    assert Level.PASS not in {one.level for one in say(rule, text).findings}
