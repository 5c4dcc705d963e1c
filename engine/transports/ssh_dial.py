"""From a host as it was asked for to an authenticated connection: ssh config, name, TCP or jump host, host key, login."""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncssh

from straggler.engine.compat import timeout
from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.nodesets import HostSpec
from straggler.engine.transports.ssh_config import expand_path
from straggler.engine.transports.ssh_errors import Way, explain
from straggler.engine.transports.ssh_keys import DEFAULT_KEYS, KeyRing, KnownHosts, describe
from straggler.engine.transports.ssh_proxy import Proxies
from straggler.engine.transports.ssh_wire import Wire

CONNECT_SECONDS = 12
"""From the first packet to the end of login, unless ConnectTimeout in ssh config says less or (up to 18 s) more."""

MOST_SECONDS = 18

RESOLVERS = 16
LAST_WORDS_SECONDS = 1.0

FAST = {
    "kex_algs": ("curve25519-sha256", "curve25519-sha256@libssh.org"),
    "encryption_algs": ("aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com"),
}
"""Put in front of asyncssh's own defaults: about half the CPU time of a login, without giving up any other algorithm."""


class Dialer:
    """Opens connections; knows the keys, the known hosts and the connections to jump hosts, each read or made once."""

    def __init__(self, files: Sequence[Path], ring: KeyRing, *, slow_config: bool = False) -> None:
        """`slow_config`: reading the config may start a program (Match exec), so it is done off the event loop."""
        self._files, self._ring, self._slow = [str(path) for path in files], ring, slow_config
        self._known = KnownHosts()
        self._jumps: dict[HostSpec, asyncio.Task[asyncssh.SSHClientConnection]] = {}
        self._resolvers: ThreadPoolExecutor | None = None
        self._proxies = Proxies()
        self._me = getpass.getuser()

    def way(self, spec: HostSpec) -> Way:
        return Way(spec.host, spec.host, spec.port or 22, spec.user or self._me)

    async def open(self, spec: HostSpec, via: tuple[HostSpec, ...] = ()) -> asyncssh.SSHClientConnection:
        """Raises TransportError, whatever went wrong."""
        way = self.way(spec)
        try:
            config = await self._config(spec)
            way = self._way(spec, config)
            async with timeout(_seconds(config)):
                return await self._connect(spec, config, way, via)
        except (asyncssh.Error, OSError, ValueError, asyncio.TimeoutError, TimeoutError) as error:
            raise explain(error, way) from error

    async def close(self) -> None:
        """End the connections to jump hosts."""
        jumps, self._jumps = list(self._jumps.values()), {}
        for task in jumps:
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().close()
            else:
                task.cancel()
        await self._proxies.close()
        if self._resolvers is not None:
            self._resolvers.shutdown(wait=False, cancel_futures=True)
            self._resolvers = None

    async def _config(self, spec: HostSpec) -> asyncssh.SSHClientConnectionOptions:
        """What the config files say of this host; no key is loaded here."""

        def read() -> asyncssh.SSHClientConnectionOptions:
            return asyncssh.SSHClientConnectionOptions(config=self._files, **_asked(spec), **_PLAIN)

        return await asyncio.to_thread(read) if self._slow else read()

    def _way(self, spec: HostSpec, config: asyncssh.SSHClientConnectionOptions) -> Way:
        over = str(config.tunnel or "") or (" ".join(config.proxy_command or ())[:80])
        locked = [
            str(path)
            for path in self._ring.locked
            if path in self._paths(config) and not self._ring.in_agent(path)
        ]
        return Way(spec.host, config.host, config.port, config.username, over=over, locked=tuple(locked))

    def _paths(self, config: asyncssh.SSHClientConnectionOptions) -> list[Path]:
        named = config.config.get("IdentityFile")
        if isinstance(named, list) and named:
            return [expand_path(one, config.host, config.username) for one in named]
        return [path.expanduser() for path in DEFAULT_KEYS]

    async def _connect(
        self, spec: HostSpec, config: asyncssh.SSHClientConnectionOptions, way: Way, via: tuple[HostSpec, ...]
    ) -> asyncssh.SSHClientConnection:
        known = self._known.of(_known_files(config))
        alias = config.host_key_alias or config.host

        class Client(asyncssh.SSHClient):
            """Learns what key the node showed when it is not one we know; never accepts it."""

            def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
                way.shown = describe(key)
                named = known.match(alias, "", None if config.port == 22 else config.port)[0]
                way.expected = tuple(describe(one) for one in named)
                return False

        options: dict[str, Any] = {
            **_asked(spec),
            **_PLAIN,
            **self._credentials(config),
            "client_factory": Client,
            "known_hosts": lambda host, _addr, port: known.match(host, "", port),
            "config": self._files if config.config.has_match_final() else None,
            "options": config,
        }
        if not config.config.get("KexAlgorithms"):
            options["kex_algs"] = FAST["kex_algs"] + _others(config.kex_algs, FAST["kex_algs"])
        if not config.config.get("Ciphers"):
            options["encryption_algs"] = FAST["encryption_algs"] + _others(
                config.encryption_algs, FAST["encryption_algs"]
            )
        if config.tunnel:
            options["tunnel"] = await self._jump(str(config.tunnel), via)
        elif isinstance(command := config.config.get("ProxyCommand"), str):
            sock, ended = await self._proxies.start(command, way.complaints)
            options["tunnel"] = Wire(sock)
            try:
                return await asyncssh.connect(**options)
            except asyncssh.ConnectionLost:
                # Its last words say more than that it is gone.
                await asyncio.wait([ended], timeout=LAST_WORDS_SECONDS)
                raise
        elif (
            not config.proxy_command
            and not config.canonicalize_hostname
            and not config.config.has_match_final()
        ):
            options["tunnel"] = Wire(await self._dial(config))
        return await asyncssh.connect(**options)

    def _credentials(self, config: asyncssh.SSHClientConnectionOptions) -> dict[str, Any]:
        paths = self._paths(config)
        found: dict[str, Any] = {"client_keys": self._ring.usable(paths)}
        if config.config.get("IdentitiesOnly"):
            found["agent_identities"] = [
                self._ring.public[path] for path in paths if path in self._ring.public
            ]
        return found

    async def _dial(self, config: asyncssh.SSHClientConnectionOptions) -> socket.socket:
        """A connected socket; names are looked up in threads of our own, so that one dead name server holds up nobody else."""
        loop = asyncio.get_running_loop()
        if self._resolvers is None:
            self._resolvers = ThreadPoolExecutor(RESOLVERS, "resolve")
        try:
            found = socket.getaddrinfo(
                config.host, config.port, config.family, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            found = await loop.run_in_executor(
                self._resolvers,
                socket.getaddrinfo,
                config.host,
                config.port,
                config.family,
                socket.SOCK_STREAM,
            )
        last: OSError = OSError("no address")
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            sock.setblocking(False)
            try:
                if config.local_addr:
                    sock.bind(config.local_addr)
                await loop.sock_connect(sock, address)
            except OSError as error:
                sock.close()
                last = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise last

    async def _jump(self, chain: str, via: tuple[HostSpec, ...]) -> asyncssh.SSHClientConnection:
        """The last hop of `[user@]host[:port],...`; one connection per jump host serves all nodes behind it."""
        connection = None
        for hop in chain.split(","):
            spec = _hop(hop)
            if spec in via:
                raise TransportError(
                    Status.DENIED, f"ProxyJump goes round in circles at {spec.host}; mend the ssh config"
                )
            task = self._jumps.get(spec)
            if task is None or (
                task.done() and (task.cancelled() or task.exception() or task.result().is_closed())
            ):
                task = asyncio.get_running_loop().create_task(self.open(spec, (*via, spec)))
                self._jumps[spec] = task
            try:
                connection = await asyncio.shield(task)
            except TransportError as error:
                raise TransportError(
                    error.status, f"jump host {spec.host}: {error.why}", transient=error.transient
                ) from error
        if connection is None:
            raise TransportError(Status.DENIED, "ProxyJump names no host; mend the ssh config")
        return connection


def _asked(spec: HostSpec) -> dict[str, Any]:
    asked: dict[str, Any] = {"host": spec.host}
    if spec.user is not None:
        asked["username"] = spec.user
    if spec.port is not None:
        asked["port"] = spec.port
    return asked


_PLAIN: dict[str, Any] = {
    "client_keys": None,
    "known_hosts": b"",
    "agent_forwarding": False,
    "x11_forwarding": False,
    "compression_algs": ("none",),
    "preferred_auth": ("publickey",),
    "gss_host": None,
    "client_host_keysign": False,
    "pkcs11_provider": None,
    "request_pty": False,
    "env": None,
    "send_env": None,
    "encoding": None,
    "x509_trusted_certs": None,
    "x509_trusted_cert_paths": (),
    "keepalive_interval": 15,
    "keepalive_count_max": 3,
    "connect_timeout": None,
    "login_timeout": MOST_SECONDS,
}
"""What every connection does without, and how soon a dead one is noticed."""


def _seconds(config: asyncssh.SSHClientConnectionOptions) -> float:
    said = config.config.get("ConnectTimeout")
    return min(MOST_SECONDS, said) if isinstance(said, int) and said > 0 else CONNECT_SECONDS


def _known_files(config: asyncssh.SSHClientConnectionOptions) -> list[str]:
    """The config's known_hosts files. `none` is an empty list of known hosts here, never leave to accept any key."""
    user, system = config.config.get("UserKnownHostsFile"), config.config.get("GlobalKnownHostsFile")
    if user is None and system is None:
        return []
    return [*(user if isinstance(user, list) else ()), *(system if isinstance(system, list) else ())] or [
        "/dev/null"
    ]


def _others(defaults: Sequence[bytes], first: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in (one.decode() for one in defaults) if name not in first)


def _hop(text: str) -> HostSpec:
    user, _, rest = text.strip().rpartition("@")
    host, colon, port = rest.rpartition(":")
    if not colon or not port.isdigit() or host.endswith(":"):
        host, port = rest, ""
    return HostSpec(host.strip("[]"), user or None, int(port) if port else None)
