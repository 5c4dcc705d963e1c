"""`straggler sweep --run` on real hosts: a real all-reduce by mpirun between them, over links of a known rate."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from straggler.engine import knowledge
from straggler.engine.bandwidth import so_far, sweep
from straggler.engine.bandwidth.model import Kind
from tests.real import hosts as real_hosts
from tests.real import shaped
from tests.real.hosts import Hosts

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(120),
    pytest.mark.xdist_group("sweep"),  # two clusters at once would measure each other
]

NAMES = [f"n{number}" for number in range(1, 7)]
FEW = 'value = {}\nunit = "{}"\nsource = "a test: short runs"\ndate = 2026-12-01\n'
MPI = (
    *("btl=tcp,self", "btl_tcp_if_include=eth0", "oob_tcp_if_include=eth0", "mpi_yield_when_idle=1"),
    # One direction after the other: whether the two overlap is chance, and changes a run by a third.
    *("coll_tuned_use_dynamic_rules=1", "coll_tuned_allreduce_algorithm=2"),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Hosts]:
    if why := real_hosts.why_not() or shaped.why_not():
        if os.environ.get("CI") == "true":
            pytest.fail(f"sweeps cannot run here: {why}")
        pytest.skip(f"sweeps: {why}")
    with shaped.shaped([shaped.host(name) for name in NAMES]) as hosts:
        yield hosts


@pytest.fixture
def hosts(cluster: Hosts) -> Iterator[Hosts]:
    """The cluster with every link alike; nothing of a sweep may be left on it by a test."""
    for name in NAMES:
        shaped.slow_host(cluster, name, shaped.RATE)
    yield cluster
    assert shaped.processes(cluster) == []


@pytest.fixture
def home(cluster: Hosts, tmp_path: Path) -> Path:
    """A home whose ssh config reaches the hosts, and a config with short runs."""
    (tmp_path / ".ssh").mkdir(mode=0o700)
    (tmp_path / ".ssh" / "config").write_text(cluster.ssh_config.read_text())
    (tmp_path / "config").mkdir()
    known = knowledge.load().thresholds
    (tmp_path / "config" / "thresholds.toml").write_text(
        "".join(
            f'["{name}"]\n{FEW.format(value, known[name].unit)}'
            for name, value in (("sweep.iterations", 3), ("sweep.warmup", 1), ("sweep.grace", 2))
        )
    )
    return tmp_path


def command(hosts: Hosts, out: Path, *words: str, nodes: str = "n[1-6]", sizes: str = "2M:2M") -> list[str]:
    settings = [word for setting in MPI for word in ("--mca", setting)]
    return hosts.command(
        *(sys.executable, "-m", "straggler.tui", "sweep", "--hosts", nodes, "--out", str(out)),
        *("--gpus", "1", "--binary", "all_reduce_perf", "--mpirun", "mpirun", "--sizes", sizes),
        *(*settings, "--run", "--allow-cpu", *words),
    )


def environment(home: Path) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
    return {**env, "HOME": str(home), "STRAGGLER_CONFIG_DIR": str(home / "config")}


def run(argv: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(home), check=False
    )


@contextlib.contextmanager
def going(argv: list[str], hosts: Hosts, home: Path, ranks: int = 2) -> Iterator[subprocess.Popen[str]]:
    """A sweep that has got as far as ranks on several hosts."""
    program = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home),
    )
    try:
        until(lambda: program.poll() is not None or running(hosts) >= ranks, "no run began")
        assert program.poll() is None, program.communicate()
        yield program
    finally:
        program.kill()
        program.communicate()
        until(lambda: not shaped.processes(hosts), "a run did not end")


def running(hosts: Hosts) -> int:
    """Ranks of pairs that are computing."""
    return sum("all_reduce.py" in one for one in shaped.processes(hosts) if "mpirun" not in one)


def until(met: Callable[[], bool], what: str, seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def judged(out: Path) -> so_far.SoFar:
    plan = sweep.read(out)
    assert plan is not None
    return so_far.judge(plan, out, knowledge.load(), time.time())


def accused(out: Path) -> list[tuple[Kind, tuple[str, ...]]]:
    return [(one.kind, tuple(sorted(one.subjects))) for one in judged(out).attribution.verdicts]


def times(out: Path) -> dict[str, float]:
    """Pair -> µs of its all-reduce of 2 MiB."""
    found = {}
    for path in sorted(out.glob("round-0[1-9]/*__*.txt")):
        [row] = [line for line in path.read_text().splitlines() if line.split()[:1] == ["2097152"]]
        found[path.stem] = float(row.split()[5])
    return found


def test_the_slow_host_is_named(hosts: Hosts, home: Path) -> None:
    shaped.slow_host(hosts, "n3")
    out = home / "sweep"
    done = run(command(hosts, out, "--confirm", "6 nodes"), home)
    assert done.returncode == 0, done.stderr
    took = times(out)
    usual = statistics.median(took[pair] for pair in took if "n3" not in pair)
    assert min(took[pair] for pair in took if "n3" in pair) > 1.5 * usual
    assert accused(out) == [(Kind.NODE, ("n3",))], done.stdout
    assert "n3" in done.stdout
    first = (out / "round-01").glob("*.txt")
    for path in first:
        lines = path.read_text().splitlines()
        assert lines[0] == f"# straggler: nodes {path.stem.replace('__', ' ')}"
        assert lines[-1] == "# straggler: exited with status 0"
        assert sum(line.startswith("#  Rank ") for line in lines) == 2


def test_the_slow_link_is_named_and_neither_of_its_hosts(hosts: Hosts, home: Path) -> None:
    shaped.slow_link(hosts, "n2", "n5")
    out = home / "sweep"
    done = run(command(hosts, out, "--confirm", "6 nodes"), home)
    assert done.returncode == 0, done.stderr
    assert accused(out) == [(Kind.LINK, ("n2", "n5"))], done.stdout


def test_between_equal_hosts_nobody_is_accused(hosts: Hosts, home: Path) -> None:
    out = home / "sweep"
    done = run(command(hosts, out, "--confirm", "6 nodes"), home)
    assert done.returncode == 0, done.stderr
    assert accused(out) == [], done.stdout


@pytest.mark.parametrize("said", [None, "6", "yes", "5 nodes", "6 nodes please"])
def test_without_the_exact_confirmation_no_host_is_even_contacted(
    hosts: Hosts, home: Path, said: str | None
) -> None:
    logins = [(hosts.folder / f"{name}.log").read_text() for name in NAMES]
    done = run(command(hosts, home / "sweep", *(("--confirm", said) if said else ())), home)
    assert done.returncode == 2
    assert "6 nodes" in done.stderr.splitlines()[-1]
    assert [(hosts.folder / f"{name}.log").read_text() for name in NAMES] == logins


def test_the_confirmation_names_nodes_command_runs_and_duration(hosts: Hosts, home: Path) -> None:
    said = run(command(hosts, home / "sweep"), home).stderr
    assert "load on 6 nodes: n[1-6]" in said
    assert "mpirun -x STRAGGLER_LOAD --mca straggler_sweep " in said
    assert "-np 2 -host n1:1,n2:1" in said
    assert "all_reduce_perf -b 2M -e 2M" in said
    assert "at most" in said
    assert "every run is ended after" in said


@pytest.mark.parametrize(("typed", "status"), [("2 nodes\n", 0), ("y\n", 2), ("\n", 2), ("\x04", 2)])
def test_at_a_terminal_the_words_are_typed(hosts: Hosts, home: Path, typed: str, status: int) -> None:
    ours, theirs = os.openpty()
    try:
        program = subprocess.Popen(
            command(hosts, home / "sweep", "--pairs", "n5:n6", nodes="n[5-6]"),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(home),
        )
        os.write(ours, typed.encode())
        _, asked = program.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Type '2 nodes' to start, anything else to leave: " in asked
    assert program.returncode == status
    assert (home / "sweep" / "round-01" / "n5__n6.txt").exists() == (status == 0)


LOCKED = ("--confirm", "2 nodes", "--pairs", "n5:n6")
LONG = ("--confirm", "6 nodes", "--time", "100")


def test_a_second_operator_is_refused_and_told_who_sweeps_since_when(hosts: Hosts, home: Path) -> None:
    with going(command(hosts, home / "one", *LONG, sizes="64M:1G"), hosts, home):
        done = run(command(hosts, home / "two", "--confirm", "2 nodes", nodes="n[5-6]"), home)
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert "nothing was started" in line
    assert "n[5-6]: held by another sweep: " in line
    assert "(process " in line
    assert "since 20" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_all_that_was_started_on_every_host(
    hosts: Hosts, home: Path, number: signal.Signals
) -> None:
    with going(command(hosts, home / "sweep", *LONG, sizes="64M:1G"), hosts, home) as program:
        program.send_signal(number)
        _, said = program.communicate(timeout=40)
        # It does not return before that is so: there is nothing to wait for.
        assert shaped.processes(hosts) == []
    assert program.returncode == 130
    assert "nothing of this sweep runs any more on 6 of 6 nodes" in said


def test_when_the_program_is_killed_the_hosts_end_the_load_and_the_lock(hosts: Hosts, home: Path) -> None:
    with going(command(hosts, home / "one", *LONG, sizes="64M:1G"), hosts, home) as program:
        program.kill()
        begun = time.monotonic()
        until(lambda: not shaped.processes(hosts), "the load outlived its operator")
        assert time.monotonic() - begun < 15
    # A node lets go of the lock as soon as it has ended the load.
    tries = (home / f"two-{number}" for number in range(100))
    until(
        lambda: "held by" not in run(command(hosts, next(tries), *LOCKED, nodes="n[5-6]"), home).stderr,
        "the lock outlived its holder",
    )


def test_when_the_network_to_the_operator_is_gone_the_hosts_end_the_load(hosts: Hosts, home: Path) -> None:
    """Not one packet says so: only the silence does."""
    cable = ("ip", "-n", hosts.fabric, "link", "set", hosts.cable("head"))
    with going(command(hosts, home / "one", *LONG, sizes="64M:1G"), hosts, home):
        subprocess.run([*cable, "down"], check=True)
        try:
            until(lambda: not shaped.processes(hosts), "the load outlived the link")
        finally:
            subprocess.run([*cable, "up"], check=True)
            until(lambda: reached(hosts), "the network did not come back")


def reached(hosts: Hosts) -> bool:
    """Whether the head reaches every host's sshd."""
    try:
        hosts.inside(
            lambda: [socket.create_connection((one.address, 22), 2).close() for one in hosts.hosts.values()]
        )
    except OSError:
        return False
    return True


