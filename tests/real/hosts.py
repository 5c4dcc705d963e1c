"""Real machines to reach by SSH: sshd in network namespaces, each with its own name, mounts and tools.

Every host has its own network, UTS and mount namespace; the bridge between them lives in a namespace of its own, and so
does the client (`head`), so that not one packet crosses the machine's real network. Names are unique to a run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.support.fake_tools import FakeTools

T = TypeVar("T")
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
START_SECONDS = 20


def why_not() -> str:
    """Why this machine cannot make such hosts; empty when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if SSHD is None:
        return "needs sshd (openssh-server)"
    for tool in ("ip", "unshare", "nsenter", "ssh-keygen", "mount"):
        if shutil.which(tool) is None:
            return f"needs {tool}"
    probe = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True, text=True)
    return "" if probe.returncode == 0 else f"needs namespaces: {probe.stderr.strip()}"


@dataclass
class Host:
    """What makes one host itself.

    `tools` records programs that are seen there alone. `mounts` is shell run before sshd starts, `config` lines of its
    sshd_config; in both, and in `shell`, {home} is the folder of the host's own files.
    """

    name: str
    shell: str = "/bin/bash"
    tools: Callable[[FakeTools], None] | None = None
    mounts: str = ""
    config: str = ""
    bashrc: str = ""
    accepts: bool = True
    known: str = "yes"
    """`yes`: in known_hosts; `no`: not there; `changed`: there with another key."""
    address: str = ""
    listen: str = ""
    user: str = "root"
    alone: bool = False
    """A process table of its own: what runs on other hosts is not seen there, and all of it ends with the host."""
    keeps: tuple[Path, ...] = ()
    """Folders of this machine that the host sees as well where its own /root, /tmp and so on cover them."""


