"""What a node does for a sweep, in the shells that nodes have: the lock, who is at work, the end of what was started.

Each node is a shell with its own /run/lock, /tmp, /dev and (mostly) its own process table; the script is the one that is sent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from straggler.engine import load_gate
from straggler.engine.bandwidth.plans.base import Load
from straggler.engine.load_gate import Hold, Proposal, RunPair, compose, confirm
from tests.nodeshell import eventually

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for mounts of its own"),
]

SHELLS = ["dash", "bash --posix", "busybox sh"]
EVERY_SHELL = pytest.mark.parametrize("shell", SHELLS)
MARK = "00112233445566ff"
BARE = "mount -t tmpfs tmpfs /run/lock; mount -t tmpfs -o mode=1777 tmpfs /tmp"
GPUS = (
    "mount -t tmpfs tmpfs /dev; mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/zero c 1 5; mknod -m 666 /dev/urandom c 1 9; "
    "ln -s /proc/self/fd /dev/fd; touch /dev/nvidia0 /dev/nvidia1 /dev/nvidia-uvm /dev/nvidiactl"
)


def order(who: str = "me on here", deadline: int = 60, sudo: bool = False) -> tuple[Hold, RunPair]:
    load = Load("/tmp/all_reduce_perf", 1, 0, (1 << 20, 1 << 20), 1, 1, deadline, 1, 5)
    confirmed = confirm(Proposal(("a", "b"), load, 1, 2, sudo=sudo, mark=MARK), "2 nodes")
    return Hold(confirmed, "a", who), RunPair(confirmed, ("a",))


@dataclass
class Node:
    """A running script. `said` keeps every line of it that was read."""

    process: subprocess.Popen[bytes]
    nonce: str
    said: list[str] = field(default_factory=list)

    def hear(self, *ends: str) -> str:
        """Lines up to the first that begins so."""
        assert self.process.stdout is not None
        mark = f"@@straggler {self.nonce} "
        while raw := self.process.stdout.readline():
            line = raw.decode()
            if line.startswith(mark):
                self.said.append(line[len(mark) :].rstrip("\n"))
                if self.said[-1].startswith(ends):
                    return self.said[-1]
        raise AssertionError(f"the script ended without {ends}: {self.said}")

    def say(self, word: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word)
        self.process.stdin.flush()

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def of(self, kind: str) -> list[str]:
        return [one for one in self.said if one.startswith(kind)]


@contextlib.contextmanager
def node(
    shell: str,
    what: Hold | RunPair,
    *,
    before: str = BARE,
    own_processes: bool = True,
    inside: int | None = None,
    user: str = "",
    link: int | None = None,
) -> Iterator[Node]:
    """`before` is shell run as root first. `inside`: in the namespaces of that process instead of new ones."""
    script = compose(what)
    body = script.body.decode()
    if link is not None:
        body = body.replace(f"H_LINK={load_gate.LINK_SECONDS}", f"H_LINK={link}")
    become = f"setpriv --reuid {user} --regid {user} --clear-groups " if user else ""
    if inside is None:
        table = ("--pid", "--fork", "--mount-proc", "--kill-child") if own_processes else ()
        start = ["unshare", "--mount", *table, "sh", "-c", f"{before}\nexec {become}{shell}"]
    else:
        start = ["nsenter", f"--target={inside}", "--mount", "--pid", "sh", "-c", f"exec {become}{shell}"]
    process = subprocess.Popen(
        start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    it = Node(process, script.nonce)
    try:
        it.say(body.encode())
        yield it
    finally:
        with contextlib.suppress(BrokenPipeError):
            it.hang_up()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def first_child(pid: int) -> int:
    """The first process of the table that `unshare --fork` made: the script's own shell."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    assert eventually(lambda: bool(children.read_text().split()))
    return int(children.read_text().split()[0])


@EVERY_SHELL
def test_a_second_sweep_is_told_who_holds_the_node_since_when(shell: str) -> None:
    with node(shell, order("alice on login-1 (process 7)")[0]) as one:
        one.hear("locked")
        one.hear("checked")
        with node(shell, order("bob")[0], inside=first_child(one.process.pid)) as other:
            other.hear("refused")
            [line] = other.of("held")
        assert line.startswith("held alice on login-1 (process 7) since 20")
        one.say(b"q")
        one.hear("gone 0")


@EVERY_SHELL
def test_the_lock_is_free_again_when_its_holder_is_killed(shell: str, tmp_path: Path) -> None:
    share = f"mount --bind {tmp_path} /run/lock; mount -t tmpfs -o mode=1777 tmpfs /tmp"
    with node(shell, order("one")[0], before=share, own_processes=False) as one:
        one.hear("checked")
        with node(shell, order("two")[0], before=share, own_processes=False) as two:
            two.hear("refused")
        os.kill(one.process.pid, signal.SIGKILL)
        one.process.wait()
        with node(shell, order("three")[0], before=share, own_processes=False) as three:
            three.hear("locked")
            assert (tmp_path / "straggler-sweep.lock").read_text().startswith("three since 20")
            three.hear("checked")
            three.say(b"q")
            three.hear("gone 0")
    assert list(tmp_path.iterdir()) == []


