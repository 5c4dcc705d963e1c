"""`straggler sessions`: what has been recorded on this machine, newest first."""

from __future__ import annotations

import argparse
import json

from straggler.tui.commands import options, output


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    from straggler.engine.recovery import list_sessions
    from straggler.engine.safetext import safe
    from straggler.engine.session import sessions_dir
    from straggler.engine.window import utc

    found = list_sessions(args.state_dir)
    if args.format == "json":
        rows = [
            {
                "id": one.id,
                "path": str(one.path),
                "started": utc(one.started),
                "title": one.title,
                "symptom": one.symptom,
                "nodes": one.nodes,
                "observations": one.observations,
                "ended": one.ended,
                "bytes": one.size,
            }
            for one in found
        ]
        output.put(json.dumps({"schema": 1, "sessions": rows}, indent=1) + "\n")
        return 0
    lines = []
    if not found:
        where = safe(str(sessions_dir(args.state_dir)))
        lines.append(f"no sessions yet in {where}; straggler --demo makes one")
    for one in found:
        counts = f"{one.nodes:>5} nodes {one.observations:>7} readings {one.size / 1e6:>7.1f} MB"
        note = f"  ({safe(one.why)})" if one.why else ""
        lines.append(
            f"{safe(one.id):<24} {utc(one.started)}  {one.ended:<7} {counts}  {safe(one.title)}{note}"
        )
    output.put("".join(f"{line}\n" for line in lines))
    return 0
