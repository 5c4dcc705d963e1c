"""Keys of both sides: the operator's, opened once and before any full screen, and those the hosts are known by."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

Ask = Callable[[str], "str | None"]
"""Gets what the passphrase is for; gives it, or None where there is nobody to ask."""

TRIES = 3
AGENT_SECONDS = 5

DEFAULT_KEYS = tuple(
    Path("~/.ssh", name)
    for name in ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk", "id_dsa")
)
KNOWN_HOSTS = (
    Path("~/.ssh/known_hosts"),
    Path("~/.ssh/known_hosts2"),
    Path("/etc/ssh/ssh_known_hosts"),
    Path("/etc/ssh/ssh_known_hosts2"),
)

LoadedKey = asyncssh.SSHKey | tuple[asyncssh.SSHKey, str]
"""A private key, or one with the path of its certificate."""


@dataclass
class KeyRing:
    """Private keys by path. A key is read once for all hosts; `locked` ones are encrypted and stay closed."""

    keys: dict[Path, LoadedKey] = field(default_factory=dict)
    public: dict[Path, bytes] = field(default_factory=dict)
    locked: dict[Path, bytes] = field(default_factory=dict)
    agent: frozenset[bytes] = frozenset()
    _tried: set[Path] = field(default_factory=set)

    def load(self, path: Path) -> None:
        """Read the key at `path` if it was not read before; a missing or foreign file is no key, as for ssh."""
        if path in self._tried:
            return
        self._tried.add(path)
        try:
            data = path.read_bytes()
        except OSError:
            return
        public = _public_of(path)
        if public is not None:
            self.public[path] = public
        try:
            self._keep(path, asyncssh.import_private_key(data))
        except asyncssh.KeyImportError as error:
            if "assphrase" in str(error):
                self.locked[path] = data
        except asyncssh.KeyEncryptionError:
            self.locked[path] = data

    def open(self, path: Path, ask: Ask) -> None:
        """Ask for the passphrase of a locked key, at most three times."""
        for attempt in range(TRIES):
            said = ask(f"the key {path}" + (" (that was not it; again)" if attempt else ""))
            if not said:
                return
            try:
                self._keep(path, asyncssh.import_private_key(self.locked[path], said))
            except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
                continue
            del self.locked[path]
            return

    def in_agent(self, path: Path) -> bool:
        return self.public.get(path) in self.agent

    def usable(self, paths: Iterable[Path]) -> list[LoadedKey]:
        return [self.keys[path] for path in paths if path in self.keys]

    def _keep(self, path: Path, key: asyncssh.SSHKey) -> None:
        certificate = path.with_name(path.name + "-cert.pub")
        self.keys[path] = (key, str(certificate)) if certificate.exists() else key
        self.public.setdefault(path, key.public_data)


def open_keys(named: Sequence[Path], agents: Iterable[str], ask: Ask | None) -> KeyRing:
    """Read the keys ssh would try, and ask now for what is encrypted and not in an agent.

    A key that ssh config names is asked for; of the default ones only when no other key is there at all.
    """
    ring = KeyRing(agent=frozenset(key for path in dict.fromkeys(agents) for key in _agent_keys(path)))
    defaults = [path.expanduser() for path in DEFAULT_KEYS]
    for path in (*named, *defaults):
        ring.load(path)
    wanted = [path for path in named if path in ring.locked and not ring.in_agent(path)]
    if not wanted and not ring.keys and not ring.agent:
        wanted = [path for path in defaults if path in ring.locked]
    if ask is not None:
        for path in wanted:
            ring.open(path, ask)
    return ring


def _public_of(path: Path) -> bytes | None:
    """The public half: beside the key, or in it (OpenSSH's format leaves it unencrypted)."""
    for name in (f"{path}.pub", str(path)):
        with contextlib.suppress(OSError, ValueError):
            return asyncssh.read_public_key(name).public_data
    return None


def agent_sockets(configured: Iterable[str]) -> list[str]:
    """Where agents listen: the environment's, and those ssh config names."""
    named = [
        os.path.expandvars(os.path.expanduser(one))
        for one in configured
        if one not in ("none", "SSH_AUTH_SOCK")
    ]
    return [path for path in (os.environ.get("SSH_AUTH_SOCK", ""), *named) if path]


def _agent_keys(path: str) -> frozenset[bytes]:
    """Public halves an agent holds; empty when there is none or it does not answer. Runs its own loop in a thread."""

    async def listed() -> frozenset[bytes]:
        async with asyncssh.connect_agent(path) as agent:
            return frozenset(pair.public_data for pair in await agent.get_keys())

    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, asyncio.wait_for(listed(), AGENT_SECONDS)).result()
    except (OSError, ValueError, asyncio.TimeoutError, asyncssh.Error):
        return frozenset()


class KnownHosts:
    """known_hosts files, each set of files read once. A line that cannot be read is skipped, as ssh does."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, ...], asyncssh.SSHKnownHosts] = {}

    def of(self, files: Sequence[str]) -> asyncssh.SSHKnownHosts:
        key = tuple(files)
        if key not in self._read:
            known = asyncssh.SSHKnownHosts()
            for name in files or map(str, KNOWN_HOSTS):
                for line in _lines(Path(name).expanduser()):
                    with contextlib.suppress(ValueError):
                        known.load(line)
            self._read[key] = known
        return self._read[key]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def describe(key: asyncssh.SSHKey) -> str:
    """`ssh-ed25519 SHA256:...`, as ssh-keygen -l prints it."""
    return f"{key.get_algorithm()} {key.get_fingerprint()}"
