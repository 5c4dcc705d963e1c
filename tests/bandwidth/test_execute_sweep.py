"""A sweep from the operator's side: who is refused, what is run in which order, what is written, what is said at the end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from straggler.engine.bandwidth.execute import Event, Held, LetGo, Progress, RoundStarted, Step, Sweep
from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans.base import Load
from straggler.engine.errors import FatalError, TransportError
from straggler.engine.load_gate import Hold, Order, Proposal, RunPair, compose, confirm
from straggler.engine.model import Node, Status

LOAD = Load("/x/all_reduce_perf", 8, 0, (1 << 20, 1 << 20), 1, 1, 30, 5, 10)
NAMES = ("a", "b", "c", "d")
ALONE = Round(0, (("a",), ("b",), ("c",), ("d",)))
PAIRS = Round(1, (("a", "b"), ("c", "d")))
TABLE = "# nThread 1\r\n\x1b[31mred\xff\0 no line end"


@dataclass
class Script:
    """A node's side of one session: what it says first, and what it answers to a word."""

    first: Iterable[str]
    answers: dict[str, list[str]] = field(default_factory=dict)
    nonce: str = ""
    quiet: bool = False
    said: deque[bytes] = field(default_factory=deque)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False

    def start(self, nonce: str) -> None:
        self.nonce = nonce
        self.speak(self.first)

    def speak(self, words: Iterable[str]) -> None:
        for word in words:
            text = word if word.startswith("raw:") else f"@@straggler {self.nonce} {word}\n"
            self.said.append(text.removeprefix("raw:").encode("latin-1"))
        self.wake.set()

    def say(self, word: bytes) -> None:
        self.speak(self.answers.get(word.decode(), []))

    def end(self) -> None:
        self.over = True
        self.wake.set()

    async def read(self) -> bytes:
        while not self.said and not self.over:
            self.wake.clear()
            await self.wake.wait()
        return self.said.popleft() if self.said else b""


IDLE = ["gpus 8", "checked"]


def holder(*first: str, check: list[str] | None = None, clean: str = "clean 0") -> Script:
    return Script(
        ["raw:a banner\n", *(first or ("locked", *IDLE))],
        {"c": IDLE if check is None else check, "k": [clean], "q": ["gone 0"]},
    )


def a_run(status: int = 0, seconds: int = 3, output: str = TABLE) -> Script:
    return Script(["raw:a banner\n", "begun", f"raw:{output}\n", f"ended {status} {seconds}"])


@dataclass
class Nodes:
    """A transport to made-up nodes. `log` has every order in the order they were opened and closed."""

    holders: dict[str, Script | TransportError] = field(default_factory=dict)
    runs: dict[tuple[str, ...], Script | TransportError] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    going: int = 0
    most: int = 0

    @contextlib.asynccontextmanager
    async def talk(self, node: Node, order: Order) -> AsyncIterator[Script]:
        composed = compose(order)
        if isinstance(order, Hold):
            script = self.holders.setdefault(node.id, holder())
        else:
            assert node.id == order.members[0]
            script = self.runs.setdefault(order.members, a_run())
        name = "hold " + node.id if isinstance(order, Hold) else "run " + "+".join(order.members)
        self.log.append(name)
        if isinstance(script, TransportError):
            raise script
        script.start(composed.nonce)
        self.going += isinstance(order, RunPair)
        self.most = max(self.most, self.going)
        try:
            await asyncio.sleep(0)  # others may start
            yield script
        finally:
            self.going -= isinstance(order, RunPair)
            self.log.append("end of " + name)


def sweep(
    nodes: Nodes,
    out: Path,
    *rounds: Round,
    runs: int = 100,
    allow_cpu: bool = False,
    heard: Callable[[Event], None] | None = None,
) -> tuple[list[Event], BaseException | None]:
    """All events of one sweep, and what ended it."""
    events: list[Event] = []
    proposal = Proposal(NAMES, LOAD, len(rounds), runs, allow_cpu=allow_cpu)
    planned = deque(rounds)

    async def next_round() -> Round | None:
        return planned.popleft() if planned else None

    def hear(event: Event) -> None:
        events.append(event)
        if heard is not None:
            heard(event)

    async def go() -> None:
        one = Sweep(
            confirm(proposal, "4 nodes"), {name: Node(name) for name in NAMES}, nodes, out, hear, "me"
        )
        await one.run(next_round)

    try:
        asyncio.run(go())
    except (FatalError, asyncio.CancelledError) as error:
        return events, error
    return events, None


