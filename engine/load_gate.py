"""The second closed list: what may put load on nodes, and only for what the operator has confirmed.

It stands beside the read-only list (gate.py) and shares nothing with it: no collector can reach what is here, and nothing
here is sent without a `Confirmed`, which only `confirm` makes, from the operator's own words. `compose` is the one way from
an order to bytes; it is called where they leave the process.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from straggler.engine.bandwidth.plans.base import NAME, Load
from straggler.engine.bandwidth.plans.mpirun import command
from straggler.engine.errors import FatalError, UsageError
from straggler.engine.gate import Form
from straggler.engine.script import Script

LINK_SECONDS = 20
"""How long a node goes without a word from the operator before it ends what was started there."""

_SETTING = r"[A-Za-z_][A-Za-z0-9_]*=[^\0\n]*"
_HOSTS = r"[A-Za-z0-9][A-Za-z0-9._-]*:[0-9]+(,[A-Za-z0-9][A-Za-z0-9._-]*:[0-9]+)*"
_PROGRAMS = "all_reduce|all_gather|reduce_scatter|reduce|broadcast|alltoall|sendrecv|gather|scatter"
_TEST = rf"(/[A-Za-z0-9._+/-]*/)?({_PROGRAMS})_perf( -[be] [0-9]+[KMG]?| -[fgnwtc] [0-9]+)*".replace(
    " ", r"\0"
)
_MCA = r"--mca\0(plm_rsh_agent\0ssh( -[pli] [A-Za-z0-9._/@-]+)*|(?![a-z_]*agent)[a-z0-9_]+\0[A-Za-z0-9_.,:;^/-]+)"

LOAD_COMMANDS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        # One of nccl-tests' programs, on the node alone.
        "env": re.compile(rf"({_SETTING}\0)*{_TEST}"),
        # The same on the hosts of one run.
        "mpirun": re.compile(
            r"-x STRAGGLER_LOAD --mca straggler_sweep [0-9a-f]{16} --allow-run-as-root -np [0-9]+ -host ".replace(
                " ", r"\0"
            )
            + rf"{_HOSTS}\0--bind-to\0none(\0-x\0{_SETTING})*(\0{_MCA})*\0{_TEST}"
        ),
    }
)
"""What a run may be, as `plans/mpirun.py` writes it: its arguments, each ended by a NUL, so that none can pass for two."""

HOLDER_COMMANDS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(
            ("awk", "cut", "date", "dd", "grep", "head", "id", "ls", "readlink", "sleep", "sort"), Form()
        ),
        **dict.fromkeys(("stat", "tr", "cat"), Form()),
        "flock": Form(line=r"-n [789]", why="a lock on a file that is open already"),
        "kill": Form(line=r"-(TERM|KILL|0) \0", why="what carries this sweep's mark, and the run itself"),
        "rm": Form(line=r"-f -- \0", why="the lock that is held"),
        "nvidia-smi": Form(line=r"--query-compute-apps=pid,process_name --format=csv,noheader"),
        "sudo": Form(line=r"-n \0", why="what stands behind `h_priv`"),
        "timeout": Form(
            line=r"(\0 dd bs=1 count=1|-k [0-9]+ [0-9]+ nvidia-smi --query-compute-apps=.*|-k \0 \0 \0)",
            why="the operator's link, a query, and the run itself, which `compose` has held to LOAD_COMMANDS",
        ),
    }
)
"""What the two scripts on a node may start besides the run; a test holds their text to this."""

_SEAL_KEY = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the operator is asked to confirm: at most so many `rounds`, one after the other, and so many `runs` in them.

    `mark` is how everything this sweep starts can be found again.

    `allow_cpu`: nodes that show no GPU are taken as well (a test program that computes on the CPU).
    """

    nodes: tuple[str, ...]
    load: Load
    rounds: int
    runs: int
    sudo: bool = False
    allow_cpu: bool = False
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def words(self) -> str:
        """What has to be typed."""
        return f"{len(self.nodes)} nodes"

    @property
    def seconds(self) -> int:
        """The longest the sweep can take."""
        return self.rounds * (self.load.deadline + self.load.grace)

    def example(self) -> list[str]:
        """The command line of the first pair."""
        return started(self.nodes[:2], self)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A proposal the operator agreed to. Only `confirm` can seal one; the seal fits no other proposal."""

    proposal: Proposal
    seal: bytes


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold this node for the sweep: lock it, say whether it is at work, end what is left there. `who` is shown to others."""

    confirmed: Confirmed
    node: str
    who: str


