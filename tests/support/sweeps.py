"""Plans of a sweep and stand-ins for what their scripts call, for tests that run the scripts."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from straggler.engine import knowledge
from straggler.engine.bandwidth.plans import ENGINES
from straggler.engine.bandwidth.plans.base import Plan
from straggler.engine.bandwidth.plans.planning import Wishes, make
from straggler.engine.model import Node, Placement

KNOWN = knowledge.load()
NODES = [
    Node(f"ip-10-1-0-{n}", instance_type="ml.p5.48xlarge", placement=Placement(f"az{n // 3}"))
    for n in range(1, 5)
]


def planned(engine: str, **wishes: Any) -> Plan:
    return make(NODES, Wishes(engine, image="registry/nccl:1", **wishes), KNOWN, {}).plan


def written(plan: Plan, where: Path) -> Path:
    for name, text in ENGINES[plan.engine](plan, plan.rounds).items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return where


def fake(place: Path, name: str, body: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    path = place / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def run(argv: list[str], cwd: Path, tools: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **more}
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)


def quick(plan: Plan, tools: Path, **more: Any) -> Plan:
    """The plan with stand-ins for what is on the nodes, and a deadline a test can wait for."""
    return replace(
        plan, load=replace(plan.load, binary=str(tools / "perf"), mpirun=str(tools / "mpirun"), **more)
    )
