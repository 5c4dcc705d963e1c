"""Bandwidth of slow networks, which nccl-tests prints with two decimals, with the digits its time column has."""

from __future__ import annotations

import pytest

from straggler.engine.bandwidth.readers import nccl_tests, read_runs
from straggler.engine.bandwidth.readers.digits import sharp
from straggler.engine.bandwidth.readers.nccl_fast import read as read_fast

# ruff: noqa: W291 - blanks at line ends are the tool's own
LOG = """\
# nThread 1 nGpus 1 minBytes 4194304 maxBytes 8388608 step: 2(factor) warmup iters: 1 iters: 4 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid     76 on      node-1 device  0 [0x00] CPU
#  Rank  1 Group  0 Pid     71 on      node-2 device  0 [0x00] CPU
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
     4194304       1048576     float     sum      -1    {one}   0.06   0.06      0    65879   0.06   0.06      0
     8388608       2097152     float     sum      -1   121058   0.07   0.07      0   136053   0.06   0.06      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.0639462 
#

"""


def test_two_runs_that_are_alike_do_not_stand_a_digit_apart() -> None:
    text = LOG.format(one="64530")
    [run] = read_runs(text.encode(), "node-1__node-2.txt")
    assert dict(run.points) == {
        4194304: pytest.approx(0.0650, rel=1e-3),
        8388608: pytest.approx(0.0693, rel=1e-3),
    }


def test_the_fast_way_and_the_careful_way_agree() -> None:
    text = LOG.format(one="64530")
    fast = read_fast(text.encode(), "node-1__node-2.txt")
    [careful] = nccl_tests.read(text, "node-1__node-2.txt")
    assert fast is not None
    assert dict(fast.points) == dict(careful.points)


def test_a_time_that_contradicts_the_printed_bandwidth_is_not_used() -> None:
    [run] = read_runs(LOG.format(one="12345").encode(), "node-1__node-2.txt")
    assert run.points[4194304] == 0.06


@pytest.mark.parametrize(
    ("micro", "algbw", "busbw", "ranks", "value"),
    [
        (131072.0, 0.06, 0.06, 2, 0.064),  # all-reduce of two: twice a half
        (131072.0, 0.06, 0.03, 2, 0.032),  # all-gather of two: a half
        (131072.0, 0.06, 0.12, 16, 0.12),  # all-reduce of sixteen: 2 * 15 / 16
        (
            131072.0,
            0.06,
            0.06,
            16,
            0.06,
        ),  # broadcast or all-gather of sixteen: which one, two digits do not tell
        (
            13107.2,
            0.64,
            0.64,
            16,
            0.64,
        ),  # broadcast of sixteen: an all-gather's 0.60 would be printed as that
        (131072.0, 0.06, 0.06, None, 0.06),
        (131072.0, 0.06, 0.0, 1, 0.0),
        (0.0, 0.06, 0.06, 2, 0.06),
        (None, 0.06, 0.06, 2, 0.06),
        (1310.72, 6.40, 6.40, 2, 6.40),
    ],
)
def test_the_factor_is_the_one_that_gives_back_what_was_printed(
    micro: float | None, algbw: float, busbw: float, ranks: int | None, value: float
) -> None:
    assert sharp(8388608, micro, algbw, busbw, ranks) == pytest.approx(value)


def test_a_collective_that_is_named_needs_no_guess() -> None:
    guesses = (8388608, 560000.0, 0.01, 0.01, 2)
    assert sharp(*guesses) == 0.01, "an all-gather's 0.0075 would be printed as 0.01, too"
    assert sharp(*guesses, "all_reduce") == pytest.approx(0.01498, rel=1e-3)
    assert sharp(*guesses, "all_gather") == pytest.approx(0.00749, rel=1e-3)
    assert sharp(*guesses, "hypercube") == 0.01