class Hosts:
    """Started hosts; `ssh_config` reaches them by name, from within the `head` namespace only."""

    def __init__(self, folder: Path, hosts: list[Host]) -> None:
        self.folder, self.hosts = folder, {host.name: host for host in hosts}
        self._prefix = f"st{os.getpid():x}{secrets.token_hex(2)}"
        self._servers: list[subprocess.Popen[bytes]] = []
        self._namespaces: list[str] = []
        self.ssh_config = folder / "ssh" / "config"
        self.known_hosts = folder / "ssh" / "known_hosts"
        self.key = folder / "ssh" / "id_ed25519"

    @property
    def head(self) -> str:
        return f"{self._prefix}head"

    @property
    def fabric(self) -> str:
        """The namespace of the bridge."""
        return f"{self._prefix}fab"

    def namespace(self, name: str) -> str:
        return f"{self._prefix}h{list(self.hosts).index(name) + 1}"

    def cable(self, name: str) -> str:
        """The bridge's end of a host's cable, or of the head's."""
        return f"v{0 if name == 'head' else list(self.hosts).index(name) + 1}"

    def start(self) -> None:
        (self.folder / "ssh").mkdir(mode=0o700)
        for name in ("ssh/id_ed25519", "host_key", "other_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.folder / name))
        fabric = self._namespace("fab")
        _run("ip", "-n", fabric, "link", "add", "br0", "type", "bridge")
        _run("ip", "-n", fabric, "link", "set", "br0", "up")
        self._plug("head", 0, "10.77.255.1")
        for number, host in enumerate(self.hosts.values(), 1):
            host.address = host.address or f"10.77.{number // 250}.{number % 250 + 1}"
            self._start_host(number, host)
        self._write_client()
        for server in self._servers:
            _until(lambda server=server: _listens(server), "sshd did not start to listen")

    def stop(self) -> None:
        """End what was started here, whatever state it is in."""
        for server in self._servers:
            with contextlib.suppress(ProcessLookupError):
                server.kill()
            server.wait()
        for name in self._namespaces:
            for pid in _pids(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for name in reversed(self._namespaces):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def inside(self, work: Callable[[], T]) -> T:
        """`work()` as if on the head node: in a thread whose network is that namespace's."""
        out: list[T] = []
        failed: list[BaseException] = []

        def enter() -> None:
            try:
                with open(f"/run/netns/{self.head}") as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0x40000000):
                        raise OSError(ctypes.get_errno(), "setns")
                out.append(work())
            except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
                failed.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return out[0]

    def command(self, *words: str, on: str = "") -> list[str]:
        """A command line that runs with the network of the head node, or of the host `on`."""
        number = list(self.hosts).index(on) + 1 if on else 0
        return ["ip", "netns", "exec", f"{self._prefix}h{number}" if on else self.head, *words]

    def scratch(self, name: str) -> list[str]:
        """What is left in the host's memory file system by straggler, once its processes had the time to end."""
        shm = Path(f"/proc/{self.server_pid(name)}/root/dev/shm")
        with contextlib.suppress(TimeoutError):
            _until(lambda: not list(shm.glob("straggler.*")), "", 5)
        return [path.name for path in shm.glob("straggler.*")]

    def server_pid(self, name: str) -> int:
        return self._servers[list(self.hosts).index(name)].pid

    def _namespace(self, name: str) -> str:
        full = self._prefix + name
        _run("ip", "netns", "add", full)
        self._namespaces.append(full)
        _run("ip", "-n", full, "link", "set", "lo", "up")
        return full

    def _plug(self, name: str, number: int, address: str) -> str:
        full, fabric = self._namespace(name), self.fabric
        _run(
            "ip",
            "link",
            "add",
            "eth0",
            "netns",
            full,
            "type",
            "veth",
            "peer",
            "name",
            f"v{number}",
            "netns",
            fabric,
        )
        _run("ip", "-n", fabric, "link", "set", f"v{number}", "master", "br0", "up")
        _run("ip", "-n", full, "addr", "add", f"{address}/16", "dev", "eth0")
        _run("ip", "-n", full, "link", "set", "eth0", "up")
        return full

    def _start_host(self, number: int, host: Host) -> None:
        namespace = self._plug(f"h{number}", number, host.address)
        home = self.folder / host.name
        for part in ("root", "bin", "op"):
            (home / part).mkdir(parents=True)
        os.chown(home / "op", 4242, 4242)
        if host.tools is not None:
            host.tools(FakeTools(home / "bin"))
        for user in ("root", "op"):
            (home / user / ".bashrc").write_text(host.bashrc)
        shell = host.shell.format(home=home)
        (home / "passwd").write_text(
            f"root:x:0:0:root:/root:{shell}\nop:x:4242:4242::/home/op:{shell}\n"
            "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
        )
        (home / "keys").write_text(self.key.with_suffix(".pub").read_text() if host.accepts else "")
        for path in (home, home / "keys", home / "bin"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (home / "sshd_config").write_text(
            f"Port 22\nListenAddress {host.listen or host.address}\nHostKey {self.folder}/host_key\nAuthorizedKeysFile {home}/keys\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
            f"UsePAM no\nUseDNS no\nPidFile none\nMaxStartups 500:30:1000\nAcceptEnv LANG\n{host.config.format(home=home)}\n"
        )
        (home / "start").write_text(
            f"set -e\nhostname {host.name}\n{_stashed(host.keeps, home)}"
            "for d in /dev/shm /run /tmp; do mount -t tmpfs -o size=64m,mode=1777 tmpfs $d; done\n"
            "mkdir -p -m 755 /run/sshd\n"
            f"{_kept(host.keeps, home)}mount --rbind {home}/root /root\n"
            f"mount -t tmpfs tmpfs /home\nmkdir /home/op\nmount --bind {home}/op /home/op\n"
            f"{_back(host.keeps, home)}"
            f"mount --bind {home}/passwd /etc/passwd\n"
            f"mount -t overlay overlay -o lowerdir={home}/bin:/usr/local/bin /usr/local/bin\n"
            f"{host.mounts.format(home=home)}\nexec {SSHD} -D -f {home}/sshd_config -E {self.folder}/{host.name}.log\n"
        )
        with (self.folder / f"{host.name}.start.log").open("wb") as log:
            server = subprocess.Popen(
                [
                    *("ip", "netns", "exec", namespace, "unshare", "--uts", "--mount"),
                    *(("--pid", "--fork", "--mount-proc", "--kill-child") if host.alone else ()),
                    *("sh", f"{home}/start"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        self._servers.append(server)

    def _write_client(self) -> None:
        key = (self.folder / "host_key.pub").read_text().split()[:2]
        other = (self.folder / "other_key.pub").read_text().split()[:2]
        lines = [
            f"{host.address} {' '.join(key if host.known == 'yes' else other)}"
            for host in self.hosts.values()
            if host.known != "no"
        ]
        self.known_hosts.write_text("\n".join(lines) + "\n")
        blocks = [
            f"Host {host.name}\n  HostName {host.address}\n  User {host.user}\n"
            for host in self.hosts.values()
        ]
        common = f"Host *\n  IdentityFile {self.key}\n  UserKnownHostsFile {self.known_hosts}\n"
        self.ssh_config.write_text("".join(blocks) + common)


def _kept(folders: tuple[Path, ...], home: Path) -> str:
    """Shell that lays what is kept of this machine's /root under the host's own, before that covers it."""
    below = [
        (one, f"{home}/root/{one.relative_to('/root')}") for one in folders if one.is_relative_to("/root")
    ]
    return "".join(f"mkdir -p {there}\nmount --bind {one} {there}\n" for one, there in below)


def _elsewhere(folders: tuple[Path, ...], home: Path) -> list[tuple[Path, str]]:
    return [(one, f"{home}/kept/{at}") for at, one in enumerate(folders) if not one.is_relative_to("/root")]


def _stashed(folders: tuple[Path, ...], home: Path) -> str:
    """Shell that puts aside what is kept of /tmp and other places, before the host's own cover them."""
    aside = _elsewhere(folders, home)
    return "".join(f"mkdir -p {there}\nmount --bind {one} {there}\n" for one, there in aside)


def _back(folders: tuple[Path, ...], home: Path) -> str:
    """Shell that puts it back where it was, on top of them."""
    aside = _elsewhere(folders, home)
    return "".join(f"mkdir -p {one}\nmount --bind {there} {one}\n" for one, there in aside)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


def _pids(namespace: str) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def _listens(server: subprocess.Popen[bytes]) -> bool:
    if server.poll() is not None:
        raise RuntimeError(f"a host ended while starting: {server.args!r}")
    try:
        lines = Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    return any(words[1].endswith(":0016") and words[3] == "0A" for words in (line.split() for line in lines))


def _until(met: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not met():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


@contextlib.contextmanager
def running(hosts: list[Host]) -> Iterator[Hosts]:
    """The hosts, for as long as the block lasts. Their files lie outside of /tmp, which every host has for itself."""
    with tempfile.TemporaryDirectory(prefix="straggler-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        started = Hosts(Path(folder), hosts)
        try:
            started.start()
            yield started
        finally:
            started.stop()
