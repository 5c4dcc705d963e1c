"""From what was asked to a session that can start: knowledge, plan and window, put together beside the event loop."""

from __future__ import annotations

from dataclasses import dataclass

from straggler.engine import knowledge, triage
from straggler.engine.acknowledge import Acks
from straggler.engine.diagnosis import Diagnosis
from straggler.engine.targets.base import Target
from straggler.engine.targets.replay import Replay
from straggler.engine.window import window
from straggler.tui.commands.options import config_dir
from straggler.tui.live import Live
from straggler.tui.remedies import Remedies
from straggler.tui.start import Start


@dataclass(frozen=True)
class Prepared:
    """All that may block or read files is done; `live` starts the session on the event loop."""

    diagnosis: Diagnosis
    remedies: Remedies
    acks: Acks
    start: Start
    replay: Replay | None

    def live(self) -> Live:
        return Live(self.diagnosis, self.start.clock, self.replay, self.start.shown_session)


def open_live(start: Start, target: Target, symptom: str | None, replay: Replay | None) -> Prepared:
    """Raises UsageError or FatalError: one line for the operator."""
    config = config_dir()
    known = knowledge.load(config)
    now = target.now or start.clock()
    named = symptom or (triage.symptom_of_error(start.error_text, known) if start.error_text else None)
    if replay is not None:
        recorded = replay.recovered
        named = symptom or (recorded.text("symptom") if recorded.text("symptom") in known.symptoms else None)
        span = recorded.window or window(start.since, start.until, now)
    else:
        span = window(start.since, start.until, now)
    plan = triage.plan(named or triage.EVERYTHING, known)
    diagnosis = Diagnosis(target, plan, known, span, sudo=start.sudo)
    return Prepared(diagnosis, Remedies(known, config), Acks.load(start.state_dir), start, replay)
