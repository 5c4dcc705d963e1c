"""`straggler matrix`: results of pairwise bandwidth runs, from files: who is to blame, how sure, and what would settle it."""

from __future__ import annotations

import argparse
import difflib
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.engine.errors import FatalError, UsageError
from straggler.tui.commands import options, output

if TYPE_CHECKING:
    from straggler.engine.bandwidth.model import Run
    from straggler.engine.bandwidth.view import MatrixView
    from straggler.engine.knowledge import Knowledge
    from straggler.engine.model import Placement

FORMATS = ("text", "json", "csv", "svg")
SHOWN = 3
"""Files that are named of those that gave nothing for one reason."""


EPILOG = """\
It reads nccl-tests (text, JSON), fi_pingpong, iperf3 and CSV like a,b,busbw_gbs. Hosts come from the output, else from
the file's name: A__B.txt.

examples:
  straggler matrix out                                  the results of straggler sweep --out out
  straggler matrix logs/ --instance-type p5.48xlarge    .. of your own runs, set against what the type should reach
  straggler matrix logs/ --format svg > matrix.svg
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="outputs of a bandwidth tool, or folders of them"
    )
    parser.add_argument(
        "--topology",
        type=Path,
        metavar="FILE",
        help='where nodes stand, as JSON: {"node": {"az": ..., "layers": [...], "block": ..., "ultraserver": ...}}',
    )
    parser.add_argument(
        "--instance-type",
        metavar="T",
        help="what the nodes are: what they should reach, and the most they can",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="PATH", help="results of an earlier sweep to set beside these"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the report (text)")
    parser.add_argument("--ascii", action="store_true", help="only ASCII in the text report")


def run(args: argparse.Namespace) -> int:
    from straggler.engine import knowledge

    known = knowledge.load(options.config_dir())
    kind = instance_type(args.instance_type, known)
    places = topology(args.topology)
    view = read(args.paths, known, kind, places)
    if args.baseline is not None:
        view = _beside(view, args.baseline, read([args.baseline], known, kind, places))
    output.put(render(view, args.format, ascii_only=args.ascii or output.only_ascii()))
    return 0


def _beside(view: MatrixView, path: Path, before: MatrixView) -> MatrixView:
    """The matrix with an earlier one beside it. Raises UsageError where the two do not compare."""
    from straggler.engine.bandwidth import baseline

    one = baseline.of(before, str(path), path.stat().st_mtime)
    if one is None:
        raise UsageError(f"{path} holds no value to compare with")
    kept = (one.metric, one.size, one.collective)
    if kept != (view.matrix.metric.value, view.matrix.size, view.matrix.collective):
        raise UsageError(
            f"{path} does not compare: it has {one.collective or 'no collective'} at {one.size} bytes in {one.metric}"
        )
    return replace(view, earlier=one)


def topology(path: Path | None) -> Mapping[str, Placement]:
    from straggler.engine.bandwidth.placement import read_topology

    return read_topology(path) if path is not None else {}


def instance_type(name: str | None, known: Knowledge) -> str | None:
    """Raises UsageError for a type nothing is known of: it would be judged by nothing without a word."""
    if name is None or known.instance(name) is not None:
        return name
    near = difflib.get_close_matches(name.removeprefix("ml."), known.instances, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "leave --instance-type out to judge without an expectation"
    raise UsageError(f"nothing is known of the instance type {name!r}; {hint}")


def read(
    paths: Iterable[Path], known: Knowledge, kind: str | None, placements: Mapping[str, Placement]
) -> MatrixView:
    """Everything in these files, judged. Raises FatalError when no run is in them."""
    from straggler.engine.bandwidth import judging
    from straggler.engine.bandwidth.readers.files import read_paths

    paths = list(paths)
    if len(paths) == 1 and (planned := _of_a_sweep(paths[0], known, kind, placements)) is not None:
        return planned
    runs: list[Run] = []
    without: dict[str, list[str]] = defaultdict(list)
    for path, found, why in read_paths(paths):
        runs += [one for one in found if one.hosts]
        if why:
            without[why].append(str(path))
    notes = [_left_out(why, files) for why, files in without.items()]
    if not runs:
        raise FatalError(
            f"no bandwidth result was read: {notes[0]}"
            if notes
            else "no bandwidth result was read: there are no files there"
        )
    return judging.view(runs, known, instance_type=kind, placements=placements, notes=notes)


def _of_a_sweep(
    path: Path, known: Knowledge, kind: str | None, placements: Mapping[str, Placement]
) -> MatrixView | None:
    """The directory of `straggler sweep`: its plan knows the nodes, their type and places, and whose result a file is."""
    from straggler.engine.bandwidth import so_far, sweep

    plan = sweep.read(path)
    if plan is None:
        return None
    plan = replace(plan, instance_type=kind or plan.instance_type)
    found = so_far.judge(plan, path, known, time.time(), placements)
    if not found.progress.done:
        raise FatalError(f"no bandwidth result was read: no run of the plan in {path} has one yet")
    return found.view


def _left_out(why: str, files: list[str]) -> str:
    shown = ", ".join(files[:SHOWN])
    more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
    return f"{shown}{more}: {why}"


def render(view: MatrixView, form: str, *, ascii_only: bool = False) -> str:
    from straggler.engine.export import matrix_csv, matrix_json, matrix_svg, matrix_text

    if form == "text":
        return matrix_text.render(view, ascii_only=ascii_only)
    return {"json": matrix_json.render, "csv": matrix_csv.render, "svg": matrix_svg.render}[form](view)
