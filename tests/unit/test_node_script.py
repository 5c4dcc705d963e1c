"""The node script under every shell a node may call `sh`, on the bad days of a node."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from straggler.engine.collectors import COLLECTORS
from straggler.engine.model import Status
from straggler.engine.script import CAP
from tests.nodeshell import (
    MARKS,
    NONCE,
    OUTER,
    SHELLS,
    alive,
    ask,
    below,
    collector,
    end,
    eventually,
    processes_with,
    rendered,
    scratches,
    understood,
)

MIB = 1024 * 1024


@pytest.fixture(params=list(SHELLS))
def shell(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    """Each shell in turn; after each test no scratch directory of ours may be left."""
    argv = SHELLS[request.param]
    if shutil.which(argv[0]) is None and not os.environ.get("CI"):
        pytest.skip(f"{argv[0]} is not installed here")
    MARKS.clear()
    yield argv
    assert eventually(lambda: not scratches()), "scratch was left behind"


def test_a_snippet_s_output_comes_back_to_the_byte(shell: tuple[str, ...]) -> None:
    said = ask(shell, collector("printf 'a\\nb \\\\n\\n\\n'; echo oops >&2"))
    assert (said[0].status, said[0].text, said[0].errors) == (Status.OK, "a\nb \\n\n\n", "oops")
    assert said.hello is not None
    assert said.done is not None
    assert (said.hello.uid, said.done.count, said.noise, said.errors) == (os.getuid(), 1, "", "")


@pytest.mark.parametrize(
    ("snippet", "status", "why"),
    [
        ("missing nvidia-smi", Status.TOOL_MISSING, "nvidia-smi is not installed"),
        ("denied 'the kernel log'", Status.NEEDS_ROOT, "the kernel log"),
        ("absent 'no GPU here'", Status.NOT_APPLICABLE, "no GPU here"),
        ("echo half; echo broken >&2; exit 9", Status.FAILED, "exit 9: broken"),
        ("false", Status.FAILED, "exit 1"),
        ("no-such-program-at-all", Status.FAILED, "exit 127"),
        ("kill -SEGV $(exec sh -c 'echo $PPID')", Status.FAILED, "exit 139"),
    ],
)
def test_a_snippet_s_end_has_its_reason(
    shell: tuple[str, ...], snippet: str, status: Status, why: str
) -> None:
    block = ask(shell, collector(snippet))[0]
    assert block.status is status
    assert block.why.startswith(why)


@pytest.mark.parametrize("printed", ["", "no last newline", "\n", "\n\n\n", "end", "@@straggler", "\r\n\r\n"])
def test_odd_ends_of_output_are_kept(shell: tuple[str, ...], printed: str) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in printed.encode())
    block = ask(shell, collector(f"printf '{octal}'" if octal else ":"))[0]
    assert (block.status, block.text) == (Status.OK, printed)


def test_bytes_that_are_no_text_are_kept_and_visible(shell: tuple[str, ...]) -> None:
    block = ask(shell, collector("printf 'a\\000b\\377\\300c'"))[0]
    assert (block.status, block.text) == (Status.OK, "a\0b\\xff\\xc0c")


def test_fifty_megabytes_are_cut_on_the_node_and_said_to_be_cut(shell: tuple[str, ...]) -> None:
    endless = collector("head -c 50000000 /dev/zero | tr '\\000' x")
    loud = collector("head -c 50000000 /dev/zero | tr '\\000' y >&2; echo fine", id="loud")
    run = subprocess.run(
        [*shell], input=rendered(endless, loud), capture_output=True, timeout=OUTER, check=False
    )
    assert len(run.stdout) < CAP + 3 * 4096
    said = understood(run.stdout, 2)
    assert (said[0].status, len(said[0].text)) == (Status.TRUNCATED, CAP)
    assert "longer than" in said[0].why
    assert (said[1].status, said[1].text, len(said[1].errors)) == (Status.OK, "fine\n", 4096)


def test_memory_of_the_node_is_bounded_too(shell: tuple[str, ...]) -> None:
    limit = f"ulimit -v 120000; exec {' '.join(shell)}"
    said = ask(["sh", "-c", limit], collector("head -c 200000000 /dev/zero"), collector("echo fine", id="b"))
    assert said[0].status is Status.TRUNCATED
    assert said[1].text == "fine\n"


def test_one_that_hangs_is_killed_and_costs_only_itself(shell: tuple[str, ...]) -> None:
    said = ask(shell, collector("echo begun; sleep 4242", seconds=1), collector("echo b", id="b"))
    assert said.order == [1, 0]
    assert (said[0].status, said[0].text) == (Status.TIMED_OUT, "begun\n")
    assert said[1].text == "b\n"
    assert said.done is not None


SHAPES = (
    "sleep 4242.MARK",
    "trap '' TERM HUP INT; sh -c 'trap \"\" TERM; while :; do sleep 0.MARK; done'",
    "while :; do sleep 0.MARK; done | cat",
    "(while :; do sleep 0.MARK; done) & wait",
    "x=$(while :; do sleep 0.MARK; done)",
    "sh -c 'while :; do sleep 0.MARK; done' & exit 0",
    "(sh -c 'sleep 1.MARK; sleep 4242.MARK' &)",
)


def test_whatever_shape_it_hangs_in_nothing_runs_on(shell: tuple[str, ...]) -> None:
    mark = f"7{os.getpid()}"
    hanging = [collector(one.replace("MARK", mark), seconds=1, id=f"s{at}") for at, one in enumerate(SHAPES)]
    said = ask(shell, *hanging, collector("echo fine", id="z"))
    assert {one.status for at, one in said.blocks.items() if at < len(SHAPES)} == {Status.TIMED_OUT}
    assert said[len(SHAPES)].text == "fine\n"
    assert eventually(lambda: not processes_with(mark))


def test_a_child_that_keeps_the_pipe_and_hides_is_abandoned_and_said_so(shell: tuple[str, ...]) -> None:
    mark = f"4{os.getpid()}"
    hidden = collector(f"echo begun; (env -i setsid sleep 3000.{mark} &)", seconds=1)
    try:
        said = ask(shell, hidden, collector("echo b", id="b"))
        assert said[0].status is Status.ABANDONED
        assert "keeps its output open" in said[0].why
        assert said[1].text == "b\n"
        assert said.done is not None
    finally:
        end(processes_with(mark))


def test_a_daemon_that_lets_go_of_its_output_does_not_hold_up_the_reply(shell: tuple[str, ...]) -> None:
    mark = f"5{os.getpid()}"
    try:
        said = ask(shell, collector(f"sleep 3000.{mark} >/dev/null 2>&1 & echo fine"))
        assert (said[0].status, said[0].text) == (Status.OK, "fine\n")
    finally:
        end(processes_with(mark))


def test_snippets_cannot_disturb_each_other_or_the_runner(shell: tuple[str, ...]) -> None:
    rude = [
        "cat; read -r x || echo nothing to read",
        "exit 0",
        "cd /proc; trap 'echo trapped' EXIT; umask 777; set -e; IFS=x; PATH=/nowhere; LC_ALL=; s_d=/ s_left= S_CAP=1",
        "exec >/dev/null 2>&1; exec 3>&1 4<&0",
        "unset S_NONCE s_d s_left; s_say() { echo mine; }; cat() { echo mine; }",
        'trap "" PIPE TERM; set -x; echo still here',
        "set -- a b c; shift 2; echo $1",
    ]
    said = ask(
        shell, *(collector(one, id=f"r{at}") for at, one in enumerate(rude)), collector("echo last", id="z")
    )
    assert sorted(said.blocks) == list(range(8))
    assert said[0].text == "nothing to read\n"
    assert said[2].text in ("trapped\n", "")
    assert (said[6].text, said[7].text) == ("c\n", "last\n")
    assert said.done is not None


HOSTILE = {
    "PATH": os.environ["PATH"],
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "de_DE.UTF-8",
    "LANGUAGE": "de",
    "GREP_OPTIONS": "--color=always -v",
    "IFS": "x0123456789",
    "POSIXLY_CORRECT": "1",
    "CDPATH": "/etc:/usr",
    "SHELLOPTS": "braceexpand:errexit:nounset:noglob:noclobber",
    "S_NONCE": "forged",
    "S_MARK": "../../etc",
    "s_killed_0": "1",
    "S_ALL": "9",
    "S_JOB": "other",
    "XDG_RUNTIME_DIR": "/etc",
    "BASH_FUNC_cat%%": "() { echo forged; }",
    "BASH_FUNC_head%%": "() { echo forged; }",
    "BASH_FUNC_cksum%%": "() { echo 1 2; }",
    "BASH_FUNC_s_main%%": "() { echo forged; }",
}


def test_a_hostile_environment_changes_nothing(shell: tuple[str, ...], tmp_path: Path) -> None:
    noisy = tmp_path / "noisy.sh"
    noisy.write_text("echo welcome to this node\nalias cat=false\n")
    env = {**HOSTILE, "ENV": str(noisy), "BASH_ENV": str(noisy)}
    said = ask(shell, collector("echo a b | cat; ls /no/such/place; echo $LC_ALL"), env=env)
    assert (said[0].status, said[0].text) == (Status.OK, "a b\nC\n")
    assert "No such file" in said[0].errors
    assert said.done is not None


@pytest.mark.parametrize(
    "env", [{}, {"PATH": ""}, {"PATH": "/nowhere"}, {"PATH": ".:/usr/bin:/bin", "HOME": ""}]
)
def test_without_path_or_home_it_still_answers(shell: tuple[str, ...], env: dict[str, str]) -> None:
    full = shutil.which(shell[0]) or shell[0]
    said = ask(
        [full, *shell[1:]], collector("echo fine | cat; case :$PATH in *::*) echo here;; esac"), env=env
    )
    assert (said[0].status, said[0].text) == (Status.OK, "fine\n")


def test_a_node_with_busybox_alone_answers_and_its_hung_tools_are_killed(tmp_path: Path) -> None:
    bare = ["unshare", "-m", "sh", "-c", BARE, "bare"]
    mark = f"6{os.getpid()}"
    said = ask(
        bare, collector(f"echo a; sleep 3000.{mark}", seconds=1), collector("timeout 1 true; echo $?", id="b")
    )
    assert (said[0].status, said[0].text) == (Status.TIMED_OUT, "a\n")
    assert (said[1].status, said[1].text) == (Status.OK, "127\n")
    assert eventually(lambda: not processes_with(mark))


# Debian's busybox is built without cksum, so that one is coreutils' own.
# A mount namespace where /usr/bin holds busybox and nothing else of it than coreutils: no timeout, no setsid, no GNU grep.
BARE = """
mount -t tmpfs none /mnt && cp /bin/busybox /usr/bin/cksum /mnt/ && cd /mnt || exit 9
for tool in sh cat date env grep head id mkdir rm sleep tail true wc ls kill; do ln -s busybox $tool; done
cd /
mount -t tmpfs none /usr/local && mount --bind /mnt /usr/sbin && mount --bind /mnt /usr/bin || exit 9
PATH=/usr/bin exec /usr/bin/busybox sh
"""


@pytest.mark.parametrize("how", ["-o ro", "-o nr_inodes=1"])
def test_memory_that_is_there_and_takes_nothing_is_not_used(how: str) -> None:
    said = ask(SHELLS["dash"], collector("echo a"), collector("exit 3", id="b"), prefix=no_scratch(how))
    assert (said.order, said[0].text, said[1].exit_code, said.done is not None) == ([0, 1], "a\n", 3, True)


def test_without_memory_to_write_to_snippets_run_in_turn(shell: tuple[str, ...]) -> None:
    said = ask(
        shell,
        collector("printf 'no newline'", id="a"),
        collector("echo b; sleep 4242", seconds=1, id="b"),
        collector("while :; do sleep 0.3; done | cat", seconds=1, id="c"),
        collector("echo gone >&2; exit 120", id="d"),
        collector("head -c 50000000 /dev/zero | tr '\\000' x", id="e"),
        collector(":", id="f"),
        collector("echo '@@7'; exit 3", id="g"),
        prefix=no_scratch("-o size=64k"),
    )
    assert said.order == list(range(7))
    assert [said[at].status for at in range(7)] == [
        Status.OK,
        Status.TIMED_OUT,
        Status.TIMED_OUT,
        Status.TOOL_MISSING,
        Status.TRUNCATED,
        Status.OK,
        Status.FAILED,
    ]
    assert (said[0].text, said[1].text, len(said[4].text)) == ("no newline", "b", CAP)
    assert (said[5].text, said[6].text, said[6].exit_code) == ("", "@@7\n", 3)
    assert said.done is not None


def no_scratch(how: str) -> list[str]:
    """A private mount namespace whose /dev/shm, /run and /tmp cannot hold anything."""
    mounts = " && ".join(f"mount -t tmpfs {how} none {at}" for at in ("/dev/shm", "/run", "/tmp"))
    return ["unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh"]


def test_memory_that_fills_up_midway_is_said_not_guessed(shell: tuple[str, ...]) -> None:
    mounts = 'mount -t tmpfs -o size=1100k none /dev/shm && exec "$@"'
    hungry = [collector(f"head -c 250000 /dev/zero | tr '\\000' {at}", id=f"h{at}") for at in range(8)]
    said = ask(shell, *hungry, prefix=["unshare", "-m", "sh", "-c", mounts, "sh"])
    assert sorted(said.blocks) == list(range(8))
    seen = {one.status for one in said.blocks.values()}
    assert Status.TRUNCATED in seen
    assert seen <= {Status.OK, Status.TRUNCATED}
    assert all(len(one.text) == 250000 for one in said.blocks.values() if one.status is Status.OK)


def test_an_ordinary_user_gets_what_he_may_read_and_reasons_for_the_rest(shell: tuple[str, ...]) -> None:
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    said = ask(
        shell,
        collector("cat /etc/hostname /etc/shadow"),
        collector("sleep 4242", seconds=1, id="b"),
        prefix=user,
    )
    assert said.hello is not None
    assert said.hello.uid == 65534
    assert said[0].status is Status.FAILED
    assert "Permission denied" in said[0].why
    assert said[1].status is Status.TIMED_OUT


def test_a_process_no_signal_reaches_is_abandoned_with_its_reason(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    """Stands for a tool in uninterruptible sleep: this test, as root, holds the pipe of a snippet that runs as nobody."""
    mark = f"3{os.getpid()}"
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *shell]
    stuck = collector(f"echo begun; sleep 3000.{mark}", seconds=2)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as child:
        assert child.stdin is not None
        child.stdin.write(rendered(stuck, collector("echo b", id="b")))
        child.stdin.close()
        assert eventually(lambda: bool(processes_with(mark)))
        with open(f"/proc/{min(processes_with(mark))}/fd/1", "wb"):
            assert child.stdout is not None
            said = understood(child.stdout.read(), 2)
            child.wait(OUTER)
    assert said[0].status is Status.ABANDONED
    assert (said[1].text, said.done is not None) == ("b\n", True)


def test_a_proc_with_an_empty_uptime_is_enough(shell: tuple[str, ...]) -> None:
    cover = 'mount -t tmpfs none /mnt && : >/mnt/x && mount --bind /mnt/x /proc/uptime && exec "$@"'
    said = ask(shell, collector("echo fine"), prefix=["unshare", "-m", "sh", "-c", cover, "sh"])
    assert (said[0].status, said[0].text) == (Status.OK, "fine\n")
    assert said.done is not None


def test_without_proc_it_answers_one_after_the_other(shell: tuple[str, ...]) -> None:
    cover = 'mount -t tmpfs none /proc && exec "$@"'
    said = ask(
        shell,
        collector("echo a"),
        collector("exit 4", id="b"),
        prefix=["unshare", "-m", "sh", "-c", cover, "sh"],
    )
    assert (said[0].text, said[1].exit_code) == ("a\n", 4)
    assert said.done is not None


def test_a_script_cut_anywhere_does_nothing_and_says_nothing(shell: tuple[str, ...], tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    whole = rendered(collector(f"echo a >{touched}"), collector("echo b", id="b"))
    assert whole.endswith(b"\ns_main\n")
    for length in [*range(0, len(whole) - 8, 97), *range(len(whole) - 20, len(whole) - 1)]:
        run = subprocess.run(
            [*shell], input=whole[:length], capture_output=True, timeout=OUTER, cwd=tmp_path, check=False
        )
        assert run.stdout == b"", f"cut at {length}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("signalled", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT, None])
@pytest.mark.parametrize("ignored", [False, True])
def test_whoever_leaves_early_leaves_nothing_behind(
    shell: tuple[str, ...], signalled: signal.Signals | None, ignored: bool
) -> None:
    """A signal, or (None) the reader closing its end; also where PIPE is ignored, as under many daemons."""
    mark = f"2{os.getpid()}"
    endless = [
        collector(f"sleep 3000.{mark}", seconds=300),
        collector(f"while :; do sleep 0.2{mark}; done | cat", seconds=300, id="b"),
        collector("while :; do echo x; done | cat >/dev/null", seconds=300, id="c"),
    ]
    with subprocess.Popen(
        [*shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, restore_signals=not ignored, cwd="/"
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(rendered(*endless))
        child.stdin.close()
        assert eventually(lambda: len(processes_with(mark)) >= 2)
        started = below(child.pid)
        assert scratches()
        if signalled is None:
            child.stdout.close()
        else:
            child.send_signal(signalled)
        child.wait(OUTER)
    assert eventually(lambda: not alive(started) and not processes_with(mark))


def test_the_frames_nonce_is_seen_by_nobody_else_on_the_node(shell: tuple[str, ...]) -> None:
    said = ask(
        shell,
        collector(
            "ls /dev/shm /run /tmp; env; cat /proc/self/environ /proc/*/cmdline 2>/dev/null | tr '\\000' ' '"
        ),
    )
    assert NONCE not in said[0].text
    assert "straggler." in said[0].text


def test_the_window_reaches_the_snippets(shell: tuple[str, ...]) -> None:
    assert ask(shell, collector("sh -c 'echo $S_SINCE $S_UNTIL'"))[0].text == "1000 2000\n"


@pytest.mark.parametrize("sudo", [False, True])
def test_sudo_is_used_only_when_asked_for_and_never_by_root(
    shell: tuple[str, ...], sudo: bool, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    fake = tmp_path / "sudo"
    fake.write_text('#!/bin/sh\necho "sudo $*"\n')
    fake.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent != Path("/tmp") and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    priv = collector("priv echo hi")
    assert ask(shell, priv, env=env, sudo=sudo)[0].text == "hi\n"
    as_user = ask(shell, priv, env=env, sudo=sudo, prefix=user)[0].text
    assert as_user == ("sudo -n echo hi\n" if sudo else "hi\n")


def test_every_registered_snippet_runs_under_every_shell(shell: tuple[str, ...]) -> None:
    said = ask(shell, *COLLECTORS)
    assert sorted(said.blocks) == list(range(len(COLLECTORS)))
    odd = {
        COLLECTORS[at].id: (one.status, one.why)
        for at, one in said.blocks.items()
        if one.exit_code in (2, 126, 127)
    }
    assert odd == {}
