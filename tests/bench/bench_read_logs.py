"""Time to read 10,000 pair logs into runs, as a multiple of `cat` of the same files.

python tests/bench/bench_read_logs.py           aim: 5 times cat
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import combinations, islice
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from straggler.engine.bandwidth.model import RunState  # noqa: E402
from straggler.engine.bandwidth.readers.files import read_paths  # noqa: E402
from tests.support.bandwidth_logs import pair_log  # noqa: E402

AIM, LOGS, TIMES = 5.0, 10_000, 5


def write(home: Path, count: int) -> list[Path]:
    """Logs of two nodes with 8 GPUs each and 31 sizes, every one with values of its own."""
    nodes = [f"ip-10-1-{at // 200}-{at % 200}" for at in range(160)]
    paths = []
    for at, (a, b) in enumerate(islice(combinations(nodes, 2), count)):
        path = home / f"round-{at // 80:02d}" / f"{a}__{b}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(pair_log((a, b), seed=at, peak=480.0 - at % 7))
        paths.append(path)
    return paths


def processor_time() -> float:
    """Seconds used so far by this program and by those it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def best(work: Callable[[], object], times: int) -> float:
    """Seconds of processor time of the fastest of several: the others were disturbed."""
    took = []
    for _ in range(times):
        started = processor_time()
        work()
        took.append(processor_time() - started)
    return min(took)


def main() -> int:
    smoke = "--smoke" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        paths = write(home, 200 if smoke else LOGS)
        names = "\0".join(map(str, paths)).encode()
        words = ["xargs", "-0", "cat"]

        def cat() -> None:
            subprocess.run(words, input=names, stdout=subprocess.DEVNULL, check=True)

        def read() -> None:
            states = [run.state for _, runs, _ in read_paths([home]) for run in runs]
            assert states == [RunState.OK] * len(paths)

        cat()  # Both from the page cache: this is about reading, not about the disk.
        ours, theirs = best(read, TIMES), best(cat, TIMES)
        size = sum(path.stat().st_size for path in paths) / 1e6
    ratio = ours / theirs
    print(
        f"{len(paths)} logs ({size:.0f} MB) read in {ours:.2f} s of CPU time, cat {theirs:.2f} s: {ratio:.1f} times cat, "
        f"best of {TIMES} (aim {AIM:.0f})"
    )
    # A smoke run on a busy machine shows that the bench works; it judges nothing.
    return int(ratio > AIM and not smoke)


if __name__ == "__main__":
    raise SystemExit(main())
