"""The time of interest: `--since` and `--until` as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from straggler.engine.errors import UsageError
from straggler.engine.model import Window

DEFAULT_SINCE = "2h"
_AGO = re.compile(r"(\d{1,5})\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def window(since: str | None, until: str | None, now: float) -> Window:
    """From words to Unix seconds. `2h`, `30m`, `3d` count back from now; dates are ISO 8601, UTC unless they say otherwise."""
    upto = _moment(until, now, "--until") if until else now
    start = _moment(since or DEFAULT_SINCE, now, "--since")
    if start >= upto:
        raise UsageError("--since must lie before --until")
    return Window(start, upto)


def _moment(text: str, now: float, option: str) -> float:
    if ago := _AGO.fullmatch(text.strip().lower()):
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is no time; write 2h, 30m, 3d or 2026-11-30T03:12Z") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def utc(moment: float) -> str:
    """`2026-11-30T03:12:07Z`; `(no date)` for what no calendar has: a journal may say anything."""
    try:
        return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "(no date)"
