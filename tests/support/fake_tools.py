"""Real snippets against recorded tools: scripts on PATH that answer recorded arguments and fail loudly on any other.

The shell is real and so are the runner of the node script, its frames and its checksums; only the vendor's tools are recordings.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from straggler.engine.collectors.base import AnyCollector
from straggler.engine.frames import Block, FrameReader
from straggler.engine.script import Request, compose

UNRECORDED = 97
"""Exit code of a tool that was called with arguments nobody recorded."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a recorded tool leaves for one argument list."""

    out: str = ""
    err: str = ""
    code: int = 0


@dataclass
class FakeTools:
    """A directory of recorded tools that stands first on PATH."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)

    def tool(self, name: str, answers: Mapping[Sequence[str], Said | str]) -> None:
        """`answers`: argument list -> what the tool prints. The list ("*",) answers every call."""
        recorded = self.home / "recorded"
        recorded.mkdir(exist_ok=True)
        cases = []
        for at, (args, said) in enumerate(answers.items()):
            said = Said(said) if isinstance(said, str) else said
            base = recorded / f"{name}.{at}"
            base.with_suffix(f".{at}.out").write_bytes(said.out.encode())
            base.with_suffix(f".{at}.err").write_bytes(said.err.encode())
            out, err = (shlex.quote(str(base.with_suffix(f".{at}.{one}"))) for one in ("out", "err"))
            pattern = "*" if tuple(args) == ("*",) else shlex.quote(" ".join(args))
            cases.append(f"{pattern}) cat {out}; cat {err} >&2; exit {said.code} ;;")
        loud = f'*) echo "{name}: not recorded: $*" >&2; exit {UNRECORDED} ;;'
        script = '#!/bin/sh\ncase "$*" in\n' + "\n".join([*cases, loud]) + "\nesac\n"
        self._executable(name, script)

    def script(self, name: str, body: str) -> None:
        """A tool with behaviour of its own (one that hangs, one that prints without end)."""
        self._executable(name, f"#!/bin/sh\n{body}\n")

    def _executable(self, name: str, text: str) -> None:
        path = self.home / name
        path.write_text(text)
        path.chmod(0o755)

    def hide(self, *names: str) -> str:
        """PATH on which `names` do not exist: every other program of the machine is linked into one directory."""
        box = self.home / "box"
        box.mkdir(exist_ok=True)
        for folder in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for one in Path(folder).iterdir() if Path(folder).is_dir() else ():
                link = box / one.name
                if one.name not in names and not link.exists() and not link.is_symlink():
                    link.symlink_to(one)
        return f"{self.home}:{box}"

    def run(
        self,
        collector: AnyCollector,
        *,
        shell: str = "dash",
        hide: Sequence[str] = (),
        since: int = 0,
        until: int = 2_000_000_000,
        prefix: str = "",
    ) -> Block:
        """The block this collector's snippet leaves, run by the real node script under `shell`.

        `hide`: tools that are not to exist on this node. `prefix`: shell text put before the snippet (overrides of helpers).
        """
        script = compose(Request((collector,), since, until))
        text = script.body.decode()
        if hide:
            # The runner appends the usual directories to PATH; hidden tools must not come back from there.
            text = _without_usual_path(text)
        if prefix:
            text = text.replace("\ns_main\n", f"\n{prefix}\ns_main\n")
        path = self.hide(*hide) if hide else f"{self.home}:{os.environ['PATH']}"
        done = subprocess.run(
            [f"/bin/{shell}"] if "/" not in shell else shell.split(),
            input=text.encode(),
            capture_output=True,
            timeout=60,
            env={**os.environ, "PATH": path, **self.env},
            check=False,
        )
        [block] = [one for one in FrameReader(script.nonce, 1).feed(done.stdout) if isinstance(one, Block)]
        return block


def _without_usual_path(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("PATH=")) + "\n"
