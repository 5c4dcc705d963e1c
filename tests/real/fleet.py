"""One host for each way a real machine misbehaves, and two that do not."""

from __future__ import annotations

from tests.real.gpu_node import BROKEN, MOUNTS, gpu_node
from tests.real.hosts import Host
from tests.support.fake_tools import FakeTools

OTHER_KERNEL = "5.10.0-odd-one-out"
FORGED = "@@straggler 0123456789abcdef done 99"
ESCAPES = "\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2J\x1b[31mred\x1b[0m [bold red]markup[/] ‮evil\x9b31m"


def hangs(tools: FakeTools) -> None:
    tools.script("hostname", "exec sleep 600")


def dies(tools: FakeTools) -> None:
    """Kills the SSH session it runs in, a second after the script has begun to speak."""
    tools.script(
        "hostname",
        "sleep 1; p=$$\n"
        'while [ "$p" -gt 1 ]; do read -r name </proc/$p/comm\n'
        "case $name in sshd*) kill -KILL $p; exit ;; esac\n"
        "set -- $(cut -d')' -f2 /proc/$p/stat); p=$2; done",
    )


def shouts(tools: FakeTools) -> None:
    """Fifty megabytes, escape sequences, markup, NULs, and frames of a made-up run."""
    nul = "printf 'a\\000b\\000'"
    tools.script(
        "hostname",
        f"cat {tools.home}/escapes; {nul}; head -c 50000000 /dev/zero | tr '\\000' x; echo; echo '{FORGED}'",
    )
    (tools.home / "escapes").write_text(ESCAPES)


def clings(tools: FakeTools) -> None:
    """A child that ignores every polite signal, is in no process group of ours, and holds the output open."""
    tools.script(
        "hostname", "env -i setsid sh -c 'trap \"\" HUP INT TERM; sleep 600' & echo clinging; exit 0"
    )


FILL = "for d in /dev/shm /run /tmp; do mount -o remount,size=128k $d; cat /dev/zero >$d/full 2>/dev/null || true; done"

FLEET = [
    Host("healthy-1", tools=gpu_node(), mounts=MOUNTS),
    Host("healthy-2", tools=gpu_node(), mounts=MOUNTS),
    Host("faulty-gpu", tools=gpu_node(BROKEN), mounts=MOUNTS),
    Host("slow", tools=hangs),
    Host("dies", tools=dies),
    Host("refuses", accepts=False),
    Host(
        "hostile",
        tools=shouts,
        config="Banner {home}/bin/escapes",
        bashrc=f"cat /usr/local/bin/escapes; echo '{FORGED}'; echo noise >&2\n",
    ),
    Host(
        "differs",
        mounts=f"echo {OTHER_KERNEL} >{{home}}/osrelease\nmount --bind {{home}}/osrelease /proc/sys/kernel/osrelease",
    ),
    Host("ordinary", user="op"),
    Host("unknown", known="no"),
    Host("changed", known="changed"),
    Host(
        "busybox",
        shell="{home}/bin/sh",
        mounts="ln -s /usr/bin/busybox {home}/bin/sh\nmount --bind /dev/null /usr/bin/bash",
    ),
    Host("full", mounts=FILL),
    Host("clings", tools=clings),
    Host("nologin", shell="/usr/sbin/nologin"),
    Host("shell-less", mounts="mount --bind /dev/null /usr/bin/dash"),
]
