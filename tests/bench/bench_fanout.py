"""Fan-out of one command over SSH: straggler against clush (first contact) and parallel-ssh (kept connections).

Medians of paired runs, printed as ratios; below 1 is faster than the peer. One sshd answers at as many loopback addresses as
there are targets, in a network namespace of its own; every tool runs at concurrency 64 with key exchange curve25519-sha256.

- first contact: whole processes, start and imports included, against `clush -f 64`;
- kept connections: a further round in a process that has them open, against parallel-ssh's kept connections.

straggler has every command run by `sh`, whatever the login shell is. The peers are given the same (`sh -c hostname`); for
kept connections, where starting one more shell on the node is a good part of the time, the bare command is shown as well.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.real.hosts import Host, Hosts, running, why_not  # noqa: E402

COMMAND, SERVER = "hostname", "server"
"""The command, and what it answers on every target."""

BY_SH = f"sh -c {COMMAND}"
CLIENT = Path(__file__).with_name("fanout_client.py")


class Bench:
    """One sshd and what every client needs to reach it at `count` addresses."""

    def __init__(self, hosts: Hosts, count: int) -> None:
        self.hosts, self.count = hosts, count
        self.targets = f"127.0.1.[1-{count}]"
        host_key = " ".join((hosts.folder / "host_key.pub").read_text().split()[:2])
        known = hosts.folder / "known"
        known.write_text("".join(f"127.0.1.{number} {host_key}\n" for number in range(1, count + 1)))
        self.config = hosts.folder / "config"
        self.config.write_text(
            f"Host *\n User root\n IdentityFile {hosts.key}\n IdentitiesOnly yes\n UserKnownHostsFile {known}\n"
            " KexAlgorithms curve25519-sha256\n BatchMode yes\n LogLevel ERROR\n"
        )

    def client(self, kind: str, command: str = COMMAND) -> list[str]:
        words = (kind, str(self.config), str(self.hosts.key), self.targets, command, SERVER)
        return self.hosts.command(sys.executable, str(CLIENT), *words, on=SERVER)

    def first_ours(self) -> float:
        return self._whole(self.client("straggler"), f" {self.count}")

    def first_clush(self) -> float:
        ssh = f"-F {self.config}"
        words = self.hosts.command("clush", "-f", "64", "-o", ssh, "-w", self.targets, BY_SH, on=SERVER)
        return self._whole(words, f"127.0.1.{self.count}: ")

    def _whole(self, words: list[str], wanted: str) -> float:
        begun = time.perf_counter()
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT)
        seconds = time.perf_counter() - begun
        if done.returncode or wanted not in done.stdout:
            raise SystemExit(
                f"{' '.join(words)}: {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-2000:]}"
            )
        return seconds


class Kept:
    """A client process whose connections stay open between rounds."""

    def __init__(self, words: list[str], count: int) -> None:
        self._count = count
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self._answer()

    def round(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> float:
        assert self._process.stdout is not None
        words = self._process.stdout.readline().split()
        if len(words) != 2 or int(words[1]) != self._count:
            raise SystemExit(f"{self._process.args!r}: answered {words}, not {self._count} hosts")
        return float(words[0])

    def close(self) -> None:
        self._process.communicate(timeout=60)


def _round(clients: tuple[Kept, ...], turn: int) -> list[float]:
    """Seconds of each client in one round. Who starts changes: what one leaves behind on the server is felt by the next."""
    seconds = [0.0] * len(clients)
    for at in range(len(clients)):
        who = (at + turn) % len(clients)
        seconds[who] = clients[who].round()
    return seconds


def show(what: str, ours: list[float], theirs: list[float], peer: str) -> None:
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"{what:<18} {ratio:5.2f}  = straggler {statistics.median(ours):.3f} s / {peer} {statistics.median(theirs):.3f} s"
        f"  (median of {len(ours)} pairs)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="few hosts, few runs: does it still work?")
    parser.add_argument("--targets", type=int, default=128)
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    count, runs = (8, 2) if args.smoke else (args.targets, args.runs)
    if why := why_not():
        raise SystemExit(f"bench_fanout: {why}")
    server = Host(SERVER, listen="0.0.0.0", config="MaxSessions 100")
    with running([server]) as hosts:
        bench = Bench(hosts, count)
        print(f"fan-out of `{COMMAND}` to {count} targets, concurrency 64, curve25519-sha256")
        if shutil.which("clush"):
            bench.first_ours(), bench.first_clush()
            first = [(bench.first_ours(), bench.first_clush()) for _ in range(runs)]
            show("first contact", [a for a, _ in first], [b for _, b in first], "clush -f 64")
        else:
            print("first contact      not measured: clush is not installed")
        if importlib.util.find_spec("pssh"):
            ours = Kept(bench.client("straggler"), count)
            theirs = Kept(bench.client("parallel-ssh", BY_SH), count)
            bare = Kept(bench.client("parallel-ssh"), count)
            rounds = [_round((ours, theirs, bare), turn) for turn in range(runs * 3 + 1)][1:]
            show("kept connections", [a for a, _, _ in rounds], [b for _, b, _ in rounds], "parallel-ssh")
            show("  .. without sh", [a for a, _, _ in rounds], [c for _, _, c in rounds], "parallel-ssh")
            for one in (ours, theirs, bare):
                one.close()
        else:
            print("kept connections   not measured: parallel-ssh is not installed")


if __name__ == "__main__":
    main()