def test_a_run_that_hangs_is_ended_at_its_deadline_and_is_a_failed_pair(hosts: Hosts, home: Path) -> None:
    out = home / "sweep"
    argv = command(
        hosts, out, "--confirm", "3 nodes", "--time", "5", "--pairs", "n1:n2,n2:n4", nodes="n[1-4]"
    )
    flag = shaped.hang(hosts, "n4")
    try:
        done = run(argv, home)
    finally:
        flag.unlink()
    assert done.returncode == 0, done.stderr
    assert shaped.processes(hosts) == []
    text = (out / "round-02" / "n2__n4.txt").read_text()
    assert "# straggler: timed out after 5 s\n" in text
    cells = {(cell.a, cell.b): cell for cell in judged(out).view.matrix.cells()}
    assert cells["n2", "n4"].state.value == "failed"
    assert cells["n2", "n4"].value is None
    assert cells["n1", "n2"].state.value == "ok"


def test_a_host_at_work_is_refused_and_nothing_is_started_anywhere(hosts: Hosts, home: Path) -> None:
    with at_work(hosts, "n2", "slurmstepd"), at_work(hosts, "n3", "all_reduce_perf"):
        done = run(command(hosts, home / "sweep", "--confirm", "6 nodes"), home)
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert "nothing was started. n2: at work: a Slurm job step runs" in line
    assert "n3: at work: an MPI or nccl-tests run is going on" in line
    assert "without them: --hosts 'n[1,4-6]'" in line
    assert not list((home / "sweep").glob("round-*/*.txt"))


