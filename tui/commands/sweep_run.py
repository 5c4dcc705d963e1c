"""`straggler sweep --run`: ask for the confirmation, run the plan over SSH, say how it goes, stop it when told to."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import resource
import shlex
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from straggler.engine.errors import UsageError
from straggler.tui.commands import options, output, sweep_text

if TYPE_CHECKING:
    from straggler.engine.bandwidth.execute import Event, LetGo
    from straggler.engine.bandwidth.holding import LoadTransport
    from straggler.engine.bandwidth.plans.base import Plan
    from straggler.engine.bandwidth.rounds import Rounds
    from straggler.engine.knowledge import Knowledge
    from straggler.engine.load_gate import Confirmed, Proposal
    from straggler.engine.targets.base import Target

FILES_SPARED = 128
"""Descriptors left to the rest of the program; every held node keeps one open."""

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(args: argparse.Namespace, plan: Plan) -> int:
    """Returns when the verdict stands or no round is left; 130 when it was interrupted. Raises UsageError, FatalError."""
    from straggler.engine import knowledge
    from straggler.engine.bandwidth import so_far
    from straggler.engine.load_gate import Proposal, check

    known = knowledge.load(options.config_dir())
    target = _checked(args.target, plan)
    rounds = rounds_of(args, plan, known)
    if not rounds.missing:
        raise UsageError(
            f"every run of the plan in {args.out} has its result; for a new sweep name a new --out DIR"
        )
    proposal = Proposal(
        nodes=plan.nodes,
        load=plan.load,
        rounds=rounds.most,
        runs=rounds.most_runs,
        sudo=args.sudo,
        allow_cpu=args.allow_cpu,
    )
    check(proposal)
    _room_for(len(plan.nodes))
    for line in described(proposal, len(rounds.missing)):
        output.note(line)
    confirmed = _confirmed(proposal, args.confirm)
    status = asyncio.run(_execute(confirmed, target, rounds))
    output.put(sweep_text.verdict(rounds.plan, so_far.judge(rounds.plan, args.out, known, time.time())))
    return status


def _checked(target: Target | None, plan: Plan) -> Target:
    """The target, if it can be loaded and has every node of the plan."""
    if target is None:
        raise UsageError("--run needs the nodes as well: --hosts HOSTS")
    if not hasattr(target.transport, "talk"):
        raise UsageError(
            "--run works over SSH (--hosts HOSTS); without it the plan is written for you to run yourself"
        )
    strangers = set(plan.nodes) - {node.id for node in target.nodes}
    if strangers:
        from straggler.engine.nodesets import fold

        raise UsageError(f"the plan has nodes that --hosts does not name: {fold(sorted(strangers))}")
    return target


def rounds_of(args: argparse.Namespace, plan: Plan, known: Knowledge) -> Rounds:
    """What is still to be run, and what the results may ask for on top."""
    from straggler.engine.bandwidth import so_far
    from straggler.engine.bandwidth.rounds import Rounds

    planned = max((one.number for one in plan.rounds if not one.alone), default=0)
    return Rounds(
        plan,
        args.out,
        lambda now: so_far.judge(now, args.out, known, time.time()).attribution,
        extra=0 if args.pairs else planned,
        repeats=int(known.number("sweep.repeats")),
        whole=bool(args.pairs),
    )


def described(proposal: Proposal, planned: int) -> Iterator[str]:
    """What the operator is asked to agree to, line by line."""
    from straggler.engine.nodesets import fold

    load = proposal.load
    yield f"--run puts load on {len(proposal.nodes)} nodes: {fold(proposal.nodes)}"
    yield f"command: {shlex.join(proposal.example())}"
    extra = proposal.rounds - planned
    more = f" and up to {extra} more where a verdict needs them" if extra else ""
    yield f"runs: {proposal.runs} at most, in {planned} rounds{more}; pairs of one round run at once"
    yield (
        f"duration: about {_spelled(planned * load.seconds)}, at most {_spelled(proposal.seconds)}; "
        f"every run is ended after {load.deadline} s by its own node"
    )


def _spelled(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _confirmed(proposal: Proposal, said: str | None) -> Confirmed:
    from straggler.engine.load_gate import confirm

    if said is None:
        if not (sys.stdin is not None and sys.stdin.isatty()):
            raise UsageError(
                f"nobody is there to confirm; if this is what you want, add: --confirm {proposal.words!r}"
            )
        print(
            f"Type {proposal.words!r} to start, anything else to leave: ", end="", file=sys.stderr, flush=True
        )
        said = sys.stdin.readline()
    return confirm(proposal, said)


def _room_for(nodes: int) -> None:
    """Raise this process's own limit on open files as far as the system lets it. Raises UsageError where that is too little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = nodes + FILES_SPARED
    if resource.RLIM_INFINITY not in (soft, hard) and soft < needed:
        if hard < needed:
            raise UsageError(
                f"{nodes} connections are kept open, but only {hard} files may be: ulimit -n {needed}"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


async def _execute(confirmed: Confirmed, target: Target, rounds: Rounds) -> int:
    from straggler.engine.bandwidth.execute import Sweep

    sweep = Sweep(
        confirmed,
        {node.id: node for node in target.nodes},
        cast("LoadTransport", target.transport),
        rounds.out,
        tell,
        f"{getpass.getuser()} on {socket.gethostname()} (process {os.getpid()})",
    )
    work = asyncio.ensure_future(sweep.run(rounds.next))
    stopped = _stop_on_signals(work)
    try:
        await work
    except asyncio.CancelledError:
        if not stopped:
            raise
        return 130
    finally:
        await target.transport.close()
    if rounds.spared:
        output.note(spared(rounds))
    return 0


def spared(rounds: Rounds) -> str:
    many = "1 planned round was" if rounds.spared == 1 else f"{rounds.spared} planned rounds were"
    return f"the verdict stands: {many} not needed"


def _stop_on_signals(work: asyncio.Future[None]) -> list[int]:
    """The first signal stops the sweep and what it started on the nodes; further ones only say that this takes a moment."""
    stopped: list[int] = []

    def stop(number: int) -> None:
        stopped.append(number)
        if len(stopped) == 1:
            output.note("stopping what runs on the nodes")
            work.cancel()
        else:
            output.note("still stopping; should this end before, the nodes end it by themselves")

    loop = asyncio.get_running_loop()
    for number in STOPS:
        loop.add_signal_handler(number, stop, number)
    return stopped


def tell(event: Event) -> None:
    """One line on stderr for what an operator wants to know; a run that goes well says nothing when it starts."""
    from straggler.engine.bandwidth import execute as seen
    from straggler.engine.bandwidth.plans.base import folder
    from straggler.engine.nodesets import fold

    if isinstance(event, seen.Held):
        output.note(f"locked and idle: {fold(event.nodes)}")
        for name, why in event.away.items():
            output.note(f"{name} is not reached, its runs fail: {why}")
    elif isinstance(event, seen.RoundStarted):
        many = len(event.round.members)
        output.note(f"{folder(event.round)}: {f'{many} runs at once' if many > 1 else '1 run'}")
    elif isinstance(event, seen.Progress):
        if event.step is not seen.Step.STARTED:
            why = f": {event.why}" if event.why else ""
            output.note(f"  {' and '.join(event.member)}: {event.step.value}{why}")
    else:
        _tell_end(event)


def _tell_end(event: LetGo) -> None:
    for name, many in event.left.items():
        output.note(f"{name}: {many} processes of this sweep would not end; look at them there")
    for name, why in event.unheard.items():
        output.note(f"{name} could not be asked at the end ({why}); it ends what runs there by itself")
    clear = event.nodes - len(set(event.left) | set(event.unheard))
    output.note(f"nothing of this sweep runs any more on {clear} of {event.nodes} nodes")
