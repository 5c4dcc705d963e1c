"""`straggler sweep`: plan the pairs, write what an engine runs, read what has come, plan the next round."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.engine.errors import UsageError
from straggler.tui.commands import options, output, sweep_text

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Round
    from straggler.engine.bandwidth.plans import planning
    from straggler.engine.bandwidth.plans.base import Plan
    from straggler.engine.knowledge import Knowledge
    from straggler.engine.model import Placement
    from straggler.engine.targets.base import Target

OUT = Path("straggler-sweep")
ENGINE_NAMES = ("slurm", "kubernetes", "ssh")

_FIXED = (
    *("topology", "instance_type", "gpus", "efa", "sizes", "time", "binary", "mpirun"),
    *("env", "mca", "image", "tolerate"),
)
"""What makes a plan, by the name of its option."""

_ENGINE_OF = {"slurm": "slurm", "eks": "kubernetes", "kubernetes": "kubernetes"}


EPILOG = """\
how it goes: it plans who runs with whom and writes what runs that (a Slurm batch script, Kubernetes manifests or a
script over SSH); you run it; it reads the results as they appear, says which node, link or boundary is slow and how
sure that is, and plans the next runs only where they would settle something. Without --run nothing is loaded.

examples:
  straggler sweep --demo slow-node --out out --run      see it work, on simulated nodes
  straggler sweep --hosts 'node[001-064]' --instance-type p5.48xlarge --engine slurm --out out
  straggler sweep --out out                             what the results say so far, and what to run next
  straggler sweep --out out --follow                    the same, again and again until all results are there
  straggler matrix out                                  every pair
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    options.add_target(parser)
    what = parser.add_argument_group("what is run")
    what.add_argument(
        "--rounds", type=_count, metavar="N", help="rounds of pairs after the first, each node alone"
    )
    what.add_argument("--pairs", metavar="A:B,...", help="only these pairs")
    what.add_argument("--topology", type=Path, metavar="FILE", help="where the nodes stand, as JSON")
    what.add_argument("--instance-type", metavar="T", help="only nodes of this type; of what type they are")
    what.add_argument("--gpus", type=_count, metavar="N", help="GPUs per node, where the type is not known")
    what.add_argument(
        "--efa", type=_count, metavar="N", help="EFA devices per node, where they differ from the type's"
    )
    what.add_argument("--sizes", metavar="MIN:MAX", help="message sizes, like 8M:8G")
    what.add_argument("--time", type=_count, metavar="SECONDS", help="a run is ended after that")
    what.add_argument("--binary", metavar="PATH", help="all_reduce_perf on the nodes or in the image")
    what.add_argument("--mpirun", metavar="PATH", help="mpirun on the nodes or in the image")
    what.add_argument("--env", action="append", default=[], metavar="K=V", help="for every run (repeatable)")
    what.add_argument("--mca", action="append", default=[], metavar="K=V", help="for mpirun (repeatable)")
    how = parser.add_argument_group("how it is run")
    how.add_argument(
        "--engine", choices=ENGINE_NAMES, help="what the plan is written for (default: by the target)"
    )
    how.add_argument("--image", metavar="IMAGE", help="for --engine kubernetes; there is no default")
    how.add_argument(
        "--tolerate", action="append", default=[], metavar="KEY", help="a taint the pods tolerate"
    )
    how.add_argument("--follow", action="store_true", help="read results as they appear, until all are there")
    how.add_argument("--out", type=Path, default=OUT, metavar="DIR", help=f"the plan and its results ({OUT})")
    go = parser.add_argument_group("running it from here")
    # Not `run`: that is the command's own function.
    go.add_argument(
        "--run",
        dest="run_now",
        action="store_true",
        help="run it over SSH, after a confirmation; with --demo, simulate it",
    )
    go.add_argument("--confirm", metavar="TEXT", help="the confirmation, where nobody can be asked")
    go.add_argument("--sudo", action="store_true", help="use sudo -n to see who uses the GPUs of a node")
    go.add_argument("--allow-cpu", action="store_true", help="also nodes on which no GPU is seen")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from straggler.engine import knowledge
    from straggler.engine.bandwidth import sweep
    from straggler.engine.bandwidth.plans import planning

    known = knowledge.load(options.config_dir())
    target = options.target_of(args)
    plan = sweep.read(args.out)
    if plan is None:
        if target is None:
            raise UsageError(
                f"no target, and no plan in {args.out}; name one: --hosts HOSTS or --demo [SCENARIO]"
            )
        planned = planning.make(target.nodes, _wishes(args, target), known, _places(args.topology))
        for note in planned.notes:
            output.note(note)
        plan = planned.plan
        sweep.start(plan, args.out)
        output.put(sweep_text.introduction(plan, args.out))
        if not args.run_now:
            output.put(sweep_text.how_to_run(plan, plan.rounds, args.out))
            if target.kind == "demo":
                output.put(sweep_text.how_to_simulate(_demo_words(args, target), args.out))
    else:
        again = target is not None and _makes_it(plan, target, args, known)
        if not again:
            _same(plan, target, args)
        unfinished = bool(sweep.progress(plan, sweep.results(plan, args.out)).missing)
        more = () if again and unfinished else _more(plan, args)
        if more:
            plan, _ = sweep.extend(plan, more, args.out)
        if not args.run_now:
            _go_on(plan, args.out, known, more)
    if args.follow and not args.run_now and sweep.progress(plan, sweep.results(plan, args.out)).missing:
        from straggler.tui.commands.sweep_follow import follow

        asyncio.run(follow(args.out, known, output.put))
        _go_on(sweep.read(args.out) or plan, args.out, known, ())
    if args.run_now and target is not None and target.kind == "demo":
        from straggler.engine.simcluster.sweep import SimulatedSweep
        from straggler.tui.commands import sweep_demo

        assert isinstance(target.results, SimulatedSweep)
        return sweep_demo.run(args, plan, target.results, known, _demo_words(args, target))
    if args.run_now:
        from straggler.tui.commands import sweep_run

        args.target = target
        return int(sweep_run.run(args, plan))
    return 0


