"""What the terminal UI is opened with: the command line, resolved and checked before the full screen starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from straggler.engine.targets.base import Target
    from straggler.engine.targets.replay import Replay


@dataclass(frozen=True)
class Start:
    """`target` None: the chooser asks. `symptom` None: the intake asks, or everything is read when `guided` is off.

    `replay` is a recorded session to show instead of reading `target`. `clock` gives Unix seconds, and `shown_session` is
    what the title bar calls the session instead of its id: pictures and snapshots freeze both. `region` and `profile`: where
    the chooser looks for HyperPod clusters.
    """

    target: Target | None = None
    symptom: str | None = None
    guided: bool = False
    since: str | None = None
    until: str | None = None
    error_text: str | None = None
    sudo: bool = False
    state_dir: Path | None = None
    ascii_only: bool = False
    low_bandwidth: bool = False
    replay: Replay | None = None
    clock: Callable[[], float] = time.time
    shown_session: str = ""
    theme: str = "straggler-dark"
    region: str | None = None
    profile: str | None = None
