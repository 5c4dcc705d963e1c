"""`straggler sweep --run` up to the moment where something would be started: what is asked, refused and kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from straggler.engine.bandwidth.plans.base import Load
from straggler.engine.load_gate import Proposal
from straggler.tui import cli
from straggler.tui.commands import sweep_run

HOSTS = ("--hosts", "n[01-08]", "--gpus", "8")


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STRAGGLER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path / "out"


def refused(capsys: pytest.CaptureFixture[str], out: Path, *words: str) -> str:
    """The last line of stderr of a command that ends with status 2."""
    status = cli.main(["sweep", *words, "--out", str(out)])
    said = capsys.readouterr().err
    assert status == 2, said
    return said.splitlines()[-1]


def test_where_nobody_can_be_asked_the_exact_words_are_needed(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "add: --confirm '8 nodes'" in refused(capsys, out, *HOSTS, "--run")
    assert "'8 nodes' was asked for, '7 nodes' was said" in refused(
        capsys, out, *HOSTS, "--run", "--confirm", "7 nodes"
    )


def test_without_run_a_confirmation_starts_nothing(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", *HOSTS, "--confirm", "8 nodes", "--out", str(out)]) == 0
    assert "to run it:" in capsys.readouterr().out
    assert not list(out.glob("round-*/*.txt"))


def test_the_same_command_again_goes_on_with_its_plan(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mistyped, refused or stopped: the operator gives it once more, with all its options."""
    more = ("--sizes", "1M:8M", "--pairs", "n01:n02,n03:n04", "--run")
    first = refused(capsys, out, *HOSTS, *more)
    kept = (out / "plan.json").read_bytes()
    assert refused(capsys, out, *HOSTS, *more) == first
    assert (out / "plan.json").read_bytes() == kept
    assert "cannot change the plan" in refused(capsys, out, *HOSTS, "--sizes", "1M:9M", "--run")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--local", "--gpus", "8"), "at least two nodes"),
        ((*HOSTS, "--binary", "/bin/rm"), "--run starts nccl-tests' programs by mpirun and nothing else"),
        ((*HOSTS, "--mpirun", "/bin/sh"), "--run starts nccl-tests' programs by mpirun and nothing else"),
        ((*HOSTS, "--mca", "plm_rsh_agent=sh -c reboot"), "--run starts nccl-tests' programs by mpirun"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anybody_is_asked(
    out: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    assert says in refused(capsys, out, *words, "--run", "--confirm", "8 nodes")


def test_the_question_names_nodes_command_runs_and_how_long(out: Path) -> None:
    load = Load("/opt/all_reduce_perf", 8, 0, (8 << 20, 8 << 30), 20, 5, 240, 10, 60)
    names = tuple(f"worker-{number:03}" for number in range(1, 17))
    lines = list(sweep_run.described(Proposal(names, load, 11, 136), 6))
    assert lines[0] == "--run puts load on 16 nodes: worker-[001-016]"
    assert lines[1].startswith("command: mpirun -x STRAGGLER_LOAD ")
    assert "-host worker-001:8,worker-002:8" in lines[1]
    assert lines[2].startswith("runs: 136 at most, in 6 rounds and up to 5 more where a verdict needs them")
    assert lines[3].startswith("duration: about 6 min, at most 46 min; every run is ended after 240 s")
    [exact] = [
        line for line in sweep_run.described(Proposal(names, load, 6, 56), 6) if line.startswith("runs")
    ]
    assert exact == "runs: 56 at most, in 6 rounds; pairs of one round run at once"


def test_a_proposal_is_for_one_sweep_only() -> None:
    load = Load("/opt/all_reduce_perf", 8, 0, (1, 1), 1, 1, 1, 1, 1)
    one, other = Proposal(("a", "b"), load, 1, 1), Proposal(("a", "b"), load, 1, 1)
    assert one.mark != other.mark
    assert dataclasses.replace(other, mark=one.mark) == one
