"""Which pairs run when: every pair once, nobody twice at a time, and boundaries seen early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.bandwidth.model import Attribution, Blame, Doubt, Kind, Round, Standing
from straggler.engine.bandwidth.schedule import next_round, pack, round_zero, rounds
from straggler.engine.model import Placement


def names(many: int) -> list[str]:
    return [f"n{number}" for number in range(many)]


def zones(nodes: Sequence[str], many: int) -> dict[str, Placement]:
    return {node: Placement(az=f"az{at * many // len(nodes)}") for at, node in enumerate(nodes)}


def disjoint(one: Round) -> bool:
    nodes = [node for member in one.members for node in member]
    return len(nodes) == len(set(nodes))


@given(st.integers(2, 60), st.integers(0, 5), st.integers(1, 7))
def test_all_rounds_cover_every_pair_once_and_any_first_few_are_balanced(
    many: int, seed: int, groups: int
) -> None:
    nodes = names(many)
    planned = rounds(nodes, zones(nodes, groups), seed)
    pairs = [member for one in planned for member in one.members]
    assert len(pairs) == len(set(pairs)) == many * (many - 1) // 2
    assert {frozenset(pair) for pair in pairs} == {frozenset((a, b)) for a in nodes for b in nodes if a != b}
    assert all(disjoint(one) for one in planned)
    assert [one.number for one in planned] == list(range(1, len(planned) + 1))
    had: Counter[str] = Counter(dict.fromkeys(nodes, 0))
    for one in planned:
        had.update(node for member in one.members for node in member)
        assert max(had.values()) - min(had.values()) <= 1


@given(st.integers(2, 40), st.integers(1, 12), st.integers(0, 3), st.integers(1, 5))
def test_fewer_rounds_are_the_first_of_more(many: int, limit: int, seed: int, groups: int) -> None:
    nodes = names(many)
    every = rounds(nodes, zones(nodes, groups), seed)
    assert rounds(nodes, zones(nodes, groups), seed, limit) == every[:limit]


def test_the_same_seed_gives_the_same_rounds_and_another_one_others() -> None:
    nodes = names(32)
    assert rounds(nodes, {}, 1) == rounds(nodes, {}, 1)
    assert rounds(nodes, {}, 1, 3) != rounds(nodes, {}, 2, 3)


def kinds(planned: Sequence[Round], places: Mapping[str, Placement]) -> tuple[set[str], set[str]]:
    """The nodes that had a pair inside their zone, and those that had one across."""
    inside: set[str] = set()
    across: set[str] = set()
    for one in planned:
        for a, b in one.members:
            (inside if places[a].az == places[b].az else across).update((a, b))
    return inside, across


@pytest.mark.parametrize("seed", range(5))
def test_two_zones_are_compared_within_the_first_round_and_for_nearly_every_node_after_two(seed: int) -> None:
    nodes = names(64)
    places = zones(nodes, 2)
    inside, across = kinds(rounds(nodes, places, seed, 1), places)
    assert len(inside) == len(across) == 32
    inside, across = kinds(rounds(nodes, places, seed, 2), places)
    assert len(inside & across) >= 60
    inside, across = kinds(rounds(nodes, places, seed, 3), places)
    assert len(inside & across) == 64


@pytest.mark.parametrize("seed", range(5))
def test_many_small_racks_are_seen_from_inside_too(seed: int) -> None:
    """Of 16 racks of 4, one pair in 21 is inside: left to chance, five rounds would show it to one node in five."""
    nodes = names(64)
    places = zones(nodes, 16)
    inside, across = kinds(rounds(nodes, places, seed, 2), places)
    assert len(inside & across) >= 60


def test_every_level_of_the_network_is_crossed_early() -> None:
    nodes = names(64)
    places = {
        node: Placement(f"az{at // 32}", ("top", f"l2-{at // 16}", f"l3-{at // 4}"))
        for at, node in enumerate(nodes)
    }
    crossed: dict[str, set[str]] = {node: set() for node in nodes}
    for one in rounds(nodes, places, 3, 5):
        for a, b in one.members:
            levels = ("az", *places[a].layers), ("az", *places[b].layers)
            found = "az" if places[a].az != places[b].az else ""
            found = found or next(
                (str(n) for n, (x, y) in enumerate(zip(*levels, strict=True)) if x != y), "none"
            )
            crossed[a].add(found)
            crossed[b].add(found)
    assert sum(len(one) >= 3 for one in crossed.values()) >= 48


def test_a_node_that_nobody_has_placed_is_paired_all_the_same() -> None:
    nodes = names(9)
    places = zones(nodes[:6], 2)
    assert sum(len(one.members) for one in rounds(nodes, places, 0)) == 36


def test_one_node_has_no_pairs_and_a_node_named_twice_is_refused() -> None:
    assert rounds(["a"], {}, 0) == ()
    assert rounds([], {}, 0) == ()
    with pytest.raises(ValueError, match="twice"):
        rounds(["a", "a"], {}, 0)


def test_round_zero_has_each_node_alone() -> None:
    assert round_zero(["a", "b"]) == Round(0, (("a",), ("b",)))


def test_thousands_of_nodes_are_planned() -> None:
    nodes = names(4000)
    planned = rounds(nodes, zones(nodes, 40), 0, 5)
    assert [len(one.members) for one in planned] == [2000] * 5


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda pair: pair[0] != pair[1]), max_size=40
    )
)
def test_given_pairs_are_packed_without_losing_or_doubling_one(pairs: list[tuple[int, int]]) -> None:
    wanted = [(f"n{a}", f"n{b}") for a, b in pairs]
    packed = pack(wanted)
    assert sorted(member for one in packed for member in one.members) == sorted(
        {tuple(sorted(p)) for p in wanted}
    )
    assert all(disjoint(one) for one in packed)
    busiest = max(Counter(n for p in {tuple(sorted(p)) for p in wanted} for n in p).values(), default=0)
    assert busiest <= len(packed) <= max(2 * busiest - 1, 0)


def seen(
    standings: Mapping[str, Standing],
    doubts: Sequence[tuple[str, str]] = (),
    *,
    settled: bool = False,
    verdicts: tuple[Blame, ...] = (),
) -> Attribution:
    return Attribution(
        verdicts=verdicts,
        doubts=tuple(Doubt(pair, -0.2, "low once") for pair in doubts),
        median=100.0,
        mean=99.0,
        scores={},
        standings=standings,
        settled=settled,
    )


CLEARED, SUSPECT, CULPRIT = Standing.CLEARED, Standing.SUSPECT, Standing.CULPRIT


def test_a_settled_verdict_needs_no_further_round() -> None:
    assert next_round(["a", "b"], [], seen({"a": SUSPECT, "b": CLEARED}, settled=True), number=6) is None


def test_suspects_meet_cleared_nodes_they_have_not_met_each_only_once() -> None:
    nodes = names(8)
    standings = dict.fromkeys(nodes, CLEARED) | {"n0": SUSPECT, "n1": SUSPECT, "n7": CULPRIT}
    done = [("n0", "n2"), ("n3", "n0"), ("n1", "n2")]
    found = next_round(nodes, done, seen(standings), number=6)
    assert found is not None
    assert found.number == 6
    assert not found.alone
    assert disjoint(found)
    assert {member[0] for member in found.members} == {"n0", "n1"}
    assert {member[1] for member in found.members} <= {"n2", "n3", "n4", "n5", "n6"}
    assert list(found.members) == [tuple(sorted(member)) for member in found.members]
    assert not {frozenset(member) for member in found.members} & {frozenset(pair) for pair in done}


def test_a_suspect_gets_a_new_partner_every_time_and_the_old_ones_only_when_none_is_left() -> None:
    nodes = names(5)
    standings = dict.fromkeys(nodes, CLEARED) | {"n0": SUSPECT}
    done: list[tuple[str, str]] = []
    for _ in range(8):
        found = next_round(nodes, done, seen(standings), number=6)
        assert found is not None
        done += [(a, b) for a, b in found.members]
    assert Counter(b for _, b in done) == {"n1": 2, "n2": 2, "n3": 2, "n4": 2}
    assert len({b for _, b in done[:4]}) == 4


def test_it_ends_by_itself() -> None:
    nodes = names(4)
    standings = dict.fromkeys(nodes, CLEARED) | {"n0": SUSPECT}
    done: list[tuple[str, str]] = []
    for _ in range(100):
        found = next_round(nodes, done, seen(standings), number=6, repeats=2)
        if found is None:
            break
        done += [(a, b) for a, b in found.members]
    assert len(done) == 6


def test_nodes_with_too_few_runs_are_paired_after_the_suspects() -> None:
    nodes = ["a", "b", "c", "d"]
    standings = {"a": CLEARED, "b": CLEARED, "c": SUSPECT}
    found = next_round(nodes, [], seen(standings), number=3)
    assert found is not None
    assert [member[1] for member in found.members] == ["c", "d"]


def test_a_doubtful_pair_is_repeated_with_nothing_beside_it() -> None:
    standings = dict.fromkeys(names(6), CLEARED)
    found = next_round(names(6), [], seen(standings, [("n4", "n2"), ("n1", "n3")]), number=6)
    assert found == Round(6, (("n2", "n4"),), alone=True)
    found = next_round(
        names(6), [], seen(standings, [("n4", "n2"), ("n1", "n3")]), number=6, repeated={("n2", "n4"): 3}
    )
    assert found == Round(6, (("n1", "n3"),), alone=True)


def test_a_node_doubted_by_itself_is_repeated_by_itself() -> None:
    found = next_round(["a", "b"], [], seen({"a": CLEARED, "b": CLEARED}, [("a", "a")]), number=2)
    assert found == Round(2, (("a",),), alone=True)


def test_what_would_settle_a_verdict_is_run_alone() -> None:
    blame = Blame(Kind.NODE, ("a",), -0.3, 0.8, "", 2, 2, next_pair=("c", "a"))
    found = next_round(["a", "b", "c"], [], seen(dict.fromkeys("abc", CLEARED), verdicts=(blame,)), number=2)
    assert found == Round(2, (("a", "c"),), alone=True)


def test_with_nobody_cleared_and_nothing_doubtful_nothing_more_is_asked_for() -> None:
    assert next_round(["a", "b"], [], seen({"a": SUSPECT, "b": SUSPECT}), number=2) is None
    assert next_round(["a", "b"], [], seen({"a": CLEARED, "b": CLEARED}), number=2) is None


def test_hundreds_of_suspects_among_thousands_are_paired_at_once() -> None:
    nodes = names(4000)
    standings = {node: SUSPECT if at < 400 else CLEARED for at, node in enumerate(nodes)}
    found = next_round(nodes, [(nodes[0], nodes[500])], seen(standings), number=6)
    assert found is not None
    assert len(found.members) == 400
    assert disjoint(found)
