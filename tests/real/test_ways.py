"""The ways to a host: kept connections, jump hosts, proxy commands, agents, passphrases, host files, hashed known hosts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from straggler.engine.model import Status
from straggler.engine.script import Script
from straggler.engine.targets.base import Target
from straggler.engine.targets.hosts import hosts_target
from tests.real.conftest import Heard, read
from tests.real.hosts import Hosts

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


def config(fleet: Hosts, folder: Path, text: str, identity: str | None = "") -> Path:
    """An ssh config for the fleet with `text` in front; `identity` None: no key is named."""
    blocks = "".join(
        f"Host {one.name}\n HostName {one.address}\n User {one.user}\n" for one in fleet.hosts.values()
    )
    key = "" if identity is None else f" IdentityFile {identity or fleet.key}\n"
    path = folder / "config"
    path.write_text(f"{text}\n{blocks}Host *\n UserKnownHostsFile {fleet.known_hosts}\n{key}")
    return path


def all_answered(heard: Heard, *names: str) -> bool:
    return {name for name in names if heard.one(name, "identity").status is Status.OK} == set(names)


def logins(fleet: Hosts, name: str) -> int:
    return (fleet.folder / f"{name}.log").read_text().count("Accepted publickey")


def lines_of(fleet: Hosts, name: str) -> list[str]:
    return (fleet.folder / f"{name}.log").read_text().splitlines()


@pytest.fixture
def no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without keys and no agent, so that only what a test names is there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_a_second_reading_uses_the_connection_of_the_first(fleet: Hosts) -> None:
    before = logins(fleet, "healthy-1")
    rounds = read(fleet, hosts_target("healthy-1", ssh_config_file=fleet.ssh_config), times=3)
    assert all(all_answered(heard, "healthy-1") for heard in rounds)
    assert logins(fleet, "healthy-1") - before == 1


def test_a_kept_connection_that_has_died_is_opened_again(fleet: Hosts) -> None:
    target = hosts_target("healthy-2", ssh_config_file=fleet.ssh_config)

    async def said() -> list[bytes]:
        words = []
        for _ in range(2):
            chunks = [
                data
                async for data in target.transport.run(
                    target.nodes[0], Script("n0nce", b"echo n0nce $PPID\n")
                )
            ]
            words.append(b"".join(chunks))
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(words[-1].split()[1]), signal.SIGKILL)
        await target.transport.close()
        return words

    first, second = fleet.inside(lambda: asyncio.run(said()))
    assert first.startswith(b"n0nce ")
    assert second.startswith(b"n0nce ")
    assert first != second


def test_many_runs_on_one_node_at_once_open_it_once(fleet: Hosts) -> None:
    target = hosts_target("healthy-1", ssh_config_file=fleet.ssh_config)
    before = logins(fleet, "healthy-1")

    async def one(number: int) -> bytes:
        body = f"echo n0nce {number}\n".encode()
        return b"".join([data async for data in target.transport.run(target.nodes[0], Script("n0nce", body))])

    async def all_at_once() -> list[bytes]:
        try:
            return await asyncio.gather(*(one(number) for number in range(6)))
        finally:
            await target.transport.close()

    assert fleet.inside(lambda: asyncio.run(all_at_once())) == [
        f"n0nce {number}\n".encode() for number in range(6)
    ]
    assert logins(fleet, "healthy-1") - before == 1


@pytest.mark.parametrize(
    ("name", "loop"),
    [
        pytest.param("ordinary", "sleep 0.1", id="an-ordinary-user-s-at-once"),
        pytest.param("healthy-1", "sleep 0.1; echo", id="root-s-with-its-next-word"),
    ],
)
def test_closing_the_stream_ends_the_script_on_the_node(fleet: Hosts, name: str, loop: str) -> None:
    """sshd passes signals on only where it separates privileges, which it does not for root: there the closed pipe ends it."""
    target = hosts_target(name, ssh_config_file=fleet.ssh_config)
    pidfile = Path(f"/proc/{fleet.server_pid(name)}/root/dev/shm/pid")

    async def start_and_leave() -> Path:
        script = Script("n0nce", f"echo $$ >/dev/shm/pid; echo n0nce; while :; do {loop}; done\n".encode())
        async with contextlib.aclosing(target.transport.run(target.nodes[0], script)) as stream:
            async for _ in stream:
                break
        process = Path(f"/proc/{int(pidfile.read_text())}")
        for _ in range(100):
            if not process.exists():
                break
            await asyncio.sleep(0.05)
        await target.transport.close()
        return process

    process = fleet.inside(lambda: asyncio.run(start_and_leave()))
    pidfile.unlink()
    assert not process.exists()


def test_a_node_that_floods_is_made_to_wait_for_a_slow_reader(fleet: Hosts) -> None:
    target = hosts_target("healthy-1", ssh_config_file=fleet.ssh_config)
    script = Script("n0nce", b"echo n0nce; head -c 20000000 /dev/zero\n")

    async def slowly() -> tuple[int, int]:
        total = largest = 0
        async for data in target.transport.run(target.nodes[0], script):
            total, largest = total + len(data), max(largest, len(data))
            await asyncio.sleep(0.002)
        await target.transport.close()
        return total, largest

    total, largest = fleet.inside(lambda: asyncio.run(slowly()))
    assert total == 20_000_006
    assert largest < 4_000_000


def test_nodes_behind_a_jump_host_share_one_connection_to_it(fleet: Hosts, tmp_path: Path) -> None:
    ours = config(fleet, tmp_path, "Host healthy-2 differs\n ProxyJump healthy-1\n")
    before = logins(fleet, "healthy-1")
    target = hosts_target("healthy-2,differs", ssh_config_file=ours)
    [heard] = read(fleet, target)
    assert all_answered(heard, "healthy-2", "differs")
    assert logins(fleet, "healthy-1") - before == 1
    assert fleet.hosts["healthy-1"].address in lines_of(fleet, "differs")[-1] + lines_of(fleet, "differs")[-2]
    assert target.starts == ()


def test_a_jump_host_that_refuses_is_named(fleet: Hosts, tmp_path: Path) -> None:
    ours = config(fleet, tmp_path, "Host healthy-2\n ProxyJump refuses\n")
    [heard] = read(fleet, hosts_target("healthy-2", ssh_config_file=ours))
    seen = heard.one("healthy-2", "identity")
    assert seen.status is Status.DENIED
    assert seen.why.startswith("jump host refuses: root was refused")


def test_jump_hosts_in_a_circle_are_refused(fleet: Hosts, tmp_path: Path) -> None:
    ours = config(
        fleet, tmp_path, "Host healthy-1\n ProxyJump healthy-2\nHost healthy-2\n ProxyJump healthy-1\n"
    )
    [heard] = read(fleet, hosts_target("healthy-1", ssh_config_file=ours))
    assert "circles" in heard.one("healthy-1", "identity").why


@pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox nc")
def test_a_proxy_command_is_listed_before_anything_starts_and_then_used(fleet: Hosts, tmp_path: Path) -> None:
    used = tmp_path / "used"
    proxy = tmp_path / "proxy"
    proxy.write_text(f'#!/bin/sh\necho x >>{used}\nexec busybox nc "$1" "$2"\n')
    proxy.chmod(0o755)
    ours = config(fleet, tmp_path, f"Host healthy-2\n ProxyCommand {proxy} %h %p\n")
    target = hosts_target("healthy-1,healthy-2", ssh_config_file=ours)
    assert [one.split(" (")[0] for one in target.starts] == [f"ProxyCommand {proxy} %h %p"]
    assert not used.exists()
    [heard] = read(fleet, target)
    assert all_answered(heard, "healthy-1", "healthy-2")
    assert used.read_text() == "x\n"


def test_a_proxy_command_is_run_by_the_shell_and_quoted_when_it_gives_up(
    fleet: Hosts, tmp_path: Path
) -> None:
    complain = "sh -c 'echo no such gateway: %h >&2; exit 1' 2>&1 1>&2 | cat >&2"
    ours = config(fleet, tmp_path, f"Host healthy-1\n ProxyCommand {complain}\n")
    [heard] = read(fleet, hosts_target("healthy-1", ssh_config_file=ours))
    why = heard.one("healthy-1", "identity").why
    assert why.startswith(f"the ProxyCommand gave up: no such gateway: {fleet.hosts['healthy-1'].address}")


def test_a_program_behind_match_exec_is_listed_and_only_run_when_connecting(
    fleet: Hosts, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    ours = config(
        fleet,
        tmp_path,
        f'Match originalhost nick exec "touch {ran}"\n HostName {fleet.hosts["healthy-1"].address}\n',
    )
    target = hosts_target("root@nick", ssh_config_file=ours)
    assert target.starts[0].startswith(f"Match exec touch {ran}")
    assert not ran.exists()
    [heard] = read(fleet, target)
    assert all_answered(heard, "nick")
    assert ran.exists()


def test_a_host_file_with_slots_comments_and_windows_line_ends_is_read(fleet: Hosts, tmp_path: Path) -> None:
    hostfile = tmp_path / "hosts"
    hostfile.write_bytes(
        b"# the good ones\r\nhealthy-1 slots=8\r\n\r\nhealthy-2 slots=8 max-slots=8 # both\r\n"
    )
    [heard] = read(fleet, hosts_target(f"@{hostfile}", ssh_config_file=fleet.ssh_config))
    assert all_answered(heard, "healthy-1", "healthy-2")


@pytest.fixture
def encrypted(fleet: Hosts, tmp_path: Path) -> Path:
    """The fleet's key under a passphrase."""
    path = tmp_path / "id_encrypted"
    shutil.copy(fleet.key, path)
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-N", "let me in", "-f", str(path)], check=True, capture_output=True
    )
    return path


