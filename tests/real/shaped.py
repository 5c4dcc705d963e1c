"""Hosts that can run MPI between them over links of a known rate: all alike, one slow host, or one slow link.

Each reaches the others by its own ssh, as on a cluster where mpirun works.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.real.hosts import Host, Hosts, running
from tests.support.fake_tools import FakeTools

PROGRAM = Path(__file__).parent.parent / "support" / "all_reduce_perf"
RATE, SLOW = "200mbit", "90mbit"
"""Slow enough that what is measured is the link and not how busy this machine is."""

BURST, QUEUE = "64kb", "50ms"
"""A queue long enough that nothing is dropped: a lost packet would cost more than the link."""


def why_not() -> str:
    """Why this machine cannot shape links and run MPI; empty when it can."""
    for tool, package in (("mpirun", "openmpi-bin"), ("tc", "iproute2"), ("flock", "util-linux")):
        if shutil.which(tool, path="/usr/bin:/bin:/usr/sbin:/sbin") is None:
            return f"needs {tool} ({package})"
    found = subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, text=True)
    return "" if found.returncode == 0 else f"needs mpi4py: {(found.stderr.splitlines() or ['?'])[-1]}"


def host(name: str, **odd: str) -> Host:
    """A host with the test's all-reduce in its PATH; it hangs there for as long as its `hang` file is there."""
    covered = ("/root", "/tmp", "/home", "/run", "/dev/shm")
    kept = {
        Path(one)
        for one in (sys.prefix, sys.base_prefix)
        if any(Path(one).is_relative_to(place) for place in covered)
    }
    top = tuple(one for one in kept if not any(other in one.parents for other in kept))
    return Host(name, alone=True, keeps=top, tools=_perf, **odd)  # type: ignore[arg-type]


def _perf(tools: FakeTools) -> None:
    (tools.home / "all_reduce.py").write_text(PROGRAM.read_text())
    tools.script(
        "all_reduce_perf",
        f"while [ -e {tools.home}/hang ]; do sleep 1; done\n"
        f'exec {sys.executable} {tools.home}/all_reduce.py "$@"',
    )


def hang(hosts: Hosts, name: str) -> Path:
    """Make the all-reduce hang on one host; remove the file to end that."""
    flag = hosts.folder / name / "bin" / "hang"
    flag.touch()
    return flag


@contextlib.contextmanager
def shaped(hosts: list[Host]) -> Iterator[Hosts]:
    """The hosts with every link at RATE, each one's ssh set up to reach the others."""
    with running(hosts) as started:
        for name in started.hosts:
            _let_in(started, name)
            slow_host(started, name, RATE)
        yield started


def slow_host(hosts: Hosts, name: str, rate: str = SLOW) -> None:
    """Both directions of this host's own link, at both of its ends."""
    subprocess.run(
        ["tc", "-n", hosts.namespace(name), "qdisc", "del", "dev", "eth0", "root"], capture_output=True
    )
    shape = ("root", "tbf", "rate", rate, "burst", BURST, "latency", QUEUE)
    _tc(hosts.namespace(name), "qdisc", "replace", "dev", "eth0", *shape)
    _tc(hosts.fabric, "qdisc", "replace", "dev", hosts.cable(name), *shape)


def slow_link(hosts: Hosts, one: str, other: str, rate: str = SLOW) -> None:
    """Only what these two send to each other; what they exchange with the others keeps RATE."""
    for name, peer in ((one, other), (other, one)):
        there = hosts.namespace(name)
        _tc(there, "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "htb", "default", "10")
        for band, pace in (("1:10", RATE), ("1:20", rate)):
            _tc(
                there, "class", "replace", "dev", "eth0", "parent", "1:", "classid", band,
                "htb", "rate", pace, "ceil", pace, "burst", BURST, "cburst", BURST,
            )  # fmt: skip
        _tc(
            there, "filter", "replace", "dev", "eth0", "parent", "1:", "protocol", "ip", "prio", "1",
            "u32", "match", "ip", "dst", f"{hosts.hosts[peer].address}/32", "flowid", "1:20",
        )  # fmt: skip


def processes(hosts: Hosts) -> list[str]:
    """What of a sweep runs on any host: `host: command line`."""
    found = []
    for name in hosts.hosts:
        listed = subprocess.run(
            ["ip", "netns", "pids", hosts.namespace(name)], capture_output=True, text=True
        )
        for pid in listed.stdout.split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                if any(one in words for one in ("mpirun", "orted", "all_reduce")):
                    found.append(f"{name}: {words}")
    return found


def _tc(namespace: str, *words: str) -> None:
    done = subprocess.run(["tc", "-n", namespace, *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tc {' '.join(words)}: {done.stderr.strip()}")


def _let_in(hosts: Hosts, name: str) -> None:
    """The fleet's key and names in this host's own ~/.ssh, for the ssh that mpirun starts."""
    folder = hosts.folder / name / "root" / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(hosts.key, folder / "id_ed25519")
    shutil.copy(hosts.known_hosts, folder / "known_hosts")
    (folder / "config").write_text(
        "".join(f"Host {one.name}\n  HostName {one.address}\n" for one in hosts.hosts.values())
    )
    for file in folder.iterdir():
        file.chmod(0o600)