@EVERY_SHELL
@pytest.mark.parametrize(
    "planted", ["ln -s /etc/passwd {}", "mkdir {}", "mkfifo {}", "ln -s /nonexistent {}"]
)
def test_a_lock_that_is_no_plain_file_is_refused_and_not_touched(shell: str, planted: str) -> None:
    before = f"{BARE}; {planted.format('/run/lock/straggler-sweep.lock')}"
    with node(shell, order()[0], before=before) as one:
        one.hear("refused")
        [line] = one.of("nolock")
    assert "/run/lock/straggler-sweep.lock is no plain file" in line


@EVERY_SHELL
def test_another_users_file_is_no_lock(shell: str) -> None:
    before = f"{BARE}; touch /tmp/straggler-sweep.lock; chown 4242 /tmp/straggler-sweep.lock"
    with node(shell, order()[0], before=before) as one:
        one.hear("refused")
        [line] = one.of("nolock")
    assert "left behind by user id 4242" in line


@EVERY_SHELL
def test_users_who_may_not_write_in_the_first_place_meet_in_the_second(shell: str) -> None:
    with node(shell, order("op")[0], before=f"{BARE}; chmod 755 /run/lock", user="4242") as one:
        one.hear("locked")
        one.hear("checked")
        with node(shell, order("root")[0], inside=first_child(one.process.pid)) as other:
            other.hear("refused")
            [line] = other.of("held")
    assert line.startswith("held op since 20")


HOLDS = "sleep 600 </dev/nvidia0 3</dev/nvidia-uvm"


@EVERY_SHELL
def test_a_process_with_a_gpu_open_is_work(shell: str) -> None:
    with node(shell, order()[0], before=f"{BARE}; {GPUS}; {HOLDS} &") as one:
        one.hear("checked")
    assert one.of("gpus") == ["gpus 2"]
    [line] = one.of("busy")
    assert line.startswith("busy gpu ")
    assert line.endswith(" sleep")


@EVERY_SHELL
def test_a_daemon_that_only_watches_the_gpus_is_not(shell: str) -> None:
    """No CUDA context without nvidia-uvm: persistence and monitoring daemons hold the GPUs open all the time."""
    with node(shell, order()[0], before=f"{BARE}; {GPUS}; sleep 600 </dev/nvidia0 3</dev/nvidiactl &") as one:
        one.hear("checked")
    assert one.of("busy") == []


@EVERY_SHELL
def test_of_an_idle_gpu_node_only_what_lies_outside_of_a_container_is_not_known(shell: str) -> None:
    with node(shell, order()[0], before=f"{BARE}; {GPUS}") as one:
        one.hear("checked")
    assert one.of("busy") == []
    [line] = one.of("unread")
    assert "outside of this container" in line


@EVERY_SHELL
def test_a_user_who_cannot_see_what_others_hold_open_is_told_what_it_needs(shell: str) -> None:
    before = f"{BARE}; {GPUS}; {HOLDS} &"
    with node(shell, order()[0], before=before, user="4242") as one:
        one.hear("checked")
    assert any("needs root (--sudo)" in line for line in one.of("unread")), one.said


@EVERY_SHELL
def test_a_sudo_that_is_refused_leaves_it_unknown(shell: str) -> None:
    with node(shell, order(sudo=True)[0], before=f"{BARE}; {GPUS}; {HOLDS} &", user="4242") as one:
        one.hear("checked")
    assert any("sudo -n was refused" in line for line in one.of("unread")), one.said


TOOL = "mkdir /tmp/bin; printf '#!/bin/sh\\n{}\\n' >/tmp/bin/nvidia-smi; chmod 755 /tmp/bin/nvidia-smi; PATH=/tmp/bin:$PATH"


@EVERY_SHELL
@pytest.mark.parametrize(
    ("says", "kind", "words"),
    [
        ("echo 4711, python3 train.py", "busy", "busy gpu 4711 python3 train.py"),
        ("exit 9", "unread", "nvidia-smi did not answer"),
        ("echo No running processes found", "busy", ""),
    ],
)
def test_what_nvidia_smi_says_counts_too(shell: str, says: str, kind: str, words: str) -> None:
    with node(shell, order()[0], before=f"{BARE}; {GPUS}; {TOOL.format(says)}") as one:
        one.hear("checked")
    found = [line for line in one.of(kind) if words and words in line]
    assert bool(found) == bool(words), one.said