@pytest.mark.usefixtures("no_keys")
def test_an_encrypted_key_is_asked_for_once_for_all_hosts(
    fleet: Hosts, tmp_path: Path, encrypted: Path
) -> None:
    asked: list[str] = []

    def ask(what: str) -> str:
        asked.append(what)
        return "let me in"

    ours = config(fleet, tmp_path, "", str(encrypted))
    target = hosts_target("healthy-1,healthy-2", ssh_config_file=ours, ask=ask)
    assert asked == [f"the key {encrypted}"]
    [heard] = read(fleet, target)
    assert all_answered(heard, "healthy-1", "healthy-2")
    assert len(asked) == 1


@pytest.mark.usefixtures("no_keys")
def test_a_key_without_its_passphrase_is_named_where_the_login_fails(
    fleet: Hosts, tmp_path: Path, encrypted: Path
) -> None:
    ours = config(fleet, tmp_path, "", str(encrypted))
    [heard] = read(fleet, hosts_target("healthy-1", ssh_config_file=ours, ask=lambda what: None))
    why = heard.one("healthy-1", "identity").why
    assert str(encrypted) in why
    assert "ssh-add" in why


@pytest.mark.usefixtures("no_keys")
def test_a_wrong_passphrase_is_asked_again_and_then_given_up(
    fleet: Hosts, tmp_path: Path, encrypted: Path
) -> None:
    asked: list[str] = []

    def ask(what: str) -> str:
        asked.append(what)
        return "wrong"

    hosts_target("healthy-1", ssh_config_file=config(fleet, tmp_path, "", str(encrypted)), ask=ask)
    assert len(asked) == 3
    assert "again" in asked[1]


