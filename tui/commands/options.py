"""The options every command shares (TARGET and ALL of the contract), and what they mean."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.engine.errors import UsageError
from straggler.tui.commands import output

if TYPE_CHECKING:
    from straggler.engine.targets.base import Target


def add_target(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("target")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--hosts", metavar="HOSTS", help="by SSH: 'user@node[001-016]:22,...' or @FILE")
    which.add_argument("--local", action="store_true", help="this machine")
    which.add_argument(
        "--cluster", metavar="NAME|ARN", help="a SageMaker HyperPod cluster, by AWS's APIs and SSM"
    )
    which.add_argument(
        "--demo",
        nargs="?",
        const="",
        metavar="SCENARIO",
        help="the built-in simulated cluster (see straggler --help)",
    )
    group.add_argument(
        "--demo-nodes", type=_count, default=None, metavar="N", help="how many simulated nodes"
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same demo (default 0)")
    aws = parser.add_argument_group("HyperPod (with --cluster)")
    aws.add_argument(
        "--region", metavar="R", help="AWS region (default: the ARN's, AWS_REGION, the profile's)"
    )
    aws.add_argument("--profile", metavar="P", help="AWS profile")
    aws.add_argument(
        "--orchestrator", choices=("eks", "slurm"), help="only to be told when it is not this one"
    )
    aws.add_argument(
        "--node", action="append", default=[], metavar="ID", help="only this node; may be given again"
    )
    aws.add_argument("--sample-nodes", type=_count, metavar="N", help="only N nodes, spread over the groups")


def add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what and how")
    group.add_argument(
        "--symptom", metavar="ID", help="what hurts; decides what is read (default: everything)"
    )
    group.add_argument("--error", metavar="TEXT", help="the exact error; it finds its symptom")
    group.add_argument(
        "--since", metavar="T", help="start of the time of interest: 2h, 3d, 2026-11-30T03:12Z (2h)"
    )
    group.add_argument("--until", metavar="T", help="end of it (now)")
    group.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help="results of pairwise runs to judge as well (straggler sweep --out DIR)",
    )
    group.add_argument("--sudo", action="store_true", help="on the nodes, use sudo -n for what needs root")
    add_state(parser)


def add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state-dir", type=Path, metavar="D", help="where sessions are kept")


def add_look(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ascii", action="store_true", help="only ASCII on the screen")
    parser.add_argument("--low-bandwidth", action="store_true", help="fewer repaints, no animation")


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def target_of(args: argparse.Namespace, pace: float = 0.0) -> Target | None:
    """The target the arguments name, or None when they name none. Raises UsageError or FatalError."""
    target, folder = _target_of(args, pace), getattr(args, "results", None)
    if folder is None:
        return target
    if target is None:
        raise UsageError(f"--results belongs to a target; without one: straggler matrix {folder}")
    if not folder.is_dir():
        raise UsageError(f"{folder} is no directory of results")
    from straggler.engine.bandwidth.watch import folder_source

    return replace(target, results=folder_source(folder), follow=True)


def _target_of(args: argparse.Namespace, pace: float) -> Target | None:
    if args.demo is None and args.demo_nodes is not None:
        raise UsageError("--demo-nodes belongs to --demo")
    if args.cluster is not None:
        return _hyperpod(args)
    if args.demo is not None or args.local or args.hosts is not None:
        _refuse_stray(args)
    if args.demo is not None:
        from straggler.engine.targets.demo import DEFAULT_NODES, DEFAULT_SCENARIO, demo_target

        count = DEFAULT_NODES if args.demo_nodes is None else args.demo_nodes
        return demo_target(args.demo or DEFAULT_SCENARIO, count, args.seed, pace)
    if args.local:
        from straggler.engine.targets.local import local_target

        return local_target()
    if args.hosts is not None:
        from straggler.engine.targets.hosts import hosts_target

        target = hosts_target(args.hosts, ask=ask_passphrase)
        for program in target.starts:
            output.note(f"your ssh config starts a local program: {program}")
        return target
    return None


def _hyperpod(args: argparse.Namespace) -> Target:
    from straggler.engine import knowledge
    from straggler.engine.targets.hyperpod import Scope, hyperpod_target

    if args.sample_nodes is not None and args.sample_nodes < 1:
        raise UsageError(f"--sample-nodes must be at least 1, not {args.sample_nodes}")
    if args.node and args.sample_nodes is not None:
        raise UsageError("--node names the nodes: leave --sample-nodes out")
    target = hyperpod_target(
        args.cluster,
        region=args.region,
        profile=args.profile,
        orchestrator=args.orchestrator,
        scope=Scope(tuple(args.node), args.sample_nodes),
        rate=knowledge.load(config_dir()).number("ssm.sessions-a-second"),
    )
    if target.hyperpod is not None:
        target.hyperpod.clients.on_trouble = output.note
    for line in target.notes:
        output.note(line)
    for program in target.starts:
        output.note(f"your AWS profile starts a local program: {program}")
    return target


def _refuse_stray(args: argparse.Namespace) -> None:
    """An option that only a HyperPod cluster has, on a target that is none, was meant for something."""
    given = ("--region", args.region), ("--profile", args.profile), ("--orchestrator", args.orchestrator)
    for name, value in (*given, ("--node", args.node), ("--sample-nodes", args.sample_nodes)):
        if value:
            raise UsageError(f"{name} belongs to --cluster")


def ask_passphrase(what: str) -> str | None:
    """Ask on the terminal, before any full screen; None where there is nobody to ask."""
    if not (sys.stdin is not None and sys.stdin.isatty()):
        return None
    try:
        return getpass.getpass(f"Passphrase for {what}: ")
    except (EOFError, OSError):
        return None


def config_dir() -> Path:
    """The user's own sections, thresholds and Xid verdicts live here."""
    import platformdirs

    override = os.environ.get("STRAGGLER_CONFIG_DIR")
    return Path(override) if override else platformdirs.user_config_path("straggler")
