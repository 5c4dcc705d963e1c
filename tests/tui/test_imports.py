"""What may be loaded when: the first paint waits for nothing heavy, and the engine never for a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = frozenset(
    {
        *("boto3", "botocore", "kubernetes", "numpy", "asyncssh", "cryptography", "ClusterShell", "msgspec"),
        *("markdown_it", "stamina", "tenacity", "importlib.metadata"),
        *("straggler.engine.knowledge", "straggler.engine.collectors", "straggler.engine.rules"),
    }
)
"""None of it is needed to paint a first frame."""

UNTIL_PAINTED = """
import json, sys
from straggler.tui import cli
from straggler.tui.app import StragglerApp

async def painted(app):
    with open(sys.argv.pop(), "w") as out:
        json.dump(sorted(sys.modules), out)
    app.exit()

StragglerApp._open = painted  # what the app does once its first frame is out
sys.exit(cli.main(sys.argv[1:-1]))
"""


def loaded_when_painted(home: Path, *words: str) -> set[str]:
    """The modules of the real program, in a terminal of its own, at the moment its first frame is out."""
    said = home / "modules.json"
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        os.chdir(home)
        os.execve(sys.executable, [sys.executable, "-c", UNTIL_PAINTED, *words, str(said)], environment)
    shown = b""
    try:
        while data := os.read(terminal, 65536):
            shown += data
    except OSError:
        pass  # how Linux says that the other end of a terminal was closed
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert said.exists(), shown.decode(errors="replace")
    return set(json.loads(said.read_text()))


@pytest.mark.parametrize(
    "words", [(), ("--demo",), ("--demo", "xid-79", "--demo-nodes", "1024"), ("--local",)]
)
def test_the_first_paint_waits_for_nothing_heavy(tmp_path: Path, words: tuple[str, ...]) -> None:
    loaded = loaded_when_painted(tmp_path, *words)
    assert "textual.app" in loaded
    assert loaded & HEAVY == set()


def loaded_by(line: str) -> set[str]:
    code = f"{line}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_engine_loads_no_terminal_and_nothing_heavy() -> None:
    loaded = loaded_by("import straggler.engine")
    assert not any(name.partition(".")[0] in ("textual", "rich") for name in loaded)
    assert not any(name.startswith("straggler.tui") for name in loaded)
    assert loaded & HEAVY == set()


def test_no_file_of_the_engine_loads_the_terminal() -> None:
    engine = Path(__file__).parents[2] / "engine"
    names = sorted(
        "straggler.engine." + ".".join(one.relative_to(engine).with_suffix("").parts)
        for one in engine.rglob("*.py")
        if one.name != "__init__.py"
    )
    loaded = loaded_by("\n".join(f"import {name}" for name in names))
    assert set(names) <= loaded
    assert not any(name.startswith(("textual", "straggler.tui")) for name in loaded)


def test_the_main_screen_is_there_without_numpy_until_a_matrix_is_shown() -> None:
    loaded = loaded_by("import straggler.tui.screens.main")
    assert "straggler.tui.panes.matrix" in loaded
    assert "numpy" not in loaded


def test_the_command_line_answers_without_the_terminal_ui() -> None:
    loaded = loaded_by("from straggler.tui import cli")
    assert not any(name.startswith("textual") for name in loaded)
    assert loaded & HEAVY == set()
