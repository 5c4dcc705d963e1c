"""Load: nothing of it leaves without the operator's own words, nothing but the second closed list, and nothing by the first."""

from __future__ import annotations

import ast
import dataclasses
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from straggler import engine
from straggler.engine import gate, load_gate
from straggler.engine.bandwidth.plans.base import Load
from straggler.engine.errors import FatalError, UsageError
from straggler.engine.load_gate import Confirmed, Hold, Proposal, RunPair, allowed, compose, confirm
from tests.shellscan import BUILTINS, scan

MARK = "0123456789abcdef"
LOAD = Load("/opt/nccl-tests/build/all_reduce_perf", 8, 32, (8 << 20, 8 << 30), 20, 5, 240, 10, 40)
PROPOSAL = Proposal(("a", "b", "c-1"), LOAD, 5, 20, mark=MARK)
ROOT = Path(engine.__file__).parent.parent


def confirmed(load: Load = LOAD) -> Confirmed:
    return confirm(dataclasses.replace(PROPOSAL, load=load), "3 nodes")


def orders(confirmed: Confirmed) -> tuple[Hold | RunPair, ...]:
    return (
        Hold(confirmed, "a", "me"),
        RunPair(confirmed, ("a",)),
        RunPair(confirmed, ("a", "b")),
    )


@pytest.mark.parametrize(
    "said", ["", "y", "yes", "3", "nodes", "2 nodes", "3 nodes now", "3 NODES", "'3 nodes'", "３ nodes"]
)
def test_only_the_exact_words_confirm(said: str) -> None:
    with pytest.raises(UsageError, match="nothing was started"):
        confirm(PROPOSAL, said)


def test_blanks_and_a_line_end_around_the_words_do_not_matter() -> None:
    assert confirm(PROPOSAL, " 3  nodes\n").proposal == PROPOSAL


def test_what_is_confirmed_is_sent_with_the_deadline_and_the_mark() -> None:
    for order in orders(confirmed()):
        text = compose(order).body.decode()
        assert MARK in text
    assert "R_SECONDS=240" in text
    assert text.splitlines()[-1] == (
        "r_main mpirun -x STRAGGLER_LOAD --mca straggler_sweep 0123456789abcdef --allow-run-as-root -np 16 -host a:8,b:8 --bind-to none "
        "/opt/nccl-tests/build/all_reduce_perf -b 8M -e 8G -f 2 -g 1 -n 20 -w 5; exit 0"
    )


@pytest.mark.parametrize("seal", [b"", b"\0" * 32, b"confirmed"])
def test_a_confirmation_cannot_be_made_up(seal: bytes) -> None:
    for order in orders(Confirmed(PROPOSAL, seal)):
        with pytest.raises(FatalError, match="not confirmed"):
            compose(order)


@pytest.mark.parametrize(
    "other",
    [
        {"nodes": ("a", "b", "c-1", "d")},
        {"load": dataclasses.replace(LOAD, iterations=21)},
        {"runs": 21},
        {"rounds": 6},
        {"allow_cpu": True},
        {"mark": "ffffffffffffffff"},
    ],
)
def test_a_confirmation_does_not_fit_another_proposal(other: dict[str, object]) -> None:
    real = confirmed()
    forged = dataclasses.replace(real, proposal=dataclasses.replace(real.proposal, **other))  # type: ignore[arg-type]
    for order in orders(forged):
        with pytest.raises(FatalError, match="not confirmed"):
            compose(order)


