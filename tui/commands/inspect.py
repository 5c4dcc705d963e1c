"""`straggler inspect`: captured outputs and logs, read without a cluster."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.engine.errors import FatalError
from straggler.tui.commands import options, output

if TYPE_CHECKING:
    from straggler.engine.inspect.model import Inspected

STDIN = "-"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files or folders; - is standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    from straggler.engine.bandwidth.sweep import MANIFEST
    from straggler.engine.inspect import report

    files = inspected(args.paths)
    lost = [one for one in files if not one.read]
    if len(lost) == len(files):
        told = f"{lost[0].path} {lost[0].why}" if lost else "the folder is empty"
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise FatalError(
            f"nothing could be read: {told}{more}; name files that you may read, or - for standard input"
        )
    output.put(report.as_json(files) if args.format == "json" else report.as_text(files))
    for one in lost:
        output.note(f"{one.path} {one.why}")
    for path in args.paths:
        if (Path(path) / MANIFEST).is_file():
            output.note(f"{path} is a sweep; who is slow in it: straggler matrix {shlex.quote(path)}")
    return 0


def inspected(paths: list[str]) -> list[Inspected]:
    """Every file named or found in a named folder, in that order."""
    from straggler.engine import knowledge
    from straggler.engine.bandwidth.readers.files import contents
    from straggler.engine.inspect import reading
    from straggler.engine.sections import Sections

    known = knowledge.load(options.config_dir())
    sections = Sections.load(options.config_dir())
    found = []
    for path in paths:
        for name, data, why in [_stdin()] if path == STDIN else contents([path]):
            found.append(reading.unread(name, why) if why else reading.inspect(data, name, known, sections))
    return found


def _stdin() -> tuple[str, bytes, str]:
    from straggler.engine.bandwidth.readers.files import LARGEST

    try:
        data = sys.stdin.buffer.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        return STDIN, b"", f"cannot be read: {error}"
    if len(data) > LARGEST:
        return STDIN, b"", f"is larger than {LARGEST >> 20} MiB; it was not read"
    return STDIN, data, ""
