"""What straggler makes of real machines that misbehave: UNKNOWN for exactly what they did not answer, and everything else."""

from __future__ import annotations

import re

import pytest

from straggler.engine.collectors import BY_ID, COLLECTORS
from straggler.engine.model import Status, Vantage
from tests.real.conftest import Heard
from tests.real.fleet import FLEET, OTHER_KERNEL
from tests.real.hosts import Hosts

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

SILENT = {"refuses", "unknown", "changed", "nologin", "shell-less"}
SPEAKING = [host.name for host in FLEET if host.name not in SILENT]


def test_every_collector_has_exactly_one_observation_from_every_host(heard: Heard) -> None:
    asked = {(host.name, one.id) for host in FLEET for one in COLLECTORS}
    assert set(heard.seen) == asked
    assert all(len(one) == 1 for one in heard.seen.values())
    assert set(heard.ended) == {host.name for host in FLEET}


@pytest.mark.parametrize("name", ["healthy-1", "healthy-2", "differs"])
def test_a_healthy_host_answers_who_it_is_by_its_own_name(heard: Heard, name: str) -> None:
    seen = heard.one(name, "identity")
    assert (seen.status, seen.vantage, heard.ended[name]) == (Status.OK, Vantage.HOST_ROOT, "")
    assert f"hostname {name}\n" in seen.text


@pytest.mark.parametrize("name", SPEAKING)
def test_a_host_in_trouble_still_answers_what_it_can(heard: Heard, name: str) -> None:
    """The CPU governors need no program at all, so every host on which the script runs can say them."""
    seen = heard.one(name, "governor")
    assert (seen.status, seen.why) == (Status.OK, "")
    assert seen.text.startswith("cpu0 ")


def test_a_tool_that_hangs_is_timed_out_and_nothing_else_is(heard: Heard) -> None:
    assert heard.one("slow", "identity").status is Status.TIMED_OUT
    assert {seen.status for name, seen in heard.of("slow").items() if name != "identity"}.isdisjoint(
        {Status.TIMED_OUT, Status.TRUNCATED, Status.ABANDONED}
    )
    assert heard.ended["slow"] == ""


def test_a_child_that_ignores_signals_and_keeps_its_output_open_costs_only_its_own_answer(
    heard: Heard,
) -> None:
    assert heard.one("clings", "identity").status in (Status.TIMED_OUT, Status.ABANDONED)
    assert heard.ended["clings"] == ""


def test_a_session_killed_in_the_middle_keeps_what_had_come(heard: Heard) -> None:
    lost = heard.one("dies", "identity")
    assert lost.status is Status.TRUNCATED
    assert "lost" in lost.why or "ended" in lost.why
    assert heard.one("dies", "governor").status is Status.OK


def test_a_refused_login_says_who_was_refused_and_what_to_do(heard: Heard) -> None:
    for seen in heard.of("refuses").values():
        assert seen.status is Status.DENIED
        assert "root was refused" in seen.why
        assert "ssh-add" in seen.why


def test_an_unknown_host_key_is_refused_with_its_fingerprint_and_the_way_to_accept_it(heard: Heard) -> None:
    for seen in heard.of("unknown").values():
        assert seen.status is Status.DENIED
        assert re.search(r"host key is not known: ssh-ed25519 SHA256:[A-Za-z0-9+/]{43}\.", seen.why)
        assert "ssh root@unknown" in seen.why


def test_a_changed_host_key_is_told_apart_from_an_unknown_one(heard: Heard) -> None:
    [why] = {seen.why for seen in heard.of("changed").values()}
    assert why.startswith("HOST KEY CHANGED")
    assert len(set(re.findall(r"SHA256:[A-Za-z0-9+/]{43}", why))) == 2


def test_a_login_shell_that_only_prints_a_message_is_named_with_that_message(heard: Heard) -> None:
    [why] = {seen.why for seen in heard.of("nologin").values()}
    assert "login shell did not run the script" in why
    assert "not available" in why


def test_a_host_without_a_shell_for_the_script_says_so(heard: Heard) -> None:
    [seen] = {(seen.status, seen.why.split(":")[0]) for seen in heard.of("shell-less").values()}
    assert seen == (Status.TOOL_MISSING, "the node has no sh that could run the script")


def test_hostile_output_is_bounded_and_fools_nobody(heard: Heard) -> None:
    """The forged `done` must not end the reply, and fifty megabytes must not be kept."""
    seen = heard.one("hostile", "identity")
    assert seen.status is Status.TRUNCATED
    assert len(seen.text) <= 256 * 1024 * 4
    assert "noise" not in seen.text
    assert "@@straggler 0123456789abcdef done" in heard.noise["hostile"]


def test_no_reason_carries_anything_a_terminal_would_act_on(heard: Heard) -> None:
    for [seen] in heard.seen.values():
        assert seen.why.isprintable()


def test_an_ordinary_user_is_seen_as_one(heard: Heard) -> None:
    assert {seen.vantage for seen in heard.of("ordinary").values()} == {Vantage.HOST_USER}
    assert Status.NEEDS_ROOT not in {seen.status for seen in heard.of("healthy-1").values()}


def test_a_full_disk_and_a_full_memory_file_system_lose_no_answer(heard: Heard) -> None:
    assert {
        name: seen.status for name, seen in heard.of("full").items() if seen.status is Status.TRUNCATED
    } == {}
    assert heard.one("full", "identity").status is Status.OK


def test_a_host_without_bash_answers_like_one_with_it(heard: Heard) -> None:
    plain, reference = heard.of("busybox"), heard.of("healthy-1")
    assert {name: seen.status for name, seen in plain.items()} == {
        name: seen.status for name, seen in reference.items()
    }


def test_the_host_with_another_kernel_differs_from_its_peers(heard: Heard) -> None:
    collector = BY_ID["identity"]
    kernels = {}
    for name in ("healthy-1", "healthy-2", "differs"):
        facts = collector.read(heard.one(name, "identity").text)
        assert collector.fields is not None
        kernels[name] = collector.fields(facts)["kernel"]
    assert kernels["differs"] == OTHER_KERNEL
    assert kernels["healthy-1"] == kernels["healthy-2"] != OTHER_KERNEL


def test_the_whole_fleet_is_read_within_the_longest_watchdog(heard: Heard) -> None:
    slowest = max(one.seconds for one in COLLECTORS)
    assert heard.seconds < slowest + 20


def test_nothing_is_left_on_the_hosts(fleet: Hosts, heard: Heard) -> None:
    """Scratch directories are gone once the script has ended, also after its session was killed."""
    left = {
        name: fleet.scratch(name) for name in ("healthy-1", "slow", "dies", "hostile", "clings", "ordinary")
    }
    assert not any(left.values()), left