@dataclass(frozen=True, slots=True)
class RunPair:
    """Run the load over these nodes, started from the first."""

    confirmed: Confirmed
    members: tuple[str, ...]


Order = Hold | RunPair


def check(proposal: Proposal) -> None:
    """Raises UsageError for a load that is not in the closed list: better before anybody is asked than when it is sent."""
    for members in (proposal.nodes[:1], proposal.nodes[:2]):
        argv = started(members, proposal)
        if not allowed(argv):
            raise UsageError(
                f"--run starts nccl-tests' programs by mpirun and nothing else, not: {shlex.join(argv)[:200]}"
            )


def confirm(proposal: Proposal, said: str) -> Confirmed:
    """Raises UsageError unless `said` is, word for word, what the proposal asks for."""
    if " ".join(said.split()) != proposal.words:
        raise UsageError(
            f"not confirmed, nothing was started: {proposal.words!r} was asked for, {said.strip()[:40]!r} was said"
        )
    return Confirmed(proposal, _seal(proposal))


def started(members: Sequence[str], proposal: Proposal) -> list[str]:
    """The argv of one run as it is sent: the plan's own, and the mark by which everything it starts can be found.

    The ranks have it in their environment; mpirun's daemon on the other node, which has not, in a setting nobody reads.
    """
    argv = command(members, proposal.load)
    if len(members) == 1:
        return argv
    return [argv[0], "-x", "STRAGGLER_LOAD", "--mca", "straggler_sweep", proposal.mark, *argv[1:]]


def allowed(argv: Sequence[str]) -> bool:
    """Whether a run may be started so."""
    if not argv or not re.fullmatch(r"(/[A-Za-z0-9._+/-]*/)?(mpirun|env)", argv[0]):
        return False
    if any("\0" in word for word in argv):
        return False
    return LOAD_COMMANDS[argv[0].rpartition("/")[2]].fullmatch("\0".join(argv[1:])) is not None


def compose(order: Order) -> Script:
    """The script for one node. Raises FatalError for what was not confirmed or is not in the list."""
    proposal = order.confirmed.proposal
    if not hmac.compare_digest(order.confirmed.seal, _seal(proposal)):
        raise FatalError("refused: this load was not confirmed")
    members = order.members if isinstance(order, RunPair) else (order.node,)
    if not members or not set(members) <= set(proposal.nodes) or not all(map(NAME.fullmatch, members)):
        raise FatalError(f"refused: {', '.join(members) or 'no node'} was not among the nodes confirmed")
    if not re.fullmatch(r"[0-9a-f]{16}", proposal.mark):
        raise FatalError("refused: a sweep's mark is sixteen hexadecimal digits")
    nonce = secrets.token_hex(8)
    text = _run(order, nonce) if isinstance(order, RunPair) else _hold(order, nonce)
    return Script(nonce, text.encode())


def _run(order: RunPair, nonce: str) -> str:
    proposal = order.confirmed.proposal
    load, argv = proposal.load, started(order.members, proposal)
    if not allowed(argv):
        raise FatalError(
            f"refused: {shlex.join(argv)[:200]} is not in the closed list of what may load nodes"
        )
    head = (
        f"R_NONCE={nonce} R_MARK={proposal.mark} R_SECONDS={int(load.deadline)} R_GRACE={int(load.grace)}\n"
    )
    return f"{head}unset -f timeout cat kill env mpirun\n{_text('run_pair.sh')}r_main {shlex.join(argv)}; exit 0\n"


def _hold(order: Hold, nonce: str) -> str:
    who = "".join(char if char.isascii() and char.isprintable() else "?" for char in order.who)[:200]
    head = (
        f"H_NONCE={nonce} H_MARK={order.confirmed.proposal.mark} H_WHO={shlex.quote(who)} H_LINK={LINK_SECONDS} "
        f"H_SUDO={int(order.confirmed.proposal.sudo)}\n"
    )
    return f"{head}unset -f {' '.join(sorted(HOLDER_COMMANDS))}\n{_text('hold.sh')}h_main; exit 0\n"


@cache
def _text(name: str) -> str:
    """A script without its comment lines: they are for readers of the file, not for the node."""
    text = files("straggler.engine.bandwidth").joinpath(name).read_text()
    return "".join(line + "\n" for line in text.splitlines() if line and not line.lstrip().startswith("#"))


def _seal(proposal: Proposal) -> bytes:
    return hmac.new(_SEAL_KEY, repr(proposal).encode(), hashlib.sha256).digest()