@contextlib.contextmanager
def at_work(hosts: Hosts, name: str, program: str) -> Iterator[None]:
    """A process of that name on the host."""
    path = hosts.folder / name / "bin" / f"busy-{program}" / program
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(Path("/bin/sleep").read_bytes())
    path.chmod(0o755)
    pid = hosts.server_pid(name)
    [sshd] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    busy = subprocess.Popen(["nsenter", f"--target={sshd}", "--all", str(path), "600"])
    try:
        until(lambda: bool(children(busy.pid)), "the process did not start")
        yield
    finally:
        for child in children(busy.pid):
            os.kill(child, signal.SIGKILL)
        busy.wait()


def children(pid: int) -> list[int]:
    """Of a process that changed its process table: what it started there, once that runs its program."""
    found = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [one for one in found if Path(f"/proc/{one}/comm").read_text().strip() != "nsenter"]


def test_a_host_that_is_away_fails_its_own_runs_only(hosts: Hosts, home: Path) -> None:
    out = home / "sweep"
    (home / ".ssh" / "config").write_text(
        f"Host n4\n HostName 10.77.254.254\n ConnectTimeout 2\n{hosts.ssh_config.read_text()}"
    )
    done = run(
        command(hosts, out, "--confirm", "4 nodes", "--pairs", "n1:n2,n2:n4,n4:n5,n1:n5", nodes="n[1-5]"),
        home,
    )
    assert done.returncode == 0, done.stderr
    states = {(cell.a, cell.b): cell.state.value for cell in judged(out).view.matrix.cells()}
    assert states == {
        ("n1", "n2"): "ok",
        ("n2", "n4"): "failed",
        ("n4", "n5"): "failed",
        ("n1", "n5"): "ok",
    }