@pytest.fixture
def agent(fleet: Hosts, tmp_path: Path) -> Iterator[str]:
    """An ssh-agent of our own that holds the fleet's key."""
    socket = str(tmp_path / "agent")
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL) as server:
        try:
            added = ["ssh-add", "-q", str(fleet.key)]
            for _ in range(200):
                done = subprocess.run(added, env={**os.environ, "SSH_AUTH_SOCK": socket}, capture_output=True)
                if done.returncode == 0:
                    break
            assert done.returncode == 0, done.stderr
            yield socket
        finally:
            server.kill()


@pytest.mark.usefixtures("no_keys")
def test_the_agent_logs_in_and_its_key_is_not_asked_for(
    fleet: Hosts, tmp_path: Path, encrypted: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", agent)

    def ask(what: str) -> str:
        raise AssertionError(f"asked for {what}")

    target: Target = hosts_target(
        "healthy-1", ssh_config_file=config(fleet, tmp_path, "", str(encrypted)), ask=ask
    )
    [heard] = read(fleet, target)
    assert all_answered(heard, "healthy-1")


@pytest.mark.usefixtures("no_keys")
def test_an_agent_named_in_ssh_config_is_used(fleet: Hosts, tmp_path: Path, agent: str) -> None:
    ours = config(fleet, tmp_path, f"Host *\n IdentityAgent {agent}\n", None)
    [heard] = read(fleet, hosts_target("healthy-1", ssh_config_file=ours))
    assert all_answered(heard, "healthy-1")


def test_hashed_known_hosts_are_understood(fleet: Hosts, tmp_path: Path) -> None:
    hashed = tmp_path / "known_hosts"
    shutil.copy(fleet.known_hosts, hashed)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(hashed)], check=True, capture_output=True)
    assert "10.77" not in hashed.read_text()
    ours = config(fleet, tmp_path, f"Host *\n UserKnownHostsFile {hashed}\n")
    [heard] = read(fleet, hosts_target("healthy-1,unknown", ssh_config_file=ours))
    assert all_answered(heard, "healthy-1")
    assert heard.one("unknown", "identity").status is Status.DENIED


@pytest.mark.parametrize("files", ["none", "/dev/null", "/nonexistent/known_hosts"])
def test_no_setting_of_the_known_hosts_file_lets_a_key_pass_unchecked(
    fleet: Hosts, tmp_path: Path, files: str
) -> None:
    ours = config(fleet, tmp_path, f"Host *\n StrictHostKeyChecking no\n UserKnownHostsFile {files}\n")
    [heard] = read(fleet, hosts_target("healthy-1", ssh_config_file=ours))
    assert re.match("its host key is not known: ssh-ed25519 SHA256:", heard.one("healthy-1", "identity").why)


def test_a_closed_port_and_an_address_without_a_host_are_told_apart(fleet: Hosts) -> None:
    address = fleet.hosts["healthy-1"].address
    target = hosts_target(f"{address}:2222,10.77.200.1", ssh_config_file=fleet.ssh_config)
    [heard] = read(fleet, target)
    assert "connection refused" in heard.one(address, "identity").why
    assert "no route" in heard.one("10.77.200.1", "identity").why
