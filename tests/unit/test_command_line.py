"""The contract of the command line: exit statuses, and one clear line for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def straggler(*args: str, state: Path, stdin: str | None = "") -> subprocess.CompletedProcess[str]:
    import os

    env = {**os.environ, "XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(state), "HOME": str(state)}
    return subprocess.run(
        [sys.executable, "-m", "straggler.tui", *args],
        input=stdin,
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["chek"], "did you mean check"),
        (["check"], "--demo"),
        (["check", "--demo", "efa-dwn"], "did you mean efa-down"),
        (["check", "--demo", "--demo-nodes", "0"], "between 1 and"),
        (["check", "--demo", "--demo-nodes", "many"], "not a number"),
        (["check", "--demo-nodes", "4", "--local"], "belongs to --demo"),
        (["check", "--demo", "--symptom", "gpu-error"], "did you mean gpu-errors"),
        (["check", "--demo", "--since", "yesterday"], "2h"),
        (["check", "--demo", "--since", "1h", "--until", "2h"], "before"),
        (["check", "--demo", "--fail-on", "P9"], "P0"),
        (["check", "--demo", "--require-coverage", "200"], "0 to 100"),
        (["check", "--demo", "--local"], "not allowed with"),
        (["check", "--hosts", ""], "host"),
        (["check", "--hosts", "a[1-"], "a[1-"),
        (["check", "--hosts", "a,a"], "a"),
        (["check", "--hosts", "@/nonexistent/hosts"], "/nonexistent/hosts"),
        (["replay", "no-such-session"], "straggler sessions"),
        (["--symptom", "zzz", "--demo"], "everything"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(args: list[str], hint: str, tmp_path: Path) -> None:
    done = straggler(*args, state=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert hint in done.stderr


def test_a_diagnostic_that_completed_exits_0_whatever_it_found(tmp_path: Path) -> None:
    done = straggler("check", "--demo", "efa-down", "--demo-nodes", "4", "--seed", "1", state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 nodes read" in done.stdout


def test_nothing_at_all_could_be_read_exits_1(tmp_path: Path) -> None:
    done = straggler("check", "--demo", "unreachable-nodes", "--demo-nodes", "2", state=tmp_path)
    assert done.returncode == 1
    assert "nothing could be read from any of 2 nodes" in done.stderr
    assert "0 of 2 nodes read" in done.stdout


def test_a_finding_as_urgent_as_asked_for_exits_3(tmp_path: Path) -> None:
    args = ["check", "--demo", "efa-down", "--demo-nodes", "4", "--seed", "1"]
    assert straggler(*args, "--fail-on", "P2", state=tmp_path).returncode == 3
    healthy = ["check", "--demo", "healthy", "--demo-nodes", "4", "--fail-on", "P2"]
    assert straggler(*healthy, state=tmp_path).returncode == 0


def test_too_little_coverage_exits_3(tmp_path: Path) -> None:
    args = ["check", "--demo", "unreachable-nodes", "--demo-nodes", "6"]
    assert straggler(*args, "--require-coverage", "99", state=tmp_path).returncode == 3
    assert straggler(*args, "--require-coverage", "10", state=tmp_path).returncode == 0


def test_the_same_seed_prints_the_same_bytes(tmp_path: Path) -> None:
    args = ["check", "--demo", "xid-79", "--demo-nodes", "5", "--seed", "7", "--format", "json"]
    first, second = straggler(*args, state=tmp_path), straggler(*args, state=tmp_path)
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["schema"] == 1


def test_the_json_keeps_to_its_contract(tmp_path: Path) -> None:
    done = straggler("check", "--demo", "xid-79", "--demo-nodes", "3", "--format", "json", state=tmp_path)
    said = json.loads(done.stdout)
    assert {"schema", "target", "started", "ended", "window", "nodes", "coverage", "findings"} <= said.keys()
    assert {"id", "names", "group", "instance_type", "placement", "state"} == said["nodes"][0].keys()
    assert {"nodes_total", "nodes_read", "unknown"} <= said["coverage"].keys()
    wanted = {
        "id", "also", "level", "priority", "title", "subjects", "evidence", "confidence", "false_alarm", "next_step",
        "reference", "route", "suggested_commands",
    }  # fmt: skip
    assert all(wanted <= one.keys() for one in said["findings"])
    fault = next(one for one in said["findings"] if one["id"] == "xid.79")
    assert fault["level"] == "FAIL"
    assert fault["evidence"]
    assert fault["suggested_commands"]


def test_a_closed_stdin_harms_nothing(tmp_path: Path) -> None:
    import os

    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m straggler.tui check --demo healthy --demo-nodes 2 <&-"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    import os

    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m straggler.tui check --demo efa-down --format json | head -c 10"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
    )
    assert done.stderr == ""


def test_version_and_help_say_what_it_is(tmp_path: Path) -> None:
    assert straggler("--version", state=tmp_path).stdout.startswith("straggler ")
    assert "--hosts" in straggler("check", "--help", state=tmp_path).stdout


@pytest.mark.parametrize(
    ("redirect", "status", "said"),
    [
        (">&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        (">/dev/full", 1, "could not be written to stdout: No space left on device"),
        ("--format json >/dev/full", 1, "could not be written to stdout"),
        ("--fail-on P1 >&-", 3, ""),
        ("--fail-on P1 | true; exit ${PIPESTATUS[0]}", 3, ""),
        ("--since never 2>&-", 2, ""),
        ("--since never 2>/dev/full", 2, ""),
        ("--format xml 2>/dev/full", 2, ""),
    ],
)
def test_a_stream_that_is_closed_full_or_gone_leaves_the_exit_status_true(
    redirect: str, status: int, said: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            "bash",
            "-c",
            f'"$0" -m straggler.tui check --demo efa-down --demo-nodes 2 --state-dir "$1" {redirect}',
            sys.executable,
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == (1 if said else 0), done.stderr


def test_a_terminal_that_speaks_ascii_gets_the_report_in_ascii(tmp_path: Path) -> None:
    import os

    command = [sys.executable, "-m", "straggler.tui", "check", "--demo", "--state-dir", str(tmp_path)]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"\\x" not in done.stdout


@pytest.mark.parametrize(
    "args", [["check", "--demo", "--state-dir", "/proc/a\nb\x1b[31m"], ["check", "--demo", "--\x1b[31mx"]]
)
def test_an_escape_sequence_among_the_arguments_does_not_come_back(args: list[str], tmp_path: Path) -> None:
    done = straggler(*args, state=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["a" * 5000, "/", "a\x1b[31m", "../.."])
def test_what_is_no_session_is_one_line(name: str, tmp_path: Path) -> None:
    done = straggler("replay", "--format", "text", name, state=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "\x1b" not in done.stderr
