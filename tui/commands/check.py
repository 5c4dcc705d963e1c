"""`straggler check`: the whole way without a screen, for scripts and for the record."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.engine.errors import FatalError, UsageError
from straggler.tui.commands import options, output

if TYPE_CHECKING:
    from straggler.engine.diagnosis import Diagnosis
    from straggler.engine.judge import Report
    from straggler.engine.knowledge import Knowledge


def arguments(parser: argparse.ArgumentParser) -> None:
    options.add_target(parser)
    options.add_common(parser)
    out = parser.add_argument_group("output")
    out.add_argument("--format", choices=("text", "json"), default="text")
    out.add_argument(
        "--fail-on", choices=("P0", "P1", "P2"), help="exit 3 when a WARN or FAIL is this urgent or more"
    )
    out.add_argument("--require-coverage", type=_percent, metavar="PCT", help="exit 3 when less was readable")
    out.add_argument("--ascii", action="store_true", help="only ASCII in the text report")


def _percent(text: str) -> float:
    value = float(text.rstrip("%")) if text.rstrip("%").replace(".", "", 1).isdigit() else -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to 100")
    return value


def run(args: argparse.Namespace) -> int:
    from straggler.engine import knowledge, triage
    from straggler.engine.diagnosis import Diagnosis
    from straggler.engine.window import window

    known = knowledge.load(options.config_dir())
    symptom = symptom_of(args.symptom, args.error, known)
    plan = triage.plan(symptom, known)
    target = options.target_of(args)
    if target is None:
        raise UsageError("no target; name one: --cluster NAME, --hosts HOSTS, --local or --demo [SCENARIO]")
    now = target.now or time.time()
    diagnosis = Diagnosis(target, plan, known, window(args.since, args.until, now), sudo=args.sudo)
    asyncio.run(_gather(diagnosis, args.state_dir))
    return conclude(diagnosis, args)


def symptom_of(name: str | None, error: str | None, known: Knowledge) -> str:
    """The symptom asked for, else the one the error text speaks of, else everything."""
    from straggler.engine import triage

    if name:
        triage.symptom(name, known)
        return name
    return (triage.symptom_of_error(error, known) if error else None) or triage.EVERYTHING


async def _gather(diagnosis: Diagnosis, state: Path | None) -> None:
    with diagnosis.journaled(state):
        try:
            await diagnosis.run()
            await diagnosis.settle()
        finally:
            await diagnosis.close()
            for line in diagnosis.told:
                output.note(line)
    if diagnosis.saved is not None and diagnosis.saved.why:
        lead = "" if diagnosis.saved.saved else "this session is NOT SAVED: "
        output.note(f"{lead}{diagnosis.saved.why}")


def conclude(diagnosis: Diagnosis, args: argparse.Namespace) -> int:
    """Print the report and say by the exit status what was asked for."""
    from straggler.engine import sections
    from straggler.engine.export import report_json, report_text
    from straggler.engine.model import Priority

    judged = diagnosis.report()
    diagnosis.remember()
    report = sections.Sections.load(options.config_dir()).with_commands(
        judged, diagnosis.nodes, diagnosis.known
    )
    if args.format == "json":
        output.put(report_json.render(diagnosis, report))
    else:
        output.put(report_text.render(diagnosis, report, ascii_only=args.ascii or output.only_ascii()))
    if report.nodes_total and not report.nodes_read:
        raise FatalError(_nothing_read(report))
    if args.fail_on and any(
        f.level.is_fault and (f.priority or Priority.P2) <= args.fail_on for f in report.findings
    ):
        return 3
    if args.require_coverage is not None and report.coverage < args.require_coverage:
        return 3
    return 0


def _nothing_read(report: Report) -> str:
    reasons = sorted(report.uncovered, key=lambda one: -len(one.subjects))
    return f"nothing could be read from any of {report.nodes_total} nodes: " + (
        reasons[0].reason if reasons else "no answer"
    )