def _demo_words(args: argparse.Namespace, target: Target) -> list[str]:
    """The options that name this simulated cluster again."""
    words = ["--demo", str(target.spec["scenario"])]
    words += ["--demo-nodes", str(args.demo_nodes)] if args.demo_nodes is not None else []
    return words + (["--seed", str(args.seed)] if args.seed else [])


def _more(plan: Plan, args: argparse.Namespace) -> tuple[Round, ...]:
    """What --rounds and --pairs add to a plan that is there."""
    from straggler.engine.bandwidth import sweep

    if args.pairs is not None:
        return sweep.more_pairs(plan, _pairs(args.pairs))
    return sweep.more_rounds(plan, args.rounds) if args.rounds is not None else ()


def _go_on(plan: Plan, out: Path, known: Knowledge, more: Sequence[Round]) -> None:
    """Say what the results show; once all that was planned has one, plan the next round if it can settle more."""
    from straggler.engine.bandwidth import so_far, sweep

    if not sweep.results(plan, out):
        output.put(sweep_text.added(plan, more, out) if more else sweep_text.nothing_yet(plan, out))
        return
    found = so_far.judge(plan, out, known, time.time())
    output.put(sweep_text.verdict(plan, found))
    if more:
        output.put(sweep_text.added(plan, more, out))
    elif found.progress.missing or found.going:
        output.put(sweep_text.waiting(found, out))
    else:
        step = sweep.next_step(plan, found.attribution, int(known.number("sweep.repeats")))
        if step is None:
            output.put(sweep_text.the_end(found, out))
            return
        wider, _ = sweep.extend(plan, (step,), out)
        output.put(sweep_text.next_round(wider, step, out))


def _makes_it(plan: Plan, target: Target, args: argparse.Namespace, known: Knowledge) -> bool:
    """Whether this is the command the plan came from, given once more: a sweep that was refused or stopped goes on so."""
    from straggler.engine.bandwidth import sweep
    from straggler.engine.bandwidth.plans import planning

    try:
        made = planning.make(target.nodes, _wishes(args, target), known, _places(args.topology)).plan
    except UsageError:
        return False
    return sweep.text(made) == sweep.text(replace(plan, rounds=plan.rounds[: len(made.rounds)]))


def _same(plan: Plan, target: Target | None, args: argparse.Namespace) -> None:
    """A plan stands as it was made: nodes or options that differ are refused. Raises UsageError."""
    from straggler.engine.nodesets import fold
    from straggler.engine.safetext import safe

    if target is not None and not set(plan.nodes) <= {node.id for node in target.nodes}:
        raise UsageError(
            f"{args.out} holds the plan of other nodes ({safe(fold(plan.nodes), limit=80)}); name a new directory: --out DIR"
        )
    given = [name for name in _FIXED if getattr(args, name) not in (None, [])]
    if args.engine not in (None, plan.engine):
        given.append("engine")
    if given:
        raise UsageError(
            f"--{given[0].replace('_', '-')} cannot change the plan that is in {args.out}; name a new directory: --out DIR"
        )


def _places(path: Path | None) -> Mapping[str, Placement]:
    from straggler.engine.bandwidth.placement import read_topology

    return {} if path is None else read_topology(path)


def _wishes(args: argparse.Namespace, target: Target) -> planning.Wishes:
    from straggler.engine.bandwidth.plans import planning

    return planning.Wishes(
        engine="ssh" if args.run_now else args.engine or _ENGINE_OF.get(target.kind, "ssh"),
        rounds=args.rounds,
        pairs=_pairs(args.pairs) if args.pairs is not None else (),
        seed=args.seed,
        instance_type=args.instance_type,
        gpus=args.gpus,
        efa=args.efa,
        sizes=args.sizes,
        binary=args.binary,
        mpirun=args.mpirun,
        deadline=args.time,
        environment=tuple(args.env),
        mca=tuple(args.mca),
        image=args.image,
        tolerations=tuple(args.tolerate),
    )


def _pairs(text: str) -> tuple[tuple[str, str], ...]:

    found = []
    for item in filter(None, (one.strip() for one in text.split(","))):
        a, colon, b = item.partition(":")
        if not colon or not a or not b or ":" in b or a == b:
            raise UsageError(f"--pairs: {item!r} is not a pair; write them like A:B,C:D")
        found.append((a, b))
    if not found:
        raise UsageError("--pairs names no pair; write them like A:B,C:D")
    return tuple(found)
