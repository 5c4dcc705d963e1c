"""Host lists as people write them, and as they get them wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.errors import UsageError
from straggler.engine.nodesets import MOST_HOSTS, HostSpec, fold, node_ids, parse_hosts


def names(text: str) -> list[str]:
    return node_ids(parse_hosts(text))


def test_ranges_users_and_ports_are_understood_in_the_order_written() -> None:
    specs = parse_hosts("root@node[009-011]:2222,other,me@last")
    assert specs[0] == HostSpec("node009", "root", 2222)
    assert [one.host for one in specs] == ["node009", "node010", "node011", "other", "last"]
    assert specs[3] == HostSpec("other", None, None)
    assert specs[4].user == "me"


def test_a_range_may_hold_commas_steps_and_stand_twice_in_a_name() -> None:
    assert names("n[1,3-4]") == ["n1", "n3", "n4"]
    assert names("n[1-10/4]") == ["n1", "n5", "n9"]
    assert names("r[1-2]n[1-2]") == ["r1n1", "r1n2", "r2n1", "r2n2"]


def test_an_address_of_version_6_stands_in_brackets() -> None:
    assert parse_hosts("root@[fd00::7]:22") == (HostSpec("fd00::7", "root", 22),)
    with pytest.raises(UsageError, match="in brackets"):
        parse_hosts("fd00::7")


def test_one_host_at_two_ports_is_two_nodes_with_the_port_in_their_name() -> None:
    assert names("gw:2201,gw:2202,other") == ["gw:2201", "gw:2202", "other"]
    assert names("[fd00::7]:1,[fd00::7]:2") == ["[fd00::7]:1", "[fd00::7]:2"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the host list is empty"),
        ("   ", "the host list is empty"),
        ("a,,b", "missing beside a comma"),
        ("a,a", "named twice"),
        ("a,me@a", "named twice"),
        ("a,A", "named twice"),
        ("a,a:22", "named twice"),
        ("n[1-3],n2", "'n2' is named twice"),
        ("@group", "cannot read the host file"),
        ("a,@group", "neither groups nor a file"),
        ("a!b", "is not a host"),
        ("n[1-5]&n[2-3]", "is not a host"),
        ("n[1-5]^n3", "is not a host"),
        ("a b", "is not a host"),
        ("a;reboot", "is not a host"),
        ("$(reboot)", "is not a host"),
        ("`reboot`", "is not a host"),
        ("'a'", "is not a host"),
        ("-oProxyCommand=x", "is not a host"),
        ("\x1b[31m", "is not a host"),
        ("-l@host", "is not a user name"),
        ("a b@host", "is not a user name"),
        ("host:0", "is not a port"),
        ("host:65536", "is not a port"),
        ("host:", "is not a port"),
        ("host:ssh", "is not a port"),
        ("host:٣", "is not a port"),
        ("n[3-1]", "runs backwards"),
        ("n[001-16]", "is not a range"),
        ("n[1-", "is not a host"),
        ("n[a-b]", "is not a host"),
        ("n[]", "is not a host"),
        ("n[1-3/0]", "runs backwards"),
        ("[fd00::zz]", "is not an IPv6 address"),
        ("n[1-999999999]", f"more than {MOST_HOSTS:,} hosts"),
        ("n[1-1000]m[1-1000]", f"more than {MOST_HOSTS:,} hosts"),
    ],
)
def test_what_cannot_be_a_host_list_is_one_line_that_says_what_to_do(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("[", r"\[")) as caught:
        parse_hosts(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_no_text_at_all_gives_anything_but_hosts_or_one_line(text: str) -> None:
    if text.strip().startswith("@"):
        return
    said = ""
    specs: tuple[HostSpec, ...] = ()
    try:
        specs = parse_hosts(text)
    except UsageError as error:
        said = str(error)
    assert bool(said) is not bool(specs)
    assert "\n" not in said
    assert all(one.host and not one.host.startswith("-") for one in specs)


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=30, unique=True))
def test_what_is_folded_can_be_written_back(numbers: list[int]) -> None:
    hosts = [f"node{number:04}" for number in numbers]
    assert sorted(names(fold(hosts))) == sorted(hosts)


def test_a_host_file_has_a_host_a_line_and_the_rest_of_the_line_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(
        b"\xef\xbb\xbf# by the scheduler\r\nroot@a:2222 slots=8\r\n\r\n  b max-slots=4 # rack 2\r\nn[1-2]\n"
    )
    assert names(f"@{file}") == ["a", "b", "n1", "n2"]
    assert parse_hosts(f"@{file}")[0] == HostSpec("a", "root", 2222)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the host list is empty"),
        (b"# nothing\n\n", "the host list is empty"),
        (b"a\n@other\n", "line 2: a host file cannot name another file"),
        (b"a\nb;c\n", "line 2: 'b;c' is not a host"),
        (b"a\nb\na\n", "line 3: host 'a' is named twice"),
        (b"\x7fELF\x00\x00\xff\xfe", "is not a text file"),
        (b"a\0b\n", "is not a text file"),
    ],
)
def test_a_host_file_that_is_none_is_named_with_the_line(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=says):
        parse_hosts(f"@{file}")


def test_a_missing_file_a_directory_and_no_name_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        parse_hosts(f"@{tmp_path}/none")
    with pytest.raises(UsageError, match="is a directory"):
        parse_hosts(f"@{tmp_path}")
    with pytest.raises(UsageError, match="name of the file is missing"):
        parse_hosts("@")
