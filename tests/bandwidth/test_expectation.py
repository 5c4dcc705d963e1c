"""What a run can reach at most, what others saw, and when a message is too small to say."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from straggler.engine import knowledge
from straggler.engine.bandwidth import expectation
from straggler.engine.bandwidth.expectation import Limits, ceiling, expected, plausible, too_small
from straggler.engine.errors import UsageError
from straggler.engine.knowledge import Instance, Knowledge

KNOWN: Knowledge = knowledge.load()
LIMITS = Limits.of(KNOWN)
MIB, GIB = 1 << 20, 1 << 30
MEASURED = [(name, row) for name, one in KNOWN.instances.items() for row in one.busbw]


def kind(name: str) -> Instance:
    one = KNOWN.instance(name)
    assert one is not None
    return one


P4D, P4DE, P5, GB200 = (
    kind("p4d.24xlarge"),
    kind("p4de.24xlarge"),
    kind("p5.48xlarge"),
    kind("p6e-gb200.36xlarge"),
)

# The ceiling


def test_a_pair_of_p5_can_reach_750_and_a_pair_of_p4d_not_even_94() -> None:
    assert ceiling(P5, 16, 2, "all_reduce") == pytest.approx(750)
    assert ceiling(P4D, 16, 2, "all_reduce") == pytest.approx(93.75)


def test_300_between_p4d_is_more_than_the_wire_carries() -> None:
    assert not plausible(300, ceiling(P4D, 16, 2, "all_reduce"), LIMITS)
    assert plausible(78.33, ceiling(P4DE, 16, 2, "all_reduce"), LIMITS)


@pytest.mark.parametrize(
    ("name", "row"), MEASURED, ids=[f"{name} {row.nodes}x {row.size_bytes}" for name, row in MEASURED]
)
def test_nothing_that_was_published_is_above_its_ceiling(name: str, row: knowledge.MeasuredBusbw) -> None:
    most = ceiling(kind(name), kind(name).gpus * row.nodes, row.nodes, row.collective)
    assert most is not None
    assert row.high < most


@pytest.mark.parametrize(
    ("name", "nodes", "busbw"),
    [
        ("p5.48xlarge", 4, 53.9),
        ("p5.48xlarge", 8, 51.1),
        ("p6-b300.48xlarge", 4, 116.9),
        ("p6-b300.48xlarge", 8, 103.1),
    ],
)
def test_published_peaks_of_alltoall_are_just_below_the_ceiling(name: str, nodes: int, busbw: float) -> None:
    # awsome-distributed-ai, micro-benchmarks/expert-parallelism: peaks whose message size is not given.
    most = ceiling(kind(name), 8 * nodes, nodes, "alltoall")
    assert most is not None
    assert 0.8 * most < busbw < most


def test_one_gpu_per_node_gives_the_line_rate_whatever_the_collective() -> None:
    for collective in ("all_reduce", "sendrecv"):
        assert ceiling(P5, 2, 2, collective) == pytest.approx(400)


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "alltoall", "sendrecv"])
def test_what_is_not_known_to_be_spread_evenly_has_no_ceiling(collective: str) -> None:
    assert ceiling(P5, 9, 2, collective) is None


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "gather", "scatter", "hypercube", "", None])
@pytest.mark.parametrize("nodes", [1, 2])
def test_where_nothing_can_be_proven_there_is_no_ceiling(collective: str | None, nodes: int) -> None:
    assert ceiling(P5, 8 * nodes, nodes, collective) is None
    assert plausible(1e6, None, LIMITS)


def test_a_type_nobody_knows_and_ranks_that_cannot_be_have_no_ceiling() -> None:
    assert ceiling(None, 16, 2, "all_reduce") is None
    assert ceiling(P5, 1, 1, "all_reduce") is None
    assert ceiling(P5, 2, 3, "all_reduce") is None
    assert ceiling(P5, 8, 0, "all_reduce") is None


def test_without_the_number_of_ranks_all_reduce_has_the_widest_bound() -> None:
    assert ceiling(P5, None, 2, "all_reduce") == 800
    assert ceiling(P5, None, 2, "alltoall") is None


def test_one_node_has_the_bound_of_its_nvlinks_and_without_any_none() -> None:
    assert ceiling(P5, 8, 1, "all_reduce") == pytest.approx(787.5)
    assert ceiling(P5, 8, 1, "all_gather") == 450
    assert ceiling(kind("g5.48xlarge"), 8, 1, "all_reduce") is None


def test_nodes_of_an_ultraserver_are_not_held_to_their_network_cards() -> None:
    inside, across = ceiling(GB200, 8, 2, "all_reduce"), ceiling(GB200, 8, 2, "all_reduce", apart=True)
    assert inside is not None
    assert across is not None
    assert across == pytest.approx(350)
    # 72 GPUs of one domain were seen at 847 GB/s (coreweave/nccl-tests#43).
    assert inside > 847 > across


@given(
    gpus=st.integers(1, 16),
    nodes=st.integers(2, 40),
    rate=st.sampled_from([100, 400, 3200]),
    collective=st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "alltoall"]),
    waste=st.floats(1, 20),
)
def test_no_run_that_moves_its_bytes_over_the_wire_gets_above(
    gpus: int, nodes: int, rate: int, collective: str, waste: float
) -> None:
    ranks, size = gpus * nodes, 1e9
    assume(ranks > 1)
    out = {"all_reduce": size, "alltoall": gpus * size * (nodes - 1) / nodes}.get(
        collective, size * (nodes - 1) / nodes
    )
    seconds = waste * out / (rate / 8 * 1e9)
    factor = (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks
    most = ceiling(msgspec.structs.replace(P5, gpus=gpus, line_gbps=rate), ranks, nodes, collective)
    assert most is not None
    assert factor * size / seconds / 1e9 <= most * (1 + 1e-9)


# What others measured


def test_a_published_size_has_the_published_value_in_the_middle() -> None:
    one = expected(P5, "all_reduce", 2, 8 * GIB, LIMITS)
    assert one is not None
    assert one.low == pytest.approx(477.68 * 0.9)  # the lower of two publications
    assert one.high == pytest.approx(479.28 * 1.1)
    assert one.measured == (8 * GIB,)
    assert (one.size, one.nodes) == (8 * GIB, 2)
    assert one.source.startswith("https://")
    assert one.date.year == 2026
    with pytest.raises(FrozenInstanceError):
        one.low = 0  # type: ignore[misc]


def test_between_two_sizes_it_lies_between_them() -> None:
    one = expected(P5, "all_reduce", 2, 6 * GIB, LIMITS)
    assert one is not None
    assert one.measured == (4 * GIB, 8 * GIB)
    assert 464.33 * 0.9 < one.low < 477.68 * 0.9


def test_half_way_is_by_the_logarithm_of_the_size() -> None:
    one = expected(kind("p6-b200.48xlarge"), "all_reduce", 4, 2 * GIB, LIMITS)
    assert one is not None
    assert one.low == pytest.approx((367 + 375) / 2 * 0.9)


@pytest.mark.parametrize(
    ("name", "collective", "nodes", "size"),
    [
        ("p5.48xlarge", "all_reduce", 2, 32 * GIB),  # above the largest
        ("p5.48xlarge", "all_reduce", 2, 128 * MIB),  # below the smallest
        ("p5.48xlarge", "all_gather", 2, 8 * GIB),
        ("p5.48xlarge", "all_reduce", 3, 8 * GIB),
        ("p5e.48xlarge", "all_reduce", 2, 8 * GIB),  # the same network, and nobody measured it
        ("p4d.24xlarge", "all_reduce", 2, 8 * GIB),
        ("p5.48xlarge", "all_reduce", 2, 0),
    ],
)
def test_nothing_is_guessed(name: str, collective: str, nodes: int, size: int) -> None:
    assert expected(kind(name), collective, nodes, size, LIMITS) is None


def test_a_run_without_all_gpus_is_not_held_to_what_all_reach() -> None:
    assert expected(P5, "all_reduce", 2, 8 * GIB, LIMITS, ranks=16) is not None
    assert expected(P5, "all_reduce", 2, 8 * GIB, LIMITS, ranks=8) is None


def test_two_publications_of_p5_pairs_agree_within_the_spread() -> None:
    for size in (256 * MIB, 512 * MIB, GIB, 2 * GIB, 4 * GIB, 8 * GIB):
        rows = [
            row for row in P5.busbw if (row.collective, row.nodes, row.size_bytes) == ("all_reduce", 2, size)
        ]
        assert len({row.source for row in rows}) == 2
        assert max(row.high for row in rows) / min(row.low for row in rows) < 1 + LIMITS.spread / 100


def test_an_unknown_type_has_no_expectation() -> None:
    assert expected(None, "all_reduce", 2, GIB, LIMITS) is None


def test_two_publications_of_one_size_span_the_band() -> None:
    both = tuple(
        msgspec.structs.replace(P5.busbw[0], low=low, high=low, source=f"https://x/{low}")
        for low in (100, 120)
    )
    one = expected(msgspec.structs.replace(P5, busbw=both), "all_reduce", 1, both[0].size_bytes, LIMITS)
    assert one is not None
    assert one.low == pytest.approx(90)
    assert one.high == pytest.approx(132)
    assert one.source == "https://x/100 and https://x/120"


def test_the_upper_end_stays_below_the_ceiling() -> None:
    wide = Limits(spread=50, small=LIMITS.small, slack=LIMITS.slack)
    one = expected(P4DE, "all_reduce", 2, 2 * GIB, wide)
    assert one is not None
    assert one.high == ceiling(P4DE, 16, 2, "all_reduce")


@given(st.integers(32 * MIB, 2 * GIB))
def test_every_size_in_between_has_an_expectation_that_grows(size: int) -> None:
    one, more = (expected(P4DE, "all_reduce", 2, at, LIMITS) for at in (size, min(2 * GIB, size + MIB)))
    assert one is not None
    assert more is not None
    assert 0 < one.low < one.high
    assert one.low <= more.low + 1e-9


def test_every_published_figure_says_where_it_is_from() -> None:
    assert [name for name, row in MEASURED if not row.source.startswith("https://")] == []
    assert len(
        {(name, row.collective, row.nodes, row.size_bytes, row.source) for name, row in MEASURED}
    ) == len(MEASURED)


@pytest.mark.parametrize(
    "wrong", [{"low": 3.0, "high": 2.0}, {"low": 0.0}, {"nodes": 0}, {"size_bytes": 0}, {"unit": "Gbit/s"}]
)
def test_a_figure_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    good = msgspec.to_builtins(P5.busbw[0])
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**good, **wrong}, knowledge.MeasuredBusbw, strict=False)


# Sizes and values that say nothing


@pytest.mark.parametrize(
    ("name", "nodes", "smallest"),
    [
        ("p4d.24xlarge", 2, 32 * MIB),
        ("p5.48xlarge", 2, 256 * MIB),
        ("p6-b300.48xlarge", 2, 512 * MIB),
        ("p5.48xlarge", 1, 32 * MIB),
    ],
)
def test_a_faster_wire_needs_a_larger_message(name: str, nodes: int, smallest: int) -> None:
    assert too_small(smallest - 1, kind(name), nodes, LIMITS)
    assert not too_small(smallest, kind(name), nodes, LIMITS)


def test_a_type_that_is_not_known_is_held_to_the_slowest_line() -> None:
    assert too_small(MIB, None, 2, LIMITS)
    assert not too_small(32 * MIB, None, 2, LIMITS)


def test_rounding_is_no_miracle_and_no_number_is_no_value() -> None:
    assert plausible(750.4, 750, LIMITS)
    assert not plausible(760, 750, LIMITS)
    assert not any(plausible(value, None, LIMITS) for value in (math.nan, math.inf, -1))


def test_a_limit_that_nothing_could_reach_is_refused_with_the_reason() -> None:
    expectation.check_limit(440, 750)
    expectation.check_limit(440, None)
    with pytest.raises(UsageError, match="800 GB/s is more than such a run can ever reach \\(750 GB/s\\)"):
        expectation.check_limit(800, 750)
    for none in (0, -1, math.nan, math.inf):
        with pytest.raises(UsageError, match="above 0"):
            expectation.check_limit(none, None)
