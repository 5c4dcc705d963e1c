"""The real program in a real terminal, driven by its keys: nothing here knows any of its code."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.terminal import Terminal, ended, straggler

pytestmark = pytest.mark.tmux
SESSION = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    """Opens terminals and closes them whatever happens."""
    opened: list[Terminal] = []

    def begin(*words: str, size: tuple[int, int] = (80, 24), **env: str) -> Terminal:
        home = tmp_path / f"home{len(opened)}"
        home.mkdir()
        opened.append(Terminal(home, *words, size=size, **env))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


def session_in(text: str) -> str:
    found = SESSION.search(text)
    assert found is not None, text
    return found[0]


def test_from_the_first_question_to_the_remedy_and_back(start) -> None:  # type: ignore[no-untyped-def]
    terminal = start()
    terminal.until("What do you want to look at?", "efa-down", "READ-ONLY")
    terminal.keys("/")
    terminal.type("efa-down")
    terminal.keys("Enter")
    terminal.until("efa-down", gone="xid-79")
    terminal.keys("4", "Enter")
    terminal.until("What hurts?", "demo efa-down")
    terminal.keys("e")
    terminal.type("fi_getinfo failed")
    terminal.keys("Enter")
    terminal.until("this speaks of: EFA is not used")
    terminal.keys("Enter")
    terminal.until("Gather", "16/16", "an EFA port is not ACTIVE", "worker-005")
    terminal.keys("Enter")
    terminal.until("Not this if")
    terminal.keys("?")
    terminal.until("Words on this screen", "re-check")
    terminal.keys("Escape")
    terminal.until("Not this if", gone="Words on this screen")
    terminal.keys("Escape")
    shown = terminal.until("an EFA port is not ACTIVE", "Enter remedy")
    assert "saved ✓" in shown
    terminal.keys("q")
    shown = terminal.until("status=")
    session = session_in(shown.replace("\n", ""))
    assert "is saved" in shown
    assert f"straggler replay {session}" in shown.replace("\n", " ")
    assert terminal.status() == 0


def test_a_resize_to_wide_and_back_keeps_what_was_being_read(start) -> None:  # type: ignore[no-untyped-def]
    terminal = start("--demo", "efa-down", "--symptom", "everything")
    terminal.until("16/16", "1 Symptom  2 Nodes  3 Output")
    terminal.keys("Enter")
    terminal.until("Not this if")
    terminal.resize(120, 40)
    terminal.until("worker-001", "an EFA port is not ACTIVE", "Not this if", gone="1 Symptom  2 Nodes")
    terminal.resize(50, 12)
    terminal.until("50×12 is too small")
    terminal.resize(80, 24)
    terminal.until("1 Symptom  2 Nodes", "Not this if", gone="too small")
    terminal.keys("q")
    assert terminal.status() == 0


def test_what_had_been_shown_survives_kill_9(start) -> None:  # type: ignore[no-untyped-def]
    terminal = start("--demo", "efa-down", "--symptom", "everything")
    terminal.until("an EFA port is not ACTIVE", "worker-005")
    os.kill(terminal.program(), signal.SIGKILL)
    terminal.until("status=137")
    listed = straggler(terminal.home, "sessions").stdout
    assert "killed" in listed
    session = session_in(listed)
    told = straggler(terminal.home, "replay", session, "--format", "text")
    assert told.returncode == 0, told.stderr
    assert "an EFA port is not ACTIVE" in told.stdout
    assert "worker-005" in told.stdout
    again = Terminal(terminal.home, "replay", session)
    try:
        again.until("an EFA port is not ACTIVE", "worker-005")
        again.keys("q")
        assert again.status() == 0
    finally:
        again.close()


def test_a_closed_terminal_leaves_a_whole_session(start) -> None:  # type: ignore[no-untyped-def]
    terminal = start("--demo", "efa-down", "--symptom", "everything")
    terminal.until("16/16", "an EFA port is not ACTIVE")
    pid = terminal.program()
    terminal.do("kill-session")
    assert ended(pid)
    listed = straggler(terminal.home, "sessions").stdout
    assert "killed" not in listed
    told = straggler(terminal.home, "replay", session_in(listed), "--format", "text")
    assert told.returncode == 0
    assert "an EFA port is not ACTIVE" in told.stdout


def test_keys_that_terminals_take_for_themselves_do_no_harm(start) -> None:  # type: ignore[no-untyped-def]
    terminal = start("--demo", "efa-down", "--symptom", "everything")
    terminal.until("16/16")
    terminal.keys("C-s", "C-o", "C-d", "[", "{", "@", "M-x", "F5", "2")
    terminal.until("worker-001", "worker-016")
    terminal.keys("C-s", "5")
    terminal.until("an EFA port is not ACTIVE")
    terminal.keys("C-q")
    assert terminal.status() == 0


def colours(text: str) -> set[str]:
    """Colour settings in escape sequences, other than shades of grey."""
    found = re.findall(r"\x1b\[([0-9;]*)m", text)
    out: set[str] = set()
    for one in found:
        for red, green, blue in re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", one):
            if len({red, green, blue}) > 1:
                out.add(f"{red};{green};{blue}")
    return out


def test_no_color_draws_no_colour(start) -> None:  # type: ignore[no-untyped-def]
    plain = start("--demo", "efa-down", "--symptom", "everything", NO_COLOR="1", COLORTERM="truecolor")
    coloured = start("--demo", "efa-down", "--symptom", "everything", COLORTERM="truecolor")
    for one in (plain, coloured):
        one.do("set-option", "-g", "default-terminal", "tmux-256color")
        one.until("16/16", "✗ FAIL  an EFA port is not ACTIVE")
    assert colours(coloured.do("capture-pane", "-p", "-e"))
    assert not colours(plain.do("capture-pane", "-p", "-e"))


def test_ascii_sends_nothing_but_ascii(start) -> None:  # type: ignore[no-untyped-def]
    terminal = start("--ascii")
    terminal.do("pipe-pane", f"cat >{terminal.home}/sent")
    terminal.until("What do you want to look at?", "efa-down")
    terminal.keys("?")
    terminal.until("Help")
    terminal.keys("Escape")
    terminal.until("type them")
    terminal.keys("4", "Down", "Enter")
    terminal.until("What hurts?", "efa-down")
    terminal.keys("Enter")
    terminal.until("16/16", "X FAIL  an EFA port is not ACTIVE")
    terminal.resize(120, 40)
    terminal.until("Not this if")
    terminal.keys("q")
    assert terminal.status() == 0
    sent = (terminal.home / "sent").read_bytes()
    strange = sorted(set(re.findall(rb"[^\x00-\x7f]+", sent)))
    assert len(sent) > 10_000
    assert strange == []


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_dumb_terminal_gets_plain_text(start, term: str) -> None:  # type: ignore[no-untyped-def]
    terminal = start("--demo", "efa-down", TERM=term, size=(120, 150))
    shown = terminal.until("status=", "an EFA port is not ACTIVE")
    assert "status=0" in shown
    assert "worker-005" in shown


def test_a_pipe_gets_plain_text(tmp_path: Path) -> None:
    done = straggler(tmp_path, "--demo", "efa-down")
    assert done.returncode == 0
    assert "an EFA port is not ACTIVE" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_without_a_terminal_and_a_target_one_line_says_what_to_do(tmp_path: Path) -> None:
    done = straggler(tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "straggler check --demo" in done.stderr
