"""CPU seconds the node script costs a node besides the tools' own, and its size: it must not disturb training.

Every registered collector runs once with its tools replaced by ones that answer at once. The same snippets run bare, one
after the other without the runner, are taken off: they are the tools' and the snippets' own. Medians of paired runs.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from straggler.engine.collectors import COLLECTORS
from straggler.engine.script import SSM_LIMIT, Request, compose

AIM_SECONDS = 0.3
INSTANT = ("curl", "dmesg", "dpkg-query", "fi_info", "journalctl", "nvidia-smi", "rpm")
"""Tools that take long, or do not exist here: their own cost is not the script's."""


def cpu(argv: list[str], body: bytes, env: dict[str, str]) -> float:
    """User and system seconds of a shell and of everything it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        argv, input=body, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bare() -> bytes:
    helpers = (
        'have() { command -v "$1" >/dev/null; }; missing() { exit 120; }; denied() { exit 121; }; absent() { exit 122; }\n'
        'priv() { "$@"; }; beside() { shift; "$@"; }; besides() { :; }; S_SINCE=0 S_UNTIL=0\n'
    )
    return (
        helpers + "".join(f"(\n{one.snippet}\n) </dev/null >/dev/null 2>&1\n" for one in COLLECTORS)
    ).encode()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--smoke", action="store_true", help="few runs, for CI")
    runs = 3 if options.parse_args().smoke else 15
    whole = compose(Request(COLLECTORS)).body
    with tempfile.TemporaryDirectory() as name:
        for tool in INSTANT:
            path = Path(name, tool)
            path.write_text("#!/bin/sh\n:\n")
            path.chmod(0o755)
        env = {"PATH": f"{name}:/usr/bin:/bin"}
        pairs = [(cpu(["sh"], whole, env), cpu(["sh"], bare(), env)) for _ in range(runs)]
    total, own = (statistics.median(one) for one in zip(*pairs, strict=True))
    cost = statistics.median(a - b for a, b in pairs)
    print(
        f"node script: {len(COLLECTORS)} collectors, {len(whole)} bytes (aim <= {SSM_LIMIT}: ratio {len(whole) / SSM_LIMIT:.2f})"
    )
    print(
        f"node script: {total:.3f} s CPU, snippets and tools alone {own:.3f} s, the script itself {cost:.3f} s "
        f"(aim <= {AIM_SECONDS}: ratio {cost / AIM_SECONDS:.2f}; {runs} paired runs)"
    )
    return int(len(whole) > SSM_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