@EVERY_SHELL
@pytest.mark.parametrize("program", ["slurmstepd", "mpirun", "prted", "all_reduce_perf", "sendrecv_perf"])
def test_a_job_step_and_an_earlier_run_are_work_without_any_gpu(shell: str, program: str) -> None:
    before = f"{BARE}; cp /bin/sleep /tmp/{program}; /tmp/{program} 600 & while ! grep -q {program} /proc/$!/comm; do :; done"
    with node(shell, order()[0], before=before) as one:
        one.hear("checked")
    [line] = one.of("busy")
    assert line.split()[1] == ("slurm" if program == "slurmstepd" else "mpi")


# What was started, and its end.

RANKS = "for n in 1 2 3; do STRAGGLER_LOAD=" + MARK + " sleep 600 & done"
DEAF = "(trap '' TERM INT HUP; STRAGGLER_LOAD=" + MARK + " exec sleep 601) &"
DAEMONS = "mkfifo /tmp/f; for m in {} ffffffffffffffff; do sh -c 'read x' orted --mca straggler_sweep $m -x <>/tmp/f & done"
OTHERS = "STRAGGLER_LOAD=ffffffffffffffff sleep 602 & sleep 603 &"


def listed(pid: int) -> list[str]:
    """The command lines in the node's own process table."""
    inside = ["nsenter", f"--target={first_child(pid)}", "--pid", "--mount"]
    return subprocess.run([*inside, "ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()


def sleepers(pid: int) -> list[str]:
    """What still sleeps there: the seconds it was started with."""
    return sorted(line.split()[1] for line in listed(pid) if line.startswith("sleep 60"))


@EVERY_SHELL
def test_all_that_carries_the_mark_is_ended_and_nothing_else(shell: str) -> None:
    with node(shell, order()[0], before=f"{BARE}; {RANKS}; {DEAF} {OTHERS}") as one:
        one.hear("checked")
        assert sleepers(one.process.pid) == ["600", "600", "600", "601", "602", "603"]
        one.say(b".k")
        one.hear("clean 0")
        assert sleepers(one.process.pid) == ["602", "603"]


@EVERY_SHELL
def test_mpiruns_daemon_has_the_mark_among_its_words(shell: str) -> None:
    """It is started by the other node's ssh, so that nothing of the environment comes with it."""
    with node(shell, order()[0], before=f"{BARE}; {DAEMONS.format(MARK)}") as one:
        one.hear("checked")
        assert daemons(one.process.pid) == [MARK, "ffffffffffffffff"]
        one.say(b".k")
        one.hear("clean 0")
        assert daemons(one.process.pid) == ["ffffffffffffffff"]


def daemons(pid: int) -> list[str]:
    return sorted(line.split()[-2] for line in listed(pid) if " orted " in line)


@EVERY_SHELL
@pytest.mark.parametrize("how", ["end of stdin", "silence", "a signal"])
def test_when_the_operator_is_gone_the_node_ends_the_load_by_itself(shell: str, how: str) -> None:
    with node(shell, order()[0], before=f"{BARE}; {RANKS}", link=1 if how == "silence" else 100) as one:
        one.hear("checked")
        if how == "end of stdin":
            one.hang_up()
        elif how == "a signal":
            os.kill(first_child(one.process.pid), signal.SIGTERM)
            # The shell looks at signals between two words from the operator.
            one.say(b".")
        one.hear("gone 0")


@EVERY_SHELL
def test_beats_keep_it_going(shell: str) -> None:
    with node(shell, order()[0], before=f"{BARE}; {RANKS}", link=2) as one:
        one.hear("checked")
        for _ in range(3):
            one.say(b".c")
            one.hear("checked")
        one.say(b"q")
        one.hear("gone 0")


PERF = "printf '#!/bin/sh\\n{}\\n' >/tmp/all_reduce_perf; chmod 755 /tmp/all_reduce_perf"


@EVERY_SHELL
@pytest.mark.parametrize(
    ("does", "status"),
    [("echo fine", "0"), ("exit 7", "7"), ("kill -KILL $$", "137"), ("exec sleep 600", "124")],
)
def test_a_run_ends_with_its_status_or_at_its_deadline(shell: str, does: str, status: str) -> None:
    with node(shell, order(deadline=2)[1], before=f"{BARE}; {PERF.format(does)}") as one:
        _, said, seconds = one.hear("ended").split()
        assert said == status
        assert (int(seconds) >= 2) == (status == "124")


@EVERY_SHELL
def test_a_run_that_does_not_heed_the_deadline_is_killed_a_grace_later(shell: str) -> None:
    with node(
        shell, order(deadline=1)[1], before=f"{BARE}; {PERF.format('trap : TERM; while :; do sleep 1; done')}"
    ) as one:
        assert one.hear("ended").split()[1] == "137"


@EVERY_SHELL
def test_a_run_is_ended_with_the_operators_link(shell: str) -> None:
    with node(shell, order(deadline=100)[1], before=f"{BARE}; {PERF.format('exec sleep 600')}") as one:
        one.hear("begun")
        assert eventually(lambda: sleepers(one.process.pid) == ["600"])
        one.hang_up()
        assert one.hear("ended").split()[1] == "143"
        assert one.process.wait(timeout=20) == 0
