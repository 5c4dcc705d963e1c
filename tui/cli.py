"""The front door: the command line, its one-line errors and its exit status. Everything heavy is imported by the command.

Exit status: 0 the diagnostic completed whatever it found, 1 a fatal prerequisite is missing or nothing could be read,
2 bad arguments, 3 completed and `--fail-on` or `--require-coverage` was not met, 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import NoReturn

from straggler.engine.errors import StragglerError, UsageError
from straggler.tui.commands import check, iam_policy, inspect, matrix, output, replay, sessions, sweep, ui
from straggler.tui.commands.base import Command

COMMANDS: tuple[Command, ...] = (
    Command("ui", "open the terminal UI (the default)", ui.arguments, ui.run),
    Command("check", "read the target, judge it, print the report", check.arguments, check.run),
    Command("matrix", "read pairwise bandwidth results, say who is to blame", matrix.arguments, matrix.run),
    Command("sweep", "plan pairwise bandwidth runs, read what comes of them", sweep.arguments, sweep.run),
    Command("inspect", "read captured outputs and logs: no cluster needed", inspect.arguments, inspect.run),
    Command("sessions", "list the sessions on this machine", sessions.arguments, sessions.run),
    Command("replay", "open a session again, offline", replay.arguments, replay.run),
    Command("iam-policy", "print the least privilege it needs on AWS", iam_policy.arguments, iam_policy.run),
)
"""Every command, in the order --help shows them."""

EXIT_OK, EXIT_FATAL, EXIT_USAGE, EXIT_FOUND, EXIT_INTERRUPTED = 0, 1, 2, 3, 130


EPILOG = """\
examples:
  straggler --demo                                   the simulated cluster; scenarios: healthy efa-down xid-79
                                                     unreachable-nodes slow-node slow-link cross-az tcp-fallback
                                                     majority-slow
  straggler --cluster NAME_OR_ARN --region R         a SageMaker HyperPod cluster, all its nodes through SSM
  straggler --hosts 'user@node[001-016]:22' --sudo   real machines by SSH
  straggler --hosts @hosts.txt --symptom gpu-errors
  straggler check --local --format json              without a screen
  straggler sweep --hosts @hosts.txt --instance-type p5.48xlarge --engine slurm --out sweep
  straggler matrix results/ --instance-type p5.48xlarge --topology nodes.json
  straggler replay SESSION

options of the terminal UI: straggler ui --help; of a command: straggler COMMAND --help
exit status: 0 completed, whatever was found; 1 nothing could be read or a prerequisite is missing; 2 bad arguments;
3 completed, and --fail-on or --require-coverage was not met

It only reads: commands that change anything are shown to you, never run."""


class OneLineParser(argparse.ArgumentParser):
    """argparse, but an error is one line that says what to do."""

    def error(self, message: str) -> NoReturn:
        output.note(f"{message}; see {self.prog} --help")
        self.exit(EXIT_USAGE)


class Version(argparse.Action):
    """Reading the version costs 25 ms: it is done for whoever asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"straggler {version('straggler')}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="straggler",
        description="A terminal troubleshooter for GPU training clusters. Without a command it opens the terminal UI.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=OneLineParser)
    for one in COMMANDS:
        sub = commands.add_parser(one.name, help=one.help, description=one.help, allow_abbrev=False)
        one.arguments(sub)
        sub.set_defaults(run=one.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Without a command's name in front, the arguments are the terminal UI's."""
    output.settle_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser()
    try:
        args = parser.parse_args(_with_command(words))
        return int(args.run(args))
    except UsageError as error:
        return _say(str(error), EXIT_USAGE)
    except StragglerError as error:
        return _say(str(error), EXIT_FATAL)
    except KeyboardInterrupt:
        return _say("interrupted; what had come is saved: straggler sessions", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody left to tell.
        output.drop_stdout()
        return EXIT_OK


def _with_command(words: list[str]) -> list[str]:
    names = [one.name for one in COMMANDS]
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        return ["ui", *words]
    if words[0].startswith("-") or words[0] in names:
        return words
    near = difflib.get_close_matches(words[0], names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"commands are: {' '.join(names)}"
    raise UsageError(f"unknown command {words[0]!r}; {hint}")


def _say(message: str, status: int) -> int:
    output.note(message)
    return status


if __name__ == "__main__":
    sys.exit(main())