def stop_it() -> None:
    """What a signal does."""
    for task in asyncio.all_tasks():
        if "sweep.<locals>.go" in repr(task.get_coro()):
            task.cancel()


def ends(events: list[Event]) -> dict[str, tuple[Step, str]]:
    return {
        "+".join(one.member): (one.step, one.why)
        for one in events
        if isinstance(one, Progress) and one.step is not Step.STARTED
    }


def test_every_node_is_held_before_anything_runs_and_until_all_has_run(tmp_path: Path) -> None:
    nodes = Nodes()
    events, error = sweep(nodes, tmp_path, ALONE, PAIRS)
    assert error is None
    assert sorted(nodes.log[:4]) == [f"hold {name}" for name in NAMES]
    assert sorted(nodes.log[-4:]) == [f"end of hold {name}" for name in NAMES]
    assert isinstance(events[0], Held)
    assert events[-1] == LetGo(4, {}, {})
    assert [one.round.number for one in events if isinstance(one, RoundStarted)] == [0, 1]


def test_rounds_run_one_after_the_other_and_their_members_at_once(tmp_path: Path) -> None:
    nodes = Nodes()
    sweep(nodes, tmp_path, ALONE, PAIRS)
    log = [one.removeprefix("end of ") for one in nodes.log if "run " in one]
    assert sorted(log[:8]) == sorted([f"run {name}" for name in NAMES] * 2)
    assert sorted(log[8:]) == ["run a+b"] * 2 + ["run c+d"] * 2
    assert nodes.most == 4


def test_a_result_is_the_output_byte_for_byte_with_whose_it_is_and_how_it_ended(tmp_path: Path) -> None:
    sweep(Nodes(), tmp_path, ALONE, PAIRS)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*.*")) == [
        *(f"round-00/{name}.txt" for name in NAMES),
        "round-01/a__b.txt",
        "round-01/c__d.txt",
    ]
    assert (tmp_path / "round-01" / "a__b.txt").read_bytes() == (
        b"# straggler: nodes a b\n" + TABLE.encode("latin-1") + b"\n# straggler: exited with status 0\n"
    )


@pytest.mark.parametrize(
    ("run", "why", "lines"),
    [
        (a_run(7), "exited with status 7", ["# straggler: exited with status 7"]),
        (
            a_run(124, 30),
            "timed out after 30 s",
            ["# straggler: timed out after 30 s", "# straggler: exited with status 124"],
        ),
        (
            a_run(137, 31),
            "timed out after 30 s",
            ["# straggler: timed out after 30 s", "# straggler: exited with status 137"],
        ),
        (a_run(137, 3), "exited with status 137", ["# straggler: exited with status 137"]),
        (
            TransportError(Status.UNREACHABLE, "no route to it"),
            "did not start: a: no route to it",
            ["# straggler: did not start: a: no route to it", "# straggler: exited with status 255"],
        ),
    ],
)
def test_a_run_that_fails_is_a_result_with_its_reason(
    tmp_path: Path, run: Script | TransportError, why: str, lines: list[str]
) -> None:
    events, error = sweep(Nodes(runs={("a", "b"): run}), tmp_path, PAIRS)
    assert error is None
    assert ends(events) == {"a+b": (Step.FAILED, why), "c+d": (Step.DONE, "")}
    text = (tmp_path / "round-01" / "a__b.txt").read_text("latin-1")
    assert text.endswith("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (["begun", "raw:half a ta"], "the connection to its first node was lost"),
        ([], "its first node ran nothing"),
    ],
)
def test_a_run_whose_end_is_not_heard_of_keeps_what_was(tmp_path: Path, first: list[str], why: str) -> None:
    cut = Script(first)
    cut.end()
    events, _ = sweep(Nodes(runs={("a", "b"): cut}), tmp_path, PAIRS)
    assert ends(events)["a+b"] == (Step.FAILED, why)
    text = (tmp_path / "round-01" / "a__b.txt").read_text()
    assert ("half a ta\n" in text) == bool(first)
    assert f"# straggler: {why}\n" in text


def test_a_forged_end_is_only_output(tmp_path: Path) -> None:
    forged = a_run(3, output="@@straggler 0123456789abcdef ended 0 1\nmore")
    events, _ = sweep(Nodes(runs={("a", "b"): forged}), tmp_path, PAIRS)
    assert ends(events)["a+b"] == (Step.FAILED, "exited with status 3")
    assert "more" in (tmp_path / "round-01" / "a__b.txt").read_text()


