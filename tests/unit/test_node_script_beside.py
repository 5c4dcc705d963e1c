"""Commands that run beside each other under the node script: one that hangs costs its own answer and nothing else."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest

from straggler.engine.model import Status
from tests.nodeshell import MARKS, SHELLS, ask, collector, eventually, processes_with, scratches

READ_ONLY = " && ".join(f"mount -t tmpfs -o ro none {at}" for at in ("/dev/shm", "/run", "/tmp"))
MEMORY = {
    "in memory": (),
    "without a scratch": ("unshare", "-m", "sh", "-c", f'{READ_ONLY} && exec "$@"', "-"),
}
HANGS = {
    "ignores TERM": """sh -c 'trap "" TERM HUP; while :; do sleep {mark}; done'""",
    "says a part": "sh -c 'echo part; exec sleep {mark}'",
}  # fmt: skip


@pytest.fixture(params=list(SHELLS))
def shell(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    argv = SHELLS[request.param]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed here")
    MARKS.clear()
    yield argv
    assert eventually(lambda: not scratches()), "scratch was left behind"


@pytest.mark.real
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("hang", HANGS)
def test_one_command_that_hangs_costs_its_own_answer_only(
    shell: tuple[str, ...], memory: str, hang: str
) -> None:
    mark = f"31{time.monotonic_ns() % 10**7:07d}"
    snippet = "\n".join(
        [
            "beside /a echo one",
            f"beside /hung {HANGS[hang].format(mark=mark)}",
            "beside /b sh -c 'echo two; echo three >&2; exit 3'",
            "beside /silent true",
            "beside /none no-such-tool",
            "besides 1",
            "echo after",
        ]
    )
    said = ask(shell, collector(snippet), collector("echo other", id="other"), prefix=MEMORY[memory])
    lines = said[0].text.splitlines()
    assert said[0].status is Status.OK, (said[0].why, said[0].errors)
    assert lines[-1] == "after"
    assert {"said /a | one", "said /b | two", "said /b | three"} <= set(lines)
    assert {one for one in lines if one.startswith("ended ")} == {
        "ended /a",
        "ended /b",
        "ended /silent",
        "ended /none",
    }
    assert any(one.startswith("said /none | ") and "not found" in one for one in lines)
    assert said[1].text == "other\n"
    assert eventually(lambda: not processes_with(mark)), "what hung was left running"


@pytest.mark.parametrize("seconds", [1, 30])
def test_nothing_beside_is_waited_for_when_all_have_ended(shell: tuple[str, ...], seconds: int) -> None:
    said = ask(shell, collector(f"beside /a echo one\nbesides {seconds}", seconds=10))
    assert (said[0].status, said[0].text) == (Status.OK, "said /a | one\nended /a\n")
