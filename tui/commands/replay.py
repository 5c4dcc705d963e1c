"""`straggler replay`: a recorded session again, judged by today's rules, nothing asked of anyone."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from straggler.tui.commands import check, options, output

if TYPE_CHECKING:
    from straggler.engine.diagnosis import Diagnosis
    from straggler.engine.recovery import Recovered


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", help="an id, the start of one, or a path (straggler sessions)"
    )
    parser.add_argument(
        "--speed", type=_speed, metavar="X", help="show it at X times its own pace (default: at once)"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), help="print the report instead of opening the screen"
    )
    options.add_state(parser)
    options.add_look(parser)


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a speed; 1 is the recorded pace, 10 is ten times as fast"
        )
    return value


def run(args: argparse.Namespace) -> int:
    from straggler.engine.targets.replay import Replay, replay_session
    from straggler.tui.commands import ui

    recovered = replay_session(args.session, args.state_dir)
    if recovered.why:
        output.note(recovered.why)
    if args.format is None and ui.full_screen():
        from straggler.tui.start import Start

        return ui.open_app(
            Start(
                replay=Replay(recovered, args.speed),
                state_dir=args.state_dir,
                ascii_only=args.ascii,
                low_bandwidth=args.low_bandwidth,
            )
        )
    chosen = argparse.Namespace(
        format=args.format or "text", ascii=args.ascii, fail_on=None, require_coverage=None
    )
    return check.conclude(diagnosis_of(recovered), chosen)


def diagnosis_of(recovered: Recovered) -> Diagnosis:
    """The recorded session as it stood at its last record."""
    from straggler.engine import knowledge, triage
    from straggler.engine.diagnosis import Diagnosis
    from straggler.engine.targets.replay import replay_target
    from straggler.engine.window import window

    known = knowledge.load(options.config_dir())
    symptom = recovered.text("symptom", triage.EVERYTHING)
    plan = triage.plan(symptom if symptom in known.symptoms else triage.EVERYTHING, known)
    target = replay_target(recovered)
    first = next((entry.at for entry in recovered.records), 0.0)
    diagnosis = Diagnosis(target, plan, known, recovered.window or window(None, None, first))
    diagnosis.started = diagnosis.ended = first
    for event in recovered.events:
        diagnosis.keep(event)
    return diagnosis
