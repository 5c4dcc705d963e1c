"""The closed list: every program that may be started, on a node or here, and in which forms. Read-only by construction.

`NODE_COMMANDS` holds for the runner and for every snippet; a program that could change something is held to the argument
forms that only read. `admit` is asked by `compose`, where a script leaves the process; a test parses every snippet with a
real shell grammar and holds each command it could start to `allowed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from straggler.engine.errors import FatalError

if TYPE_CHECKING:
    from straggler.engine.collectors.base import AnyCollector

OPEN = "\0"
"""Stands in a word for a part only the node knows (`$d/vendor` is OPEN + '/vendor'): no real word can contain it."""


@dataclass(frozen=True, slots=True)
class Form:
    """What the arguments of a program must look like.

    `line` matches all arguments joined by blanks, `each` matches every single one; `never` is found in none of them.
    `why` tells a reader what the form keeps out.
    """

    line: str = r"(?s).*"
    each: str = r"(?s).*"
    never: str = r"(?!)"
    why: str = "reads only"

    def fits(self, arguments: Sequence[str]) -> bool:
        joined = " ".join(arguments)
        return (
            re.fullmatch(self.line, joined) is not None
            and all(re.fullmatch(self.each, one) is not None for one in arguments)
            and not any(re.search(self.never, one) for one in arguments)
        )


_READS = Form()

NODE_COMMANDS: Mapping[str, Form] = MappingProxyType(
    {
        # Text and files: these have no way to write but by redirection, which is checked on its own.
        **dict.fromkeys(
            ("basename", "cat", "cksum", "cut", "df", "dirname", "grep", "head", "id", "ls"), _READS
        ),
        **dict.fromkeys(("nproc", "readlink", "seq", "sleep", "stat", "tail", "tr", "uname", "wc"), _READS),
        **dict.fromkeys(("findmnt", "free", "getconf", "lsblk", "lscpu", "lsmod", "lspci", "uptime"), _READS),
        "sort": Form(never=r"^-[a-zA-Z]*[To]|^--(output|compress|temporary)", why="-o writes a file"),
        "uniq": Form(each=r"-[a-zA-Z0-9]+", why="a second operand would be written to"),
        "sed": Form(
            never=r"^-[a-zA-Z]*[if]|^--(in-place|file)|(^|[;/}\s0-9$])[wWe](\s|$)|(?<!^/)\0|\0(?!/p$)",
            why="no -i, no w, no e",
        ),
        "awk": Form(
            never=r"system|getline|\||>>?\s*[\"$a-z]|^-[fiE]|^(?![a-z]+=).*\0",
            why="no system(), no pipe, no output file",
        ),
        "date": Form(each=r"\+[^\0]*|-u|-d|@[0-9\0]+", why="-s sets the clock"),
        "hostname": Form(each=r"-[fsid]", why="a name would be set"),
        "mount": Form(line="", why="with arguments it mounts"),
        "ps": _READS,
        "ip": Form(
            line=r"(-[a-zA-Z0-9]+ )*(link|addr|address|route|neigh|rule)( show( .*)?)?", why="show only"
        ),
        "ss": Form(never=r"^-[a-zA-Z]*K|^--kill", why="-K kills sockets"),
        "ethtool": Form(line=r"(-[ikSgaclTm] )?\0?[a-z0-9\0]*", why="the lower-case forms that query"),
        "sysctl": Form(line=r"(-n |-e |-ne |-en )*[a-z0-9_.\0 ]+", why="-w and name=value set"),
        "getent": _READS,
        "ldconfig": Form(line=r"-p|-Np|-N -p", why="anything else rebuilds the cache"),
        "modinfo": _READS,
        "rpm": Form(
            line=r"-q[a-z]*( .*)?|--query( .*)?",
            never=r"^--(pipe|eval|define|load|import|rebuilddb|initdb)",
            why="-q only",
        ),
        "dpkg-query": Form(line=r"(-W|--show|-l|--list|-s|--status|-f\S*( -W)?)( .*)?"),
        # Kernel log.
        "dmesg": Form(
            each=r"-T|-x|-k|-r|-t|--(ctime|decode|kernel|raw|notime|nopager|color=never|time-format[= ]?[a-z]*|level=[a-z,]+)",
            why="-c, -C, -D, -E and -n clear or switch the log",
        ),
        "journalctl": Form(
            never=r"^--(vacuum|rotate|flush|sync|relinquish|smart-relinquish|setup-keys|update-catalog|cursor-file|f)|^-[a-zA-Z]*f",
            why="never vacuum, rotate, flush or follow",
        ),
        "systemctl": Form(line=r"(is-active|is-enabled|is-failed|show)( .*)?", why="queries only"),
        # Accelerators and fabric.
        "nvidia-smi": Form(
            line=r"(--query-[a-z-]+=[a-z0-9_.,\0]+|-q( -[xd])?( [A-Z_,]+)?|-L|topo -m|nvlink (-s|-e|--status|--errorcounters))"
            r"( (--format=[a-z,]+|-i [0-9\0]+))*|",
            why="queries only; -r, -pm, -ac and their kin change the GPU",
        ),
        "neuron-ls": Form(each=r"-j|--json-output|-a|--show-all-procs"),
        "fi_info": Form(each=r"-[plvte]|--(version|provider|list|verbose)(=[a-z;-]+)?|[a-zA-Z_]+"),
        "ibv_devices": Form(line=""),
        "ibv_devinfo": Form(each=r"-[vli]|-d|[a-z0-9_\0-]+"),
        "rdma": Form(line=r"(-[jdp]+ )*(dev|link|statistic|resource|system)( show( .*)?)?", why="show only"),
        "nvcc": Form(line=r"--version|-V"),
        # Instance metadata: a token, then reads, from the link-local address and nowhere else.
        "curl": Form(
            line=r"-s(S|f|fS|Sf| -f)? -m [0-9]+ "
            r"(-X PUT -H X-aws-ec2-metadata-token-ttl-seconds: [0-9]+ http://169\.254\.169\.254/latest/api/token"
            r"|-H X-aws-ec2-metadata-token: \0 http://169\.254\.169\.254/latest/(meta-data|dynamic)/[a-z0-9/-]+)",
            why="GET of instance metadata, and PUT for its token, only",
        ),
    }
)
"""Program -> form; what is not here is not started."""

RUNNER_COMMANDS: Mapping[str, Form] = MappingProxyType(
    {
        "rm": Form(line=r"-rf \0", why="its own scratch directory"),
        "mkdir": Form(line=r"-m 700 \0", why="its own scratch directory"),
        "kill": Form(line=r"-KILL \0( \0)?", why="what a snippet started"),
        "sudo": Form(line=r"-n \0", why="what stands behind `priv`, which is checked where it is called"),
    }
)
"""What only the runner (`node_script.sh`) may start besides."""

LOCAL_SHELL = "/bin/sh"
"""The one program started on this machine by us: for `--local`, with the same composed script as any node, and for the
ProxyCommand that the operator's own ssh config names."""