@pytest.mark.parametrize("members", [(), ("d",), ("a", "d"), ("a", "b;reboot")])
def test_only_confirmed_nodes_are_loaded(members: tuple[str, ...]) -> None:
    with pytest.raises(FatalError, match="not among the nodes confirmed"):
        compose(RunPair(confirmed(), members))
    with pytest.raises(FatalError, match="not among the nodes confirmed"):
        compose(Hold(confirmed(), "".join(members), "me"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"binary": "/bin/rm"},
        {"binary": "/opt/all_reduce_perf -rf"},
        {"binary": "/opt/$(reboot)/all_reduce_perf"},
        {"binary": "dd_perf"},
        {"mpirun": "/sbin/reboot"},
        {"mpirun": "mpirun;reboot"},
        {"mpirun": "sh"},
        {"mca": (("plm_rsh_agent", "sh -c reboot"),)},
        {"mca": (("plm_rsh_agent", "ssh -o ProxyCommand=reboot"),)},
        {"mca": (("orte_launch_agent", "reboot"),)},
        {"mca": (("plm_rsh_agent", "sh -c reboot"),), "environment": ("NCCL_DEBUG=WARN",)},
        {"mca": (("btl", "self /bin/sh -c reboot"),), "environment": ("A=b",)},
        {"binary": "sh -c reboot all_reduce_perf", "environment": ("A=b",)},
        {"binary": "/x/all_reduce_perf\0-b", "environment": ("A=b",)},
        {"mca": (("btl", "tcp,self; reboot"),)},
        {"environment": ("NCCL_DEBUG=INFO\nreboot",)},
        {"environment": ("reboot",)},
        {"environment": ("-x=1",)},
    ],
)
def test_a_run_outside_the_closed_list_is_not_sent_though_it_was_confirmed(wrong: dict[str, object]) -> None:
    load = dataclasses.replace(LOAD, **wrong)  # type: ignore[arg-type]
    with pytest.raises(FatalError, match="closed list"):
        compose(RunPair(confirmed(load), ("a", "b")))
    with pytest.raises(UsageError, match="nothing else"):
        load_gate.check(dataclasses.replace(PROPOSAL, load=load))


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"binary": "all_reduce_perf"},
        {
            "binary": "/fsx/nccl-tests_2.17+x/build/all_gather_perf",
            "mpirun": "/opt/amazon/openmpi/bin/mpirun",
        },
        {"mca": (("btl", "tcp,self"), ("btl_tcp_if_exclude", "lo,docker0"), ("pml", "^ucx"))},
        {"mca": (("plm_rsh_agent", "ssh -p 2222 -i /home/op/.ssh/id_ed25519"),)},
        {
            "environment": (
                "NCCL_DEBUG=INFO",
                "FI_PROVIDER=efa",
                "LD_LIBRARY_PATH=/opt/my libs:/usr/lib",
                "X='$(reboot)'",
            )
        },
    ],
)
def test_what_the_plans_make_of_usual_wishes_is_in_the_list(right: dict[str, object]) -> None:
    load = dataclasses.replace(LOAD, **right)  # type: ignore[arg-type]
    for members in (("a",), ("a", "b")):
        argv = load_gate.started(members, dataclasses.replace(PROPOSAL, load=load))
        assert allowed(argv)
        load_gate.check(dataclasses.replace(PROPOSAL, load=load))
        last = compose(RunPair(confirmed(load), members)).body.decode().splitlines()[-1]
        # What the node's shell makes of the line is, word for word, what was checked.
        said = subprocess.run(
            ["sh", "-c", f"r_main() {{ printf '%s\\0' \"$@\"; }}; {last}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.split("\0")[:-1] == argv


def test_the_name_shown_to_others_is_only_a_name() -> None:
    text = compose(Hold(confirmed(), "a", "me'; reboot\n\x1b[2J'")).body.decode()
    head = text.splitlines()[0]
    said = subprocess.run(
        ["sh", "-c", f'{head}\nprintf %s "$H_WHO"'], capture_output=True, text=True, check=True
    )
    assert said.stdout == "me'; reboot??[2J'"


# The two lists.


def test_no_collector_can_start_what_only_load_may() -> None:
    assert not {"mpirun", "env", "flock", "dd"} & (gate.NODE_COMMANDS.keys() | gate.RUNNER_COMMANDS.keys())
    assert not gate.allowed(load_gate.started(("a", "b"), PROPOSAL))


def sources() -> Iterator[tuple[str, ast.AST]]:
    for room in ("engine", "tui"):
        for path in sorted((ROOT / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def users(name: str) -> list[str]:
    """The files in which a name stands as a name (not as part of a word, not in text)."""
    return [
        path
        for path, tree in sources()
        if any(
            name in (getattr(node, "id", None), getattr(node, "attr", None))
            or (
                isinstance(node, ast.ImportFrom)
                and any(one.name == name for one in node.names)
                and "load_gate" in str(node.module)
            )
            for node in ast.walk(tree)
        )
    ]


def test_only_the_confirmation_can_seal() -> None:
    assert users("_seal") == users("_SEAL_KEY") == ["engine/load_gate.py"]
    makers = [
        path
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Confirmed"
    ]
    assert makers == ["engine/load_gate.py"]


def test_only_the_command_asks_and_only_the_transport_composes() -> None:
    """`confirm` is called where a person is asked; `compose` of the load gate where the bytes leave."""
    asks = [path for path, tree in sources() if imports(tree, "straggler.engine.load_gate", "confirm")]
    sends = [path for path, tree in sources() if imports(tree, "straggler.engine.load_gate", "compose")]
    assert asks == ["tui/commands/sweep_run.py"]
    assert sends == ["engine/transports/ssh.py"]


def imports(tree: ast.AST, module: str, name: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == module
        and any(one.name in (name, "*") for one in node.names)
        for node in ast.walk(tree)
    )


def test_a_talk_is_only_opened_with_what_the_gate_composed() -> None:
    made = [
        (path, ast.unparse(node.args[0]))
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "LoadTalk"
    ]
    assert made == [("engine/transports/ssh.py", "script")]
    source = (ROOT / "engine/transports/ssh.py").read_text()
    assert re.search(r"script = compose\(order\)\n.*\n.*\n.*\n.*LoadTalk\(script\)", source)


# The two scripts.

SCRIPTS = ("hold.sh", "run_pair.sh")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_starts_only_what_it_may(name: str) -> None:
    shell = scan((ROOT / "engine/bandwidth" / name).read_text())
    assert shell.trouble == ()
    own = shell.functions | BUILTINS | {"exec", "export", "trap", "command"}
    wrong = []
    for argv in shell.commands:
        words = argv[1:] if argv[0] == "h_priv" else argv
        if words[0] in own or words == (gate.OPEN,):
            continue
        form = load_gate.HOLDER_COMMANDS.get(words[0])
        if form is None or not form.fits(words[1:]):
            wrong.append(argv)
    assert wrong == []


def test_what_the_scripts_are_handed_runs_in_two_places_only() -> None:
    """Behind `h_priv`, which is checked where it is called, and as the run itself, which the gate has checked."""
    lines = [
        line.strip()
        for name in SCRIPTS
        for line in (ROOT / "engine/bandwidth" / name).read_text().splitlines()
        if "$@" in line or "$*" in line or "eval" in line
    ]
    assert [line.split()[0] for line in lines] == ["h_priv()", "timeout"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_writes_only_the_lock(name: str) -> None:
    writes = scan((ROOT / "engine/bandwidth" / name).read_text()).writes
    assert [one for one in writes if not re.fullmatch(r">/dev/null|>&[0-9-]|>\0", one)] == []
    text = (ROOT / "engine/bandwidth" / name).read_text()
    assert set(re.findall(r'(?<![<&\d])>"(\$\w+)"', text)) <= {"$h_file"}


@pytest.mark.parametrize("order", orders(confirmed()), ids=["hold", "alone", "pair"])
def test_shellcheck_has_nothing_to_say(order: Hold | RunPair) -> None:
    """2034: set for the rest of the script. 2086: lists of pids and files are split on purpose. 2317, 2329: called by a trap."""
    tool = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:/usr/bin")
    assert tool is not None
    quiet = "--exclude=2034,2086,2317,2329"
    said = subprocess.run(
        [tool, "-s", "sh", quiet, "-"], input=compose(order).body, capture_output=True, check=False
    )
    assert said.stdout.decode() == ""
