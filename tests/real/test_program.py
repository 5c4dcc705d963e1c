"""The program itself on real hosts: `straggler check --hosts`, its report, its one-line errors and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.real.hosts import Hosts

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


@pytest.fixture
def home(fleet: Hosts, tmp_path: Path) -> Path:
    """A home whose ssh config reaches the fleet."""
    ssh = tmp_path / ".ssh"
    ssh.mkdir(mode=0o700)
    (ssh / "config").write_text(fleet.ssh_config.read_text())
    return tmp_path


def straggler(fleet: Hosts, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
    return subprocess.run(
        fleet.command(
            sys.executable, "-m", "straggler.tui", "check", "--state-dir", str(home / "state"), *words
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**env, "HOME": str(home)},
        check=False,
    )


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_faulty_gpu_is_found_on_its_host_and_on_no_other(fleet: Hosts, home: Path) -> None:
    done = straggler(
        fleet, home, "--hosts", "healthy-[1-2],faulty-gpu", "--format", "json", "--fail-on", "P0"
    )
    found = {one["id"]: one for one in report(done)["findings"] if one["level"] in ("FAIL", "WARN")}
    assert found["xid.79"]["subjects"] == ["faulty-gpu"]
    assert "fallen off the bus" in json.dumps(found["xid.79"]["evidence"])
    assert done.returncode == 3
    assert done.stderr == ""


def test_hosts_that_cannot_be_read_are_unknown_and_the_others_are_reported(fleet: Hosts, home: Path) -> None:
    done = straggler(fleet, home, "--hosts", "healthy-1,unknown,refuses", "--format", "json")
    seen = report(done)
    assert done.returncode == 0
    assert (seen["coverage"]["nodes_total"], seen["coverage"]["nodes_read"]) == (3, 1)
    reasons = json.dumps(seen["coverage"]["unknown"])
    assert "host key is not known" in reasons
    assert "root was refused" in reasons


def test_when_nothing_can_be_read_the_one_line_says_why(fleet: Hosts, home: Path) -> None:
    done = straggler(fleet, home, "--hosts", "unknown")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "host key is not known: ssh-ed25519 SHA256:" in line


def test_the_hostile_host_sends_nothing_through_to_the_terminal(fleet: Hosts, home: Path) -> None:
    done = straggler(fleet, home, "--hosts", "hostile,healthy-1")
    assert done.returncode == 0, done.stderr
    assert not [char for char in done.stdout + done.stderr if char != "\n" and not char.isprintable()]


def test_programs_that_ssh_config_starts_are_shown_before_they_are(fleet: Hosts, home: Path) -> None:
    config = home / ".ssh" / "config"
    config.write_text(f"Host healthy-1\n ProxyCommand false %h\n{config.read_text()}")
    done = straggler(fleet, home, "--hosts", "healthy-1")
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert "ProxyCommand false %h" in first
    assert "nothing could be read" in last


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        ("", "the host list is empty"),
        ("healthy-1,healthy-1", "named twice"),
        ("healthy-[1-", "is not a host"),
        ("healthy-1:99999", "is not a port"),
        ("@/nonexistent", "cannot read the host file"),
    ],
)
def test_a_wrong_host_list_is_one_line_and_exit_status_2(
    fleet: Hosts, home: Path, hosts: str, says: str
) -> None:
    done = straggler(fleet, home, "--hosts", hosts)
    [line] = done.stderr.splitlines()
    assert done.returncode == 2
    assert says in line