WRAPPERS: Mapping[str, str] = MappingProxyType(
    {"priv": "", "timeout": r"[0-9]+", "nice": r"-n [0-9]+", "command": "", "beside": r"\0|\S+"}
)
"""Words that start another program, with what stands between: the program behind them is what is checked."""


def unwrapped(argv: Sequence[str]) -> tuple[str, ...]:
    """The program that is really started, with its arguments; empty when what stands between is not as it must be."""
    if not argv or argv[0] not in WRAPPERS:
        return tuple(argv)
    between = WRAPPERS[argv[0]]
    used = 1 + (between.count(" ") + 1 if between else 0)
    return unwrapped(argv[used:]) if re.fullmatch(between, " ".join(argv[1:used])) else ()


def allowed(argv: Sequence[str], *, runner: bool = False) -> bool:
    """Whether this program may be started so. Words are as the shell sees them, with OPEN for what it fills in."""
    inner = unwrapped(argv)
    if not inner:
        return False
    form = NODE_COMMANDS.get(inner[0]) or (RUNNER_COMMANDS.get(inner[0]) if runner else None)
    return form is not None and form.fits(inner[1:])


def admit(collectors: Iterable[AnyCollector]) -> None:
    """Raises FatalError for a collector that is not, object for object, registered, or names a program that may not run."""
    from straggler.engine.collectors import BY_ID

    for one in collectors:
        if BY_ID.get(one.id) is not one:
            raise FatalError(
                f"refused: collector {one.id!r} is not in the closed list of what may run on a node"
            )
        if strange := sorted(set(one.commands) - NODE_COMMANDS.keys()):
            raise FatalError(
                f"refused: collector {one.id!r} would start {', '.join(strange)}, which may not run on a node"
            )
