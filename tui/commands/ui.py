"""`straggler`: the terminal UI. Whatever may ask or fail on the command line is done before the full screen starts."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from straggler.engine.errors import UsageError
from straggler.tui.commands import check, options

if TYPE_CHECKING:
    from straggler.tui.start import Start

PACE = 1.2
"""Seconds a simulated node takes in the demo: long enough to watch it work, short enough not to wait."""


def arguments(parser: argparse.ArgumentParser) -> None:
    options.add_target(parser)
    options.add_common(parser)
    parser.add_argument("--guided", action="store_true", help="one question at a time, every step explained")
    options.add_look(parser)


def run(args: argparse.Namespace) -> int:
    if not full_screen():
        return _without_a_screen(args)
    if args.symptom or args.error or args.since or args.until:
        _refuse_early(args)
    from straggler.tui.start import Start as _Start

    start = _Start(
        target=options.target_of(args, pace=PACE),
        symptom=args.symptom,
        guided=args.guided,
        since=args.since,
        until=args.until,
        error_text=args.error,
        sudo=args.sudo,
        state_dir=args.state_dir,
        ascii_only=args.ascii,
        low_bandwidth=args.low_bandwidth,
        region=args.region,
        profile=args.profile,
    )
    return open_app(start)


def open_app(start: Start) -> int:
    if start.low_bandwidth:
        # Textual reads these while it is imported: five repaints a second, nothing moves by itself.
        os.environ.update(TEXTUAL_FPS="5", TEXTUAL_ANIMATIONS="none", TEXTUAL_SMOOTH_SCROLL="0")
    from straggler.tui.app import StragglerApp
    from straggler.tui.glyphs import locale_is_ascii
    from straggler.tui.theme import fitting

    start = replace(start, ascii_only=start.ascii_only or locale_is_ascii(), theme=fitting())
    # Libraries that warn on stderr would tear the screen, which is drawn there.
    logging.getLogger().addHandler(logging.NullHandler())
    app = StragglerApp(start=start)
    app.run()
    if app.parting:
        print(app.parting)
    return app.return_code or 0


def full_screen() -> bool:
    """A terminal on both sides that can move its cursor."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(one is not None and one.isatty() for one in streams) and os.environ.get("TERM") not in (
        None,
        "",
        "dumb",
    )


def _refuse_early(args: argparse.Namespace) -> None:
    """What cannot mean anything is said before the screen is taken over."""
    import time

    from straggler.engine import knowledge
    from straggler.engine.window import window

    if args.symptom:
        check.symptom_of(args.symptom, None, knowledge.load(options.config_dir()))
    window(args.since, args.until, time.time())


def _without_a_screen(args: argparse.Namespace) -> int:
    """No terminal (a pipe, TERM=dumb): the same diagnosis as plain text."""
    if args.demo is None and not args.local and args.hosts is None and args.cluster is None:
        raise UsageError("there is no terminal to draw on, and no target; try: straggler check --demo")
    return check.run(argparse.Namespace(**vars(args), format="text", fail_on=None, require_coverage=None))