@pytest.mark.parametrize("cut", range(1, 90, 7))
def test_an_end_that_comes_in_pieces_is_an_end(tmp_path: Path, cut: int) -> None:
    class Slow(Script):
        async def read(self) -> bytes:
            whole = b"".join(self.said)
            self.said.clear()
            self.said.extend([whole[cut:]] if whole[cut:] else [])
            return whole[:cut]

    slow = Slow(["begun", f"raw:{TABLE}\n", "ended 0 3"])
    events, _ = sweep(Nodes(runs={("a", "b"): slow}), tmp_path, PAIRS)
    assert ends(events)["a+b"] == (Step.DONE, "")
    assert TABLE.encode("latin-1") in (tmp_path / "round-01" / "a__b.txt").read_bytes()


# Who is refused.


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (("held bob on x since 2026", "refused"), "held by another sweep: bob on x since 2026"),
        (("nolock flock is not installed there", "refused"), "flock is not installed there"),
        (
            ("locked", "gpus 8", "busy gpu 7 python3", "checked"),
            "at work: a process has a GPU open (7 python3)",
        ),
        (
            ("locked", "gpus 8", "busy pod 7 python3", "busy gpu 8 x", "checked"),
            "at work: a pod has a GPU open (7 python3) and 1 more",
        ),
        (
            ("locked", "gpus 8", "busy slurm 9 slurmstepd: [4.0]", "checked"),
            "at work: a Slurm job step runs (9 slurmstepd: [4.0])",
        ),
        (("locked", "gpus 8", "busy new-kind 1", "checked"), "at work: new-kind (1)"),
        (("locked", "gpus 8", "unread this needs root", "checked"), "not known to be idle: this needs root"),
        (("locked", "gpus 0", "checked"), "it shows no GPU"),
        (("locked", "checked"), "it shows no GPU"),
    ],
)
def test_a_node_that_is_not_known_to_be_idle_stops_all_before_it_starts(
    tmp_path: Path, first: tuple[str, ...], why: str
) -> None:
    nodes = Nodes(holders={"c": holder(*first)})
    events, error = sweep(nodes, tmp_path, ALONE)
    assert isinstance(error, FatalError)
    assert f"nothing was started. c: {why}" in str(error)
    assert "without them: --hosts 'a,b,d'" in str(error) or "without them: --hosts '[a-b,d]'" in str(error)
    assert not [one for one in nodes.log if one.startswith("run")]
    assert not list(tmp_path.iterdir())
    assert not [one for one in events if isinstance(one, Held)]


def test_a_session_that_breaks_before_it_has_said_all_is_not_idle(tmp_path: Path) -> None:
    broken = holder("locked", "gpus 8")
    broken.end()
    events, error = sweep(Nodes(holders={"c": broken}), tmp_path, PAIRS)
    assert error is None
    assert ends(events)["c+d"][0] is Step.FAILED
    assert ends(events)["a+b"][0] is Step.DONE


def test_a_node_without_gpus_is_taken_when_asked_for(tmp_path: Path) -> None:
    none = ["gpus 0", "checked"]
    nodes = Nodes(holders={name: holder("locked", *none, check=none) for name in NAMES})
    events, error = sweep(nodes, tmp_path, PAIRS, allow_cpu=True)
    assert error is None
    assert {step for step, _ in ends(events).values()} == {Step.DONE}


def test_nodes_that_are_away_fail_their_own_runs_only(tmp_path: Path) -> None:
    nodes = Nodes(holders={"b": TransportError(Status.UNREACHABLE, "no answer")})
    events, error = sweep(nodes, tmp_path, ALONE, PAIRS)
    assert error is None
    assert ends(events) == {
        **dict.fromkeys(("a", "c", "d"), (Step.DONE, "")),
        "b": (Step.FAILED, "did not start: b: no answer"),
        "a+b": (Step.FAILED, "did not start: b: no answer"),
        "c+d": (Step.DONE, ""),
    }
    assert "run a+b" not in nodes.log


def test_when_no_node_can_be_reached_that_is_said(tmp_path: Path) -> None:
    away = {name: TransportError(Status.UNREACHABLE, "no answer") for name in NAMES}
    _, error = sweep(Nodes(holders=dict(away)), tmp_path, PAIRS)
    assert str(error) == "no node could be reached: no answer"


