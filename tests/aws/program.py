"""The real program as a process of its own, told nothing of the tests' AWS but the variables a user would set."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.aws.fake import FakeAws


@dataclass(frozen=True, slots=True)
class Done:
    status: int
    out: str
    errors: str

    @property
    def line(self) -> str:
        """The last line said on stderr."""
        return self.errors.strip().splitlines()[-1] if self.errors.strip() else ""


def straggler(home: Path, aws: FakeAws | None, *words: str, **env: str) -> Done:
    """Run it to its end. Variables given as "" are unset."""
    kept = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": str(home / "state"),
    }
    given = {**kept, **(aws.environment() if aws else {}), **env}
    done = subprocess.run(
        [sys.executable, "-m", "straggler.tui", *words],
        env={name: value for name, value in given.items() if value},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout, done.stderr)
