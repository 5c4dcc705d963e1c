"""What the journal costs the event loop: the longest stretch it was kept busy while 1,024 nodes report at once.

Printed: the longest and the median gap between two ticks of the loop, with the journal and without, and the records a
second that reach the disk. Aim: no gap above 50 ms that is not there without it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from straggler.engine.model import Observation, Status, Vantage
from straggler.engine.session import Journal

TICK = 0.001


async def run(journal: Journal | None, nodes: int, readings: int, size: int) -> tuple[list[float], float]:
    """Gaps between ticks in seconds, and the seconds until everything was handed on."""
    gaps: list[float] = []
    heard = 0
    done = asyncio.Event()
    text = ("GPU 00000000:5C:00.0  Temperature 34 C  Power 120.45 W  key=value\n" * (size // 66 + 1))[:size]

    def hear() -> None:
        nonlocal heard
        heard += 1
        if heard == nodes * readings:
            done.set()

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK)
            gaps.append(time.perf_counter() - before - TICK)

    ticking = asyncio.create_task(tick())
    begun = time.perf_counter()
    for reading in range(readings):
        for number in range(nodes):
            seen = Observation(f"c{reading}", f"worker-{number:04}", Vantage.HOST_ROOT, Status.OK, text=text)
            if journal is None:
                hear()
            else:
                journal.append(seen, then=hear)
            if number % 16 == 0:
                await asyncio.sleep(0)
    await done.wait()
    took = time.perf_counter() - begun
    ticking.cancel()
    return gaps or [0.0], took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--readings", type=int, default=20)
    parser.add_argument("--size", type=int, default=4096, help="characters of one reading")
    parser.add_argument("--smoke", action="store_true", help="few nodes, for CI")
    args = parser.parse_args()
    if args.smoke:
        args.nodes = 64
    for name in ("without", "with"):
        with tempfile.TemporaryDirectory() as state:
            journal = Journal.create({"nodes": []}, Path(state)) if name == "with" else None
            gaps, took = asyncio.run(run(journal, args.nodes, args.readings, args.size))
            if journal is not None:
                journal.close()
        rate = args.nodes * args.readings / took
        print(
            f"{name:<8} longest gap {max(gaps) * 1000:6.1f} ms, median {statistics.median(gaps) * 1000:5.2f} ms, "
            f"{rate:9.0f} records/s"
        )


if __name__ == "__main__":
    main()
