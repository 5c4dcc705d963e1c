"""What went wrong on the way to a node, said in one line with the cure; never a traceback and never a library's own words alone."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shlex
import socket
from dataclasses import dataclass, field

import asyncssh

from straggler.engine.errors import TransportError
from straggler.engine.model import Status

_WORDS_KEPT = 160


@dataclass
class Way:
    """One way to a host: what was asked for, and what was learned of it while connecting."""

    host: str
    address: str
    port: int
    user: str
    shown: str = ""
    """The host key the node showed when it was not the expected one, `ssh-ed25519 SHA256:...`."""
    expected: tuple[str, ...] = ()
    """Keys known_hosts has for the name, if any."""
    locked: tuple[str, ...] = field(default=())
    """Key files that would have been tried, had their passphrase been given."""
    over: str = ""
    """The jump host or proxy command in between."""
    complaints: bytearray = field(default_factory=bytearray)
    """What the proxy command wrote to stderr."""

    @property
    def name(self) -> str:
        """As known_hosts writes it."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    @property
    def command(self) -> str:
        """The ssh command of the same way, for the operator to run."""
        port = [] if self.port == 22 else ["-p", str(self.port)]
        return shlex.join(["ssh", *port, f"{self.user}@{self.host}"])


def words(text: str) -> str:
    """Text of a node inside a sentence of ours: one short line, nothing that a terminal would act on."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _WORDS_KEPT else line[: _WORDS_KEPT - 1] + "…"


def explain(error: BaseException, way: Way) -> TransportError:
    """The TransportError for an error met while connecting over `way`."""
    if isinstance(error, TransportError):
        return error
    found = _explain(error, way)
    if way.over and found.status is Status.UNREACHABLE:
        return TransportError(found.status, f"{found.why} (through {way.over})", transient=found.transient)
    return found


def _explain(error: BaseException, way: Way) -> TransportError:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _host_key(error, way)
    if isinstance(error, asyncssh.PermissionDenied):
        return _refused(way)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return _no_common(error, way)
    lost = isinstance(error, asyncssh.ConnectionLost | ConnectionResetError | BrokenPipeError)
    if lost and way.complaints:
        said = words(way.complaints.decode("utf-8", "replace"))
        return TransportError(Status.UNREACHABLE, f"the ProxyCommand gave up: {said}")
    if lost:
        return TransportError(
            Status.UNREACHABLE,
            "the node closed the connection before login: too many at a time (sshd MaxStartups), or it is going down",
            transient=True,
        )
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        return _timed_out(way)
    if isinstance(error, socket.gaierror):
        return _unknown_name(error, way)
    if isinstance(error, asyncssh.ChannelOpenError):
        return TransportError(
            Status.UNREACHABLE,
            f"{way.over or 'the jump host'} would not pass the connection on: {words(error.reason)}",
        )
    if isinstance(error, asyncssh.DisconnectError):
        return _disconnected(error, way)
    if isinstance(error, OSError):
        return _os_error(error, way)
    if isinstance(error, ValueError):
        return TransportError(
            Status.DENIED, f"ssh config: {words(str(error))}; check it with: ssh -G {way.host}"
        )
    return TransportError(Status.UNREACHABLE, f"ssh: {words(str(error)) or type(error).__name__}")


def _host_key(error: asyncssh.HostKeyNotVerifiable, way: Way) -> TransportError:
    key = way.shown or "of a kind that could not be read"
    kind = key.split(" ", 1)[0].removeprefix("ssh-").split("-", 1)[0]
    if "revoked" in error.reason:
        return TransportError(
            Status.DENIED,
            f"HOST KEY REVOKED: known_hosts forbids the key {key} of {way.name}; do not connect",
        )
    if way.expected:
        return TransportError(
            Status.DENIED,
            f"HOST KEY CHANGED: {way.name} shows {key}, known_hosts has {', '.join(way.expected)}. Rebuilt, or somebody in "
            f"between: find out which. If it was rebuilt: ssh-keygen -R {shlex.quote(way.name)}, then {way.command}",
        )
    return TransportError(
        Status.DENIED,
        f"its host key is not known: {key}. Compare it on the node (ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub), then accept "
        f"it once with: {way.command}",
    )


def _refused(way: Way) -> TransportError:
    why = f"{way.user} was refused: no key that was offered is accepted"
    if way.locked:
        why += f"; {', '.join(way.locked)} was left out because its passphrase is missing: ssh-add it"
    else:
        why += f"; load the right key (ssh-add), name it in ssh config (IdentityFile), and try: {way.command}"
    return TransportError(Status.DENIED, why)


def _no_common(error: asyncssh.KeyExchangeFailed, way: Way) -> TransportError:
    if "host key" in error.reason:
        return TransportError(
            Status.DENIED,
            f"{way.name} has no host key of the kind known_hosts has for it; see why with: {way.command}",
        )
    return TransportError(Status.DENIED, f"no common algorithm with the node: {words(error.reason)}")


def _timed_out(way: Way) -> TransportError:
    return TransportError(
        Status.UNREACHABLE,
        f"no answer from {way.name} in time: down, hung, or a firewall or security group drops port {way.port}",
    )


def _unknown_name(error: socket.gaierror, way: Way) -> TransportError:
    again = error.errno == socket.EAI_AGAIN
    why = "the name server does not answer" if again else "no such host name"
    return TransportError(
        Status.UNREACHABLE,
        f"{why}: {way.address}; check the spelling, or give its address in ssh config (HostName)",
        transient=again,
    )


def _disconnected(error: asyncssh.DisconnectError, way: Way) -> TransportError:
    if isinstance(error, asyncssh.ProtocolNotSupported) or re.search(r"version|banner", error.reason, re.I):
        return TransportError(
            Status.UNREACHABLE, f"what answers at {way.name} is no SSH server: {words(error.reason)}"
        )
    if "Too many authentication" in error.reason:
        return TransportError(
            Status.DENIED,
            f"{way.user} was refused after too many keys: name one in ssh config (IdentityFile with IdentitiesOnly yes)",
        )
    return TransportError(
        Status.UNREACHABLE, f"the node ended the connection: {words(error.reason)}", transient=True
    )


def _os_error(error: OSError, way: Way) -> TransportError:
    if error.errno == errno.ECONNREFUSED:
        return TransportError(
            Status.UNREACHABLE,
            f"connection refused by {way.name}: no SSH server listens on port {way.port}, or a firewall rejects it",
        )
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return TransportError(
            Status.UNREACHABLE, f"no route to {way.name}: down, wrong address, or not in this network"
        )
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return TransportError(
            Status.UNREACHABLE, "this machine has no file descriptors left; raise ulimit -n", transient=True
        )
    if error.errno == errno.ETIMEDOUT:
        return _timed_out(way)
    text = os.strerror(error.errno) if error.errno else str(error)
    what = f" {error.filename}" if error.filename else ""
    return TransportError(Status.UNREACHABLE, f"cannot connect to {way.name}:{what} {words(text)}")
