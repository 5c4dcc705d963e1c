"""Makes the pictures of this directory from the demo: the real screens, a frozen clock, the same pictures every time.

    python screenshots/make.py [NAME ...] [--png DIR]

Pictures are SVG; with --png they are also drawn as PNG where rsvg-convert or chromium is installed, to look at.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from textual.pilot import Pilot  # noqa: E402

from straggler.engine.targets.demo import demo_target  # noqa: E402
from straggler.tui.app import StragglerApp  # noqa: E402
from straggler.tui.screens.chooser import ChooserScreen  # noqa: E402
from straggler.tui.screens.help import HelpScreen  # noqa: E402
from straggler.tui.screens.intake import IntakeScreen  # noqa: E402
from straggler.tui.screens.offers import Offer, Offers, Source, sources  # noqa: E402
from tests.tui.asking_driving import Asking  # noqa: E402
from tests.tui.driving import app_for, gathered, holding, live_of, shown, until  # noqa: E402
from tests.tui.test_snapshots import settle  # noqa: E402

NARROW, WIDE = (80, 24), (120, 40)
NODES = 128
SLOW = ("worker-017", "worker-064", "worker-090", "worker-118")

App = StragglerApp
Drive = Callable[[Pilot[None]], Awaitable[None]]


@dataclass(frozen=True)
class Picture:
    """One picture: the app as started (given a scratch directory), its size, and what the operator does first."""

    app: Callable[[Path], App]
    size: tuple[int, int]
    drive: Drive
    no_colour: bool = False


# What is looked at.


def chooser(scratch: Path) -> App:
    """The real sources on a made-up home; only what would differ from machine to machine is fixed."""
    (scratch / "trn-prod.hosts").write_text("worker-[001-128]\n")
    config = scratch / ".ssh" / "config"
    config.parent.mkdir(exist_ok=True)
    config.write_text("Host gpu-a gpu-b\n  User ubuntu\nHost trn-login\n")
    fixed: Mapping[str, Offers] = {
        "local": Offers((Offer("", "local", "login-1"),)),
        "session": Offers(
            (
                Offer(
                    "a",
                    "2026-11-30 22:41Z",
                    "killed · 128 hosts by SSH: worker-[001-128] · gpu-errors",
                ),
                Offer(
                    "b",
                    "2026-11-30 03:12Z",
                    "clean · demo efa-down (16 simulated nodes) · everything",
                ),
            )
        ),
    }

    def settled(one: Source) -> Source:
        found = fixed.get(one.kind)
        return one if found is None else replace(one, load=lambda: found)

    return Asking(ChooserScreen([settled(one) for one in sources(scratch, scratch)]))


def intake(_: Path) -> App:
    target = demo_target("efa-down", NODES)
    return app_for(target, None, symptom=None)


def guided_intake(_: Path) -> App:
    return app_for(demo_target("efa-down", NODES), None, symptom=None, guided=True)


def gathering(scratch: Path) -> App:
    return app_for(holding(demo_target("efa-down", NODES), *SLOW), scratch)


def found(scenario: str, nodes: int = NODES) -> Callable[[Path], App]:
    return lambda scratch: app_for(demo_target(scenario, nodes), scratch)


def guided(scratch: Path) -> App:
    return app_for(demo_target("xid-79", NODES), scratch, guided=True)


def ascii_only(scratch: Path) -> App:
    return app_for(demo_target("unreachable-nodes", NODES), scratch, ascii_only=True)


def light(scratch: Path) -> App:
    return app_for(demo_target("xid-79", NODES), scratch, theme="straggler-light")


# What the operator does.


async def until_offered(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, ChooserScreen))
    screen = pilot.app.screen
    assert isinstance(screen, ChooserScreen)
    await until(pilot, lambda: len(screen.offers) == len(screen.sources))
    await pilot.pause()


async def until_asked(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, IntakeScreen))
    await pilot.press("3")
    await pilot.pause()


async def while_reading(pilot: Pilot[None]) -> None:
    app: Any = pilot.app
    await until(pilot, lambda: app.live and live_of(pilot).progress.done == NODES - len(SLOW))
    await shown(pilot)
    await settle(pilot)


def pressing(*keys: str) -> Drive:
    async def drive(pilot: Pilot[None]) -> None:
        await gathered(pilot)
        await settle(pilot)
        if keys:
            await pilot.press(*keys)
            await settle(pilot)

    return drive


async def with_help(pilot: Pilot[None]) -> None:
    await pressing("enter")(pilot)
    await pilot.press("question_mark")
    await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
    await pilot.pause()


PICTURES: Mapping[str, Picture] = {
    "chooser": Picture(chooser, NARROW, until_offered),
    "intake": Picture(intake, NARROW, until_asked),
    "intake-guided": Picture(guided_intake, WIDE, until_asked),
    "gathering": Picture(gathering, WIDE, while_reading),
    "findings-wide": Picture(found("xid-79"), WIDE, pressing()),
    "findings": Picture(found("efa-down"), NARROW, pressing()),
    "nodes": Picture(found("unreachable-nodes"), NARROW, pressing("2")),
    "remedy": Picture(found("efa-down"), NARROW, pressing("enter", "n")),
    "matrix-wide": Picture(found("slow-node", 16), WIDE, pressing("4", "n")),
    "matrix": Picture(found("slow-node", 16), NARROW, pressing("4", "n")),
    "matrix-zones-wide": Picture(found("cross-az", 16), WIDE, pressing("4", "n")),
    "matrix-zones": Picture(found("cross-az", 16), NARROW, pressing("4", "n")),
    "guided": Picture(guided, NARROW, pressing()),
    "help": Picture(found("efa-down"), NARROW, with_help),
    "mono": Picture(found("xid-79"), WIDE, pressing(), no_colour=True),
    "ascii": Picture(ascii_only, NARROW, pressing("2")),
    "light": Picture(light, WIDE, pressing()),
}


async def take(name: str, one: Picture, scratch: Path) -> Path:
    if one.no_colour:
        os.environ["NO_COLOR"] = "1"  # Textual takes it out of the environment again as it starts
    app = one.app(scratch)
    async with app.run_test(size=one.size) as pilot:
        await one.drive(pilot)
        path = HERE / f"{name}.svg"
        path.write_text(steady(app.export_screenshot(title="straggler", simplify=True), name))
    return path


def steady(svg: str, name: str) -> str:
    """Textual names the parts of a picture after a checksum of everything; a picture's own name differs less between runs."""
    start = svg.find("terminal-")
    mark = svg[start : svg.find("-", start + len("terminal-"))] if start >= 0 else ""
    svg = svg.replace(mark, f"terminal-{name}") if mark else svg
    # Without it, some viewers swallow the blank a piece of text begins with.
    return svg.replace("<svg ", '<svg xml:space="preserve" ', 1)


def draw_png(svg: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{svg.stem}.png"
    if tool := shutil.which("rsvg-convert"):
        command = [tool, "--zoom", "1.0", "--output", str(out), str(svg)]
    elif tool := next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    ):
        command = [tool, "--headless", "--no-sandbox", "--disable-gpu", f"--screenshot={out}", svg.as_uri()]
    else:
        raise SystemExit("no PNG without rsvg-convert or chromium; the SVG pictures are made")
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - the two converters named above


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {' '.join(PICTURES)}")
    parser.add_argument("--png", type=Path, metavar="DIR", help="draw PNGs there too")
    args = parser.parse_args()
    for name in args.names or PICTURES:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ["HOME"] = scratch
            path = asyncio.run(take(name, PICTURES[name], Path(scratch)))
        print(path.relative_to(HERE.parent))
        if args.png:
            draw_png(path, args.png)


if __name__ == "__main__":
    main()
