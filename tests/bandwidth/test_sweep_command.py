"""`straggler sweep` as the operator uses it: plan, run elsewhere, look again, be told what to run next."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from straggler.engine import knowledge
from straggler.engine.bandwidth import so_far, sweep
from straggler.engine.bandwidth.model import Round, Run, RunState
from straggler.engine.bandwidth.plans.base import CLOSING, HEAD, TIMED_OUT, result
from straggler.engine.errors import UsageError
from straggler.engine.simcluster import nccl_tests
from straggler.engine.simcluster.scenarios import build
from straggler.tui import cli
from straggler.tui.commands.sweep_follow import follow

Sweep = Callable[..., str]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "sweep out"


@pytest.fixture
def run(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Sweep:
    """The command with --out; what it printed, or its one line of error."""
    monkeypatch.setenv("STRAGGLER_CONFIG_DIR", str(tmp_path / "config"))

    def sweep_command(*words: str, status: int = 0) -> str:
        found = cli.main(["sweep", *words, "--out", str(out)])
        said = capsys.readouterr()
        assert found == status, said.err
        return said.err if status else said.out

    return sweep_command


def simulate(out: Path, scenario: str, count: int = 16, only: Collection[str] | None = None) -> None:
    """Every run of the plan that has no result, as the simulated cluster would have it."""
    plan = sweep.read(out)
    assert plan is not None
    sims = build(scenario, count, 0)
    for one in plan.rounds:
        for member in one.members:
            path = out / result(one, member)
            if path.exists() or (only is not None and path.parent.name not in only):
                continue
            text = nccl_tests.log([sims[name] for name in member], one.number + (1000 if one.alone else 0))
            status = 0 if "Avg bus bandwidth" in text else 1
            path.write_text(f"{HEAD} {' '.join(member)}\n{text}\n{CLOSING} {status}\n")


def test_a_plan_says_what_it_takes_and_how_to_run_it(run: Sweep, out: Path) -> None:
    said = run("--demo", "healthy", "--engine", "slurm")
    assert "16 nodes of p5.48xlarge: worker-[001-016]" in said
    assert "6 rounds, 56 runs: each node alone, then 5 rounds of up to 8 pairs at once" in said
    assert "all 128 GPUs" in said
    assert "GPU hours" in said
    assert f"cd '{out}' && sbatch sweep-round-00-to-05.sbatch" in said
    assert f"straggler sweep --out '{out}'" in said


def test_a_plan_of_simulated_nodes_says_how_to_see_what_comes_of_it(run: Sweep, out: Path) -> None:
    said = run("--demo", "slow-node", "--seed", "2")
    assert f"straggler sweep --demo slow-node --seed 2 --out '{out}' --run" in said


def test_a_simulated_sweep_leaves_results_a_verdict_and_the_way_on(run: Sweep, out: Path) -> None:
    said = run("--demo", "slow-node", "--run")
    assert "verdict: worker-013 is slow" in said
    assert f"every pair: straggler matrix '{out}'" in said
    assert f"what to do: straggler --demo slow-node --results '{out}'" in said
    assert "verdict: worker-013 is slow" in run()


def test_a_simulated_sweep_goes_on_where_a_plan_was_made(run: Sweep, out: Path) -> None:
    run("--demo", "slow-link", "--rounds", "2")
    run("--demo", "slow-link", "--run")
    assert "none of" not in run()


def test_inspecting_a_sweep_says_which_command_judges_it(
    run: Sweep, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--demo", "healthy", "--rounds", "1", "--run")
    assert cli.main(["inspect", str(out)]) == 0
    assert f"straggler matrix '{out}'" in capsys.readouterr().err


def test_the_same_question_gives_the_same_files(run: Sweep, out: Path, tmp_path: Path) -> None:
    run("--demo", "healthy", "--seed", "3")
    first = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    out.rename(tmp_path / "elsewhere")
    run("--demo", "healthy", "--seed", "3")
    assert first == {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_directory_that_holds_something_else_is_left_alone(run: Sweep, out: Path) -> None:
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    assert "holds no plan" in run("--demo", "healthy", status=2)
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_way_is_said(run: Sweep, out: Path) -> None:
    out.write_text("a file")
    assert "name a new directory" in run("--demo", "healthy", status=2)
    assert out.read_text() == "a file"


def test_a_plan_stands_as_it_was_made(run: Sweep, out: Path) -> None:
    run("--demo", "healthy")
    before = (out / "plan.json").read_bytes()
    assert "holds the plan of other nodes" in run("--demo", "healthy", "--demo-nodes", "8", status=2)
    assert "--sizes cannot change the plan" in run("--sizes", "1M:1G", status=2)
    assert "--engine cannot change the plan" in run("--engine", "slurm", status=2)
    assert (out / "plan.json").read_bytes() == before
    assert "none of 56 runs has a result yet" in run("--demo", "healthy")


def test_without_target_and_plan_it_says_what_to_name(run: Sweep) -> None:
    assert "name one: --hosts" in run(status=2)


def test_kubernetes_without_an_image_writes_nothing(run: Sweep, out: Path) -> None:
    assert "--image" in run("--demo", "healthy", "--engine", "kubernetes", status=2)
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pairs", "worker-001"), "write them like A:B,C:D"),
        (("--pairs", "worker-001:worker-001"), "is not a pair"),
        (("--pairs", ","), "names no pair"),
        (("--pairs", "worker-001:nobody"), "'nobody'"),
        (("--sizes", "big"), "not a message size"),
        (("--env", "FOO"), "NAME=VALUE"),
        (("--topology", "/nowhere.json"), "cannot read the topology file"),
        (("--instance-type", "p4d.24xlarge"), "no node of this type"),
    ],
)
def test_a_wrong_wish_is_one_line_and_writes_nothing(
    run: Sweep, out: Path, words: tuple[str, ...], said: str
) -> None:
    error = run("--demo", "healthy", *words, status=2)
    assert said in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_ssh_hosts_of_unknown_type_are_not_guessed(run: Sweep, out: Path) -> None:
    assert "--gpus N" in run("--hosts", "n[1-4]", status=2)
    said = run("--hosts", "n[1-4]", "--gpus", "1", "--binary", "/opt/x", "--time", "30")
    assert "a run is ended after 30 s" in said
    assert "-host" in next(out.glob("*.sh")).read_text()


def test_nothing_in_the_plan_but_the_pairs_asked_for(run: Sweep, out: Path) -> None:
    said = run(
        "--demo", "healthy", "--pairs", "worker-001:worker-002,worker-003:worker-004,worker-001:worker-003"
    )
    assert "3 rounds, 7 runs" in said
    assert (out / "lists" / "round-01.list").read_text().count("\n") == 2


def test_healthy_nodes_are_not_accused_and_what_was_not_run_is_said(run: Sweep, out: Path) -> None:
    run("--demo", "healthy")
    simulate(out, "healthy")
    said = run()
    assert "56 of 56 runs have a result" in said
    assert "verdict:" not in said.replace("no verdict:", "")
    assert "80 pairs not run" in said
    assert "--rounds 15 plans them all" in said


def test_a_slow_node_is_named_after_the_planned_rounds(run: Sweep, out: Path) -> None:
    run("--demo", "slow-node")
    simulate(out, "slow-node")
    said = run()
    verdicts = [line for line in said.splitlines() if line.startswith("verdict:")]
    assert len(verdicts) == 1
    assert "is slow" in verdicts[0]


def test_a_verdict_is_there_while_rounds_are_still_missing(run: Sweep, out: Path) -> None:
    run("--demo", "slow-node")
    simulate(out, "slow-node", only=["round-00", "round-01", "round-02"])
    said = run()
    assert "32 of 56 runs have a result" in said
    assert "no result yet: round-03, 8 runs" in said
    assert not list(out.glob("*06*"))


def test_a_slow_link_is_repeated_alone_before_it_is_accused(run: Sweep, out: Path) -> None:
    run("--demo", "slow-link", "--rounds", "15")
    simulate(out, "slow-link")
    said = run()
    assert "verdict:" not in said.replace("no verdict:", "")
    assert "next: alone-001, with nothing beside it:" in said
    assert (out / "lists" / "alone-001.list").read_text().count("\n") == 1
    simulate(out, "slow-link")
    said = run()
    assert "verdict: the link" in said
    assert "another round would change nothing" in said


def test_rounds_are_added_where_the_plan_stands(run: Sweep, out: Path) -> None:
    run("--demo", "healthy", "--rounds", "2")
    said = run("--rounds", "5")
    assert "added: 3 rounds, 24 runs" in said
    assert "sweep-round-03-to-05" in said
    plan = sweep.read(out)
    assert plan is not None
    pairs = [member for one in plan.rounds for member in one.members if len(member) == 2]
    assert len(pairs) == len(set(pairs)) == 40
    run("--rounds", "99")
    plan = sweep.read(out)
    assert plan is not None
    assert len({member for one in plan.rounds for member in one.members if len(member) == 2}) == 120
    run("--pairs", "worker-001:worker-002")
    plan = sweep.read(out)
    assert plan is not None
    assert plan.rounds[-1] == Round(16, (("worker-001", "worker-002"),))


def test_where_one_round_says_too_little_the_schedule_goes_on_until_it_says_enough(
    run: Sweep, out: Path
) -> None:
    run("--demo", "slow-node", "--demo-nodes", "8", "--rounds", "1")
    for _ in range(10):
        simulate(out, "slow-node", 8)
        said = run()
        if "next:" not in said:
            break
    assert "verdict: worker-008 is slow" in said
    assert "another round would change nothing of this" in said
    plan = sweep.read(out)
    assert plan is not None
    assert len(plan.rounds) <= 6


def test_pairs_chosen_by_hand_are_not_widened_to_all(run: Sweep, out: Path) -> None:
    run("--demo", "healthy", "--pairs", "worker-001:worker-002,worker-003:worker-004")
    simulate(out, "healthy")
    run()
    plan = sweep.read(out)
    assert plan is not None
    nodes = {node for one in plan.rounds for member in one.members for node in member}
    assert nodes == {"worker-001", "worker-002", "worker-003", "worker-004"}


def test_a_run_that_failed_or_hung_is_a_state_of_its_pair(run: Sweep, out: Path) -> None:
    run("--demo", "healthy", "--demo-nodes", "4", "--rounds", "1")
    simulate(out, "healthy", 4)
    first, second = sorted((out / "round-01").iterdir())
    first.write_text(f"{HEAD} x\nmpirun: not found\n\n{CLOSING} 127\n")
    second.write_text(f"{HEAD} x\n{TIMED_OUT} 240 s\n\n{CLOSING} 124\n")
    said = run()
    assert "2 pairs failed" in said


def test_a_result_that_is_being_written_is_waited_for_and_counts_when_its_time_is_over(
    run: Sweep, out: Path
) -> None:
    run("--demo", "healthy", "--demo-nodes", "4", "--rounds", "1")
    simulate(out, "healthy", 4)
    half = next((out / "round-01").iterdir())
    half.write_bytes(half.read_bytes()[:900])
    assert "1 run of them still going on" in run()
    long_ago = time.time() - 3600
    os.utime(half, (long_ago, long_ago))
    said = run()
    assert "still going on" not in said
    assert "1 pair cut off" in said or "1 pair failed" in said


def test_a_result_by_another_name_belongs_to_the_pair_it_was_planned_for(run: Sweep, out: Path) -> None:
    """In a pod the host is called after the pod."""
    run("--demo", "slow-node", "--engine", "kubernetes", "--image", "r/i:1")
    simulate(out, "slow-node")
    names = {f"worker-{n:03d}": f"straggler-round-01-{n:04d}-worker-0" for n in range(1, 17)}
    for path in out.rglob("round-*/*.txt"):
        head, rest = path.read_text().split("\n", 1)
        for node, pod in names.items():
            rest = rest.replace(node, pod)
        path.write_text(f"{head}\n{rest}")
    said = run()
    assert "worker-0 " not in said
    assert [line for line in said.splitlines() if line.startswith("verdict: worker-0")]


def test_hosts_that_are_known_stand_whatever_the_file_is_called() -> None:
    known = Run("round-01/a__b.txt", "nccl-tests", ("a", "c"), RunState.OK)
    assert sweep.rehosted(known, ("a", "b"), {"a", "b", "c"}).hosts == ("a", "c")
    pod = Run("round-01/a__b.txt", "nccl-tests", ("pod-0", "pod-1"), RunState.OK)
    assert sweep.rehosted(pod, ("a", "b"), {"a", "b", "c"}).hosts == ("a", "b")
    alone = Run("round-01/a__b.txt", "nccl-tests", ("pod-0",), RunState.OK)
    assert sweep.rehosted(alone, ("a", "b"), {"a", "b", "c"}).hosts == ("pod-0",)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plan: "{",
        lambda plan: json.dumps({**plan, "schema": 2}),
        lambda plan: json.dumps({**plan, "engine": "ansible"}),
        lambda plan: json.dumps({**plan, "nodes": ["$(id)", *plan["nodes"]]}),
        lambda plan: json.dumps({**plan, "nodes": plan["nodes"][1:]}),
        lambda plan: json.dumps({**plan, "rounds": [{"number": 1, "members": []}]}),
        lambda plan: json.dumps({**plan, "rounds": [{"number": 1, "members": [[]]}]}),
        lambda plan: json.dumps({**plan, "load": {**plan["load"], "environment": ["-p"]}}),
        lambda plan: json.dumps({**plan, "load": {**plan["load"], "binary": "/x\nreboot"}}),
        lambda plan: json.dumps(
            {**plan, "rounds": [{"number": 1, "members": [["../../etc"]], "alone": False}]}
        ),
    ],
)
def test_a_plan_that_is_none_is_refused(
    run: Sweep, out: Path, spoil: Callable[[dict[str, Any]], str]
) -> None:
    run("--demo", "healthy", "--demo-nodes", "4")
    file = out / "plan.json"
    file.write_text(spoil(json.loads(file.read_text())))
    run(status=2)


def test_links_in_the_results_are_not_followed(run: Sweep, out: Path, tmp_path: Path) -> None:
    run("--demo", "healthy", "--demo-nodes", "4", "--rounds", "1")
    (tmp_path / "secret").write_text("password")
    (out / "round-00" / "worker-001.txt").symlink_to(tmp_path / "secret")
    assert "password" not in run()


def test_two_of_the_same_step_do_not_overwrite_each_other(run: Sweep, out: Path) -> None:
    run("--demo", "healthy", "--demo-nodes", "4", "--rounds", "1")
    plan = sweep.read(out)
    assert plan is not None
    step = Round(2, (("worker-001", "worker-002"),))
    sweep.extend(plan, (step,), out)
    with pytest.raises(UsageError, match="is there already"):
        sweep.extend(plan, (step,), out)


async def test_results_are_followed_until_every_run_has_one(run: Sweep, out: Path) -> None:
    run("--demo", "slow-node", "--demo-nodes", "8", "--rounds", "3")
    happens = [
        lambda: simulate(out, "slow-node", 8, only=["round-00"]),
        lambda: None,
        lambda: None,
        lambda: simulate(out, "slow-node", 8, only=["round-01", "round-02"]),
        lambda: None,
        lambda: simulate(out, "slow-node", 8),
        lambda: None,
    ]
    said: list[str] = []

    async def sleep(seconds: float) -> None:
        happens.pop(0)()

    await follow(out, knowledge.load(), said.append, sleep=sleep)
    assert [line.split(":")[0] for line in said] == ["8 of 20 runs", "16 of 20 runs", "20 of 20 runs"]
    assert "worker-008 is slow" in said[-1]
    assert happens == []


def test_the_matrix_of_a_sweep_knows_what_the_plan_knows(
    run: Sweep, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--demo", "healthy", "--demo-nodes", "4", "--rounds", "2")
    assert cli.main(["matrix", str(out)]) == 1
    assert "no run of the plan" in capsys.readouterr().err
    simulate(out, "healthy", 4)
    assert cli.main(["matrix", str(out)]) == 0
    said = capsys.readouterr().out
    assert "for p5 pairs" in said
    assert "lists" not in said


def test_a_closing_line_is_only_one_at_the_end() -> None:
    assert so_far.closed(f"x\n{CLOSING} 0\n".encode())
    assert not so_far.closed(b"x\n")
    assert not so_far.closed(f"x\n{CLOSING} 0\n".encode() + b"y" * 5000)


@pytest.mark.parametrize("plan", ['{"x": ' + "[" * 100_000, "no rounds"], ids=["nested", "no-rounds"])
def test_a_plan_without_end_or_without_a_round_is_refused_in_one_line(
    run: Sweep, out: Path, plan: str
) -> None:
    run("--demo", "healthy", "--demo-nodes", "4", "--rounds", "1")
    file = out / "plan.json"
    if plan == "no rounds":
        plan = json.dumps(json.loads(file.read_text()) | {"rounds": []})
    file.write_text(plan)
    with pytest.raises(UsageError, match="is no plan of this version") as refused:
        sweep.read(out)
    assert "\n" not in str(refused.value)
