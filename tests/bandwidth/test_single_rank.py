"""A node with one GPU has no bus bandwidth by itself: that is no fault of it, and running it again gives no more."""

from __future__ import annotations

from straggler.engine.bandwidth.attribution import attribute
from straggler.engine.bandwidth.layout import build
from straggler.engine.bandwidth.model import Run, RunState

ALONE = [Run(f"{name}.txt", "nccl-tests", (name,), RunState.OK, ranks=1) for name in "abcd"]
PAIRS = [
    Run(
        f"{pair[0]}__{pair[1]}.txt",
        "nccl-tests",
        (pair[0], pair[1]),
        RunState.OK,
        points={1 << 30: 40.0},
        ranks=2,
    )
    for pair in ("ab", "ac", "ad", "bc", "bd", "cd")
]


def test_it_is_no_doubt_and_nothing_to_repeat() -> None:
    matrix = build([*ALONE, *PAIRS], "abcd")
    said = attribute(matrix)
    assert said.verdicts == said.doubts == ()
    assert said.settled
    assert any("single rank" in note for note in matrix.notes)


def test_one_that_failed_is_still_a_doubt() -> None:
    failed = Run("a.txt", "nccl-tests", ("a",), RunState.FAILED, "hung", ranks=1)
    [doubt] = attribute(build([failed, *ALONE[1:], *PAIRS], "abcd")).doubts
    assert doubt.pair == ("a", "a")
