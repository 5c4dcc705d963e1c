"""Servers that go wrong, one way each: what the operator reads, and whether it is worth another try."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.script import Script
from straggler.engine.targets.hosts import hosts_target
from straggler.engine.transports.ssh_errors import Way, explain, words

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SCRIPT = Script("n0nce", b"echo n0nce\n")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "tester")
    monkeypatch.setenv("LOGNAME", "tester")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir()
    key = asyncssh.generate_private_key("ssh-ed25519")
    (tmp_path / ".ssh" / "id_ed25519").write_bytes(key.export_private_key())
    (tmp_path / "ours.pub").write_bytes(key.export_public_key())
    (tmp_path / ".ssh" / "config").write_text("ConnectTimeout 2\n")
    return tmp_path


async def said(port: int, script: Script = SCRIPT) -> bytes:
    target = hosts_target(f"127.0.0.1:{port}")
    try:
        return b"".join([data async for data in target.transport.run(target.nodes[0], script)])
    finally:
        await target.transport.close()


async def failure(port: int) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await said(port)
    assert caught.value.why.isprintable()
    return caught.value


@asynccontextmanager
async def tcp(handler: Handler) -> AsyncIterator[int]:
    ended: list[asyncio.Event] = []

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.Event())
        try:
            await handler(reader, writer)
        finally:
            writer.close()
            ended[-1].set()

    server = await asyncio.start_server(handled, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*(one.wait() for one in ended))


@asynccontextmanager
async def ssh(
    home: Path, process: Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]]
) -> AsyncIterator[int]:
    """A real SSH server of asyncssh's own that accepts our key and is in known_hosts."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        asyncssh.SSHServer,
        "127.0.0.1",
        0,
        server_host_keys=[key],
        authorized_client_keys=str(home / "ours.pub"),
        process_factory=process,
        encoding=None,
    )
    port = server.get_port()
    known = key.export_public_key().decode().split()[:2]
    (home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {' '.join(known)}\n")
    try:
        yield port
    finally:
        server.close()
        await server.wait_closed()


async def test_an_honest_server_answers(home: Path) -> None:
    async def echo(process: asyncssh.SSHServerProcess[bytes]) -> None:
        assert process.command == "sh"
        assert process.get_terminal_type() is None
        assert dict(process.env) == {}
        process.stdout.write(await process.stdin.read())
        process.exit(0)

    async with ssh(home, echo) as port:
        assert await said(port) == b"echo n0nce\n"


async def test_a_server_that_hangs_up_at_once_is_worth_another_try() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        return

    async with tcp(hang_up) as port:
        error = await failure(port)
    assert error.transient
    assert error.status is Status.UNREACHABLE
    assert "MaxStartups" in error.why


async def test_something_that_is_no_ssh_server_is_named_so() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n" * 2000)
        await reader.read()

    async with tcp(talk) as port:
        error = await failure(port)
    assert error.status is Status.UNREACHABLE
    assert not error.transient
    assert "is no SSH server" in error.why


async def test_a_server_that_says_nothing_is_given_up_after_the_connect_timeout() -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with tcp(wait) as port:
        begun = asyncio.get_running_loop().time()
        error = await failure(port)
        assert asyncio.get_running_loop().time() - begun < 10
    assert error.status is Status.UNREACHABLE
    assert "no answer" in error.why


async def test_a_connection_lost_in_the_middle_is_worth_another_try(home: Path) -> None:
    async def die(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"n0nce and th")
        await process.stdout.drain()
        process.channel.get_connection().abort()

    async with ssh(home, die) as port:
        error = await failure(port)
    assert (error.status, error.transient) == (Status.TRUNCATED, True)
    assert "lost in the middle" in error.why


@pytest.mark.parametrize(
    ("code", "status", "transient"),
    [(127, Status.TOOL_MISSING, False), (126, Status.TOOL_MISSING, False), (1, Status.DENIED, False)],
)
async def test_a_shell_that_runs_nothing_is_quoted_in_one_harmless_line(
    home: Path, code: int, status: Status, transient: bool
) -> None:
    async def refuse(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"\x1b]0;pwned\x07go\naway \xe2\x80\xae" + b"x" * 5000)
        process.exit(code)

    async with ssh(home, refuse) as port:
        error = await failure(port)
    assert (error.status, error.transient) == (status, transient), error.why
    assert "go away" in error.why
    assert len(error.why) < 400


async def test_a_server_that_opens_no_session_is_worth_another_try(home: Path) -> None:
    class NoSessions(asyncssh.SSHServer):
        def session_requested(self) -> bool:
            return False

    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        NoSessions, "127.0.0.1", 0, server_host_keys=[key], authorized_client_keys=str(home / "ours.pub")
    )
    async with server:
        port = server.get_port()
        known = " ".join(key.export_public_key().decode().split()[:2])
        (home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {known}\n")
        error = await failure(port)
    assert error.transient
    assert "MaxSessions" in error.why


async def test_stderr_without_end_is_drained_and_does_not_hold_up_stdout(home: Path) -> None:
    async def noisy(process: asyncssh.SSHServerProcess[bytes]) -> None:
        for _ in range(200):
            process.stderr.write(b"e" * 50_000)
            await process.stderr.drain()
        process.stdout.write(b"n0nce")
        process.exit(0)

    async with ssh(home, noisy) as port:
        assert await said(port) == b"n0nce"


async def test_a_shell_that_ends_while_a_child_keeps_the_output_open_is_not_waited_for_forever(
    home: Path,
) -> None:
    async def leave(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"n0nce")
        process.channel._send_request(b"exit-status", (0).to_bytes(4, "big"))
        await asyncio.sleep(60)

    async with ssh(home, leave) as port:
        assert await asyncio.wait_for(said(port), 20) == b"n0nce"


async def test_a_broken_config_line_is_named_with_its_place(home: Path) -> None:
    (home / ".ssh" / "config").write_text("Host *\n Port many\n")
    target = hosts_target("127.0.0.1")
    with pytest.raises(TransportError, match="line 2") as caught:
        await target.transport.run(target.nodes[0], SCRIPT).__anext__()  # type: ignore[attr-defined]
    assert caught.value.status is Status.DENIED
    await target.transport.close()


def test_text_of_a_node_becomes_one_short_printable_line() -> None:
    assert words("a\n\tb\x1b[31m\x00\u202ec\r\n") == "a b [31m c"
    assert len(words("x" * 10_000)) <= 160


def test_an_error_that_is_already_explained_stays_as_it_is() -> None:
    error = TransportError(Status.DENIED, "as it is")
    assert explain(error, Way("h", "h", 22, "u")) is error


def test_an_error_nobody_foresaw_is_still_one_line() -> None:
    error = explain(asyncssh.Error(2, "odd\nthing\x1b"), Way("h", "h", 22, "u"))
    assert (error.status, error.why) == (Status.UNREACHABLE, "ssh: odd thing")