def test_a_job_that_has_come_meanwhile_is_left_alone_and_is_no_result(tmp_path: Path) -> None:
    working = holder(check=["gpus 8", "busy slurm 9 slurmstepd", "checked"])
    nodes = Nodes(holders={"b": working})
    events, error = sweep(nodes, tmp_path, PAIRS)
    assert error is None
    assert ends(events)["a+b"] == (Step.LEFT_OUT, "b: at work: a Slurm job step runs (9 slurmstepd)")
    assert "run a+b" not in nodes.log
    assert not (tmp_path / "round-01" / "a__b.txt").exists()
    assert ends(events)["c+d"][0] is Step.DONE


def test_a_node_on_which_a_run_would_not_end_is_not_used_again(tmp_path: Path) -> None:
    nodes = Nodes(holders={"b": holder(clean="clean 3")})
    events, error = sweep(nodes, tmp_path, PAIRS, dataclasses.replace(PAIRS, number=2))
    assert error is None
    last = [
        one
        for one in events
        if isinstance(one, Progress) and one.round.number == 2 and one.member == ("a", "b")
    ]
    assert [one.step for one in last] == [Step.FAILED]
    assert "3 processes of an earlier run would not end" in last[0].why


def test_no_more_is_run_than_was_confirmed(tmp_path: Path) -> None:
    nodes = Nodes()
    _, error = sweep(nodes, tmp_path, ALONE, PAIRS, runs=5)
    assert "only 5 runs were confirmed" in str(error)
    assert "run a+b" not in nodes.log


# How it ends.


def test_a_result_that_cannot_be_written_ends_the_sweep_with_one_line_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "round-00").write_text("in the way")
    nodes = Nodes()
    events, error = sweep(nodes, tmp_path, ALONE, PAIRS)
    assert isinstance(error, FatalError)
    assert "cannot be written" in str(error)
    assert events[-1] == LetGo(4, {}, {})
    assert nodes.going == 0
    assert "run a+b" not in nodes.log


def test_when_it_is_stopped_every_node_is_asked_to_end_what_runs(tmp_path: Path) -> None:
    hanging = {pair: Script(["begun", "raw:..."]) for pair in PAIRS.members}
    asked: list[str] = []

    class Holder(Script):
        def say(self, word: bytes) -> None:
            if word == b"q":
                asked.append("q")
            super().say(word)

    holders: dict[str, Script | TransportError] = {
        name: Holder(
            ["locked", *IDLE], {"c": IDLE, "k": ["clean 0"], "q": ["gone 2" if name == "b" else "gone 0"]}
        )
        for name in NAMES
    }
    nodes = Nodes(holders=holders, runs=dict(hanging))

    def stop(event: Event) -> None:
        if isinstance(event, Progress) and event.member == ("c", "d"):
            stop_it()

    events, error = sweep(nodes, tmp_path, PAIRS, heard=stop)
    assert isinstance(error, asyncio.CancelledError)
    assert asked == ["q"] * 4
    assert events[-1] == LetGo(4, {"b": 2}, {})
    assert nodes.going == 0
    assert not list(tmp_path.rglob("*.txt"))


def test_a_stop_at_the_very_end_comes_after_every_node_was_let_go(tmp_path: Path) -> None:
    class Holder(Script):
        def say(self, word: bytes) -> None:
            if word == b"q":
                stop_it()
            super().say(word)

    answers = {"c": IDLE, "k": ["clean 0"], "q": ["gone 0"]}
    nodes = Nodes(holders={name: Holder(["locked", *IDLE], answers) for name in NAMES})
    events, error = sweep(nodes, tmp_path, ALONE)
    assert isinstance(error, asyncio.CancelledError)
    assert events[-1] == LetGo(4, {}, {})
    assert len(list(tmp_path.rglob("*.txt"))) == 4


def test_a_node_whose_connection_is_lost_is_said_at_the_end(tmp_path: Path) -> None:
    class Dying(Script):
        def say(self, word: bytes) -> None:
            if word == b"k":
                self.end()
            super().say(word)

    nodes = Nodes(holders={"b": Dying(["locked", *IDLE], {"c": IDLE})})
    events, error = sweep(nodes, tmp_path, PAIRS, dataclasses.replace(PAIRS, number=2))
    assert error is None
    assert events[-1] == LetGo(4, {}, {"b": "its session ended"})
    assert ends(events)["a+b"] == (
        Step.FAILED,
        "did not start: b: the connection to it was lost: its session ended",
    )
