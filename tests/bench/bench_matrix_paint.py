"""CPU time from a whole new matrix to the lines on the screen, and of one step of the cursor.

python tests/bench/bench_matrix_paint.py    aim: 100 ms for 1,024 nodes, all 523,776 pairs
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

import numpy as np
from textual.app import App, ComposeResult
from textual.geometry import Region

from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Attribution, Blame, Kind, Metric, Standing
from straggler.engine.bandwidth.view import Expected, MatrixView
from straggler.engine.model import Placement
from straggler.tui.panes.matrix import MatrixPane
from straggler.tui.theme import OWN_VARIABLES, THEMES

AIM_MS, FEW, NODES, RUNS, SIZE = 100.0, 64, 1024, 5, (200, 60)


class Bench(App[None]):
    def compose(self) -> ComposeResult:
        yield MatrixPane(id="matrix")

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(OWN_VARIABLES)


def fleet(count: int, revision: int) -> MatrixView:
    """Every pair run, one slow node, two per cent of noise, racks of eight."""
    rng = np.random.default_rng(revision)
    names = tuple(f"ip-10-{at // 256}-{at % 256}-7" for at in range(count))
    a, b = (ends.astype(np.int32) for ends in np.triu_indices(count, 1))
    value = 471 * (1 + 0.02 * rng.standard_normal(len(a)))
    value[(a == 3) | (b == 3)] *= 0.7
    matrix = Matrix(
        names,
        8 << 30,
        Metric.BUSBW,
        a,
        b,
        value,
        np.zeros(len(a), np.uint8),
        np.ones(len(a), np.int32),
        np.full(count, 480.0),
        np.zeros(count, np.uint8),
        np.ones(count, np.int32),
    )
    scores = dict.fromkeys(names, 1.0)
    blame = Blame(Kind.NODE, (names[3],), -0.3, 0.97, "", count - 1, count - 1, (names[3], names[9]))
    standings = {name: Standing.CULPRIT if at == 3 else Standing.CLEARED for at, name in enumerate(names)}
    found = Attribution((blame,), (), float(np.median(value)), float(np.mean(value)), scores, standings)
    places = {
        name: Placement("use1-az1", ("l1", f"l2-{at // 64}", f"l3-{at // 8}"))
        for at, name in enumerate(names)
    }
    return MatrixView(matrix, found, Expected(440, 490, 750, "p5 pairs"), places, revision)


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return 1000 * (time.process_time() - started)


async def measure() -> dict[str, float]:
    app = Bench(css_path=None)
    took: dict[str, float] = {}
    async with app.run_test(size=SIZE) as pilot:
        pane = app.query_one(MatrixPane)
        region = Region(0, 0, *pane.size)
        for count in (FEW, NODES):
            shows, steps, wides = [], [], []
            for revision in range(RUNS):
                view = fleet(count, revision)

                def show(view: MatrixView = view) -> None:
                    pane.show(view)
                    pane.render_lines(region)

                shows.append(timed(show))
                steps.append(timed(lambda: (pane.action_move(1, 1), pane.render_lines(region))))
                wides.append(timed(lambda: (pane.action_wide(), pane.render_lines(region))))
                await pilot.pause()
            took[f"show {count}"], took[f"step {count}"] = min(shows), min(steps)
            took[f"wide {count}"] = min(wides)
    return took


def main() -> int:
    took = asyncio.run(measure())
    width, height = SIZE
    many, few = NODES * (NODES - 1) // 2, FEW * (FEW - 1) // 2
    for what, words in (
        ("show", "a new matrix"),
        ("step", "a step of the cursor"),
        ("wide", "numbers for signs"),
    ):
        large, small = took[f"{what} {NODES}"], took[f"{what} {FEW}"]
        print(
            f"{words}: {large:.1f} ms of CPU time on {width}x{height} for {many:,} pairs (aim {AIM_MS:.0f} ms), "
            f"{large / small:.1f} times that of {few:,} pairs ({small:.1f} ms)"
        )
    # A smoke run on a busy machine shows that the bench works; it judges nothing.
    return int(took[f"show {NODES}"] > AIM_MS and "--smoke" not in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
