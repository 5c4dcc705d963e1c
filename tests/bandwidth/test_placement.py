"""The order nodes are drawn in, the boundaries they stand behind, and the file that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from straggler.engine.bandwidth.placement import boundaries, natural_ranks, order, read_topology
from straggler.engine.errors import UsageError
from straggler.engine.model import Node, Placement


def placed(name: str, az: str | None = None, layers: tuple[str, ...] = (), block: str | None = None) -> Node:
    return Node(name, placement=Placement(az, layers, block))


def test_nodes_are_drawn_by_zone_then_network_then_name() -> None:
    nodes = [
        placed("w-10", "az2", ("top", "b")),
        placed("w-2", "az2", ("top", "b")),
        placed("w-1", "az2", ("top", "c")),
        placed("w-99", "az1", ("top", "z")),
    ]
    assert [node.id for node in order(nodes)] == ["w-99", "w-2", "w-10", "w-1"]


def test_a_node_nobody_has_placed_comes_last() -> None:
    nodes = [placed("a"), placed("b", "az1"), placed("c", None, ("top",)), placed("d", "az0")]
    assert [node.id for node in order(nodes)] == ["d", "b", "c", "a"]


def test_numbers_in_names_count_as_numbers() -> None:
    names = ["ip-10-1-10-3", "ip-10-1-9-12", "ip-10-1-9-2", "worker-100", "worker-20"]
    ranks = natural_ranks(names)
    assert sorted(names, key=ranks.__getitem__) == [
        "ip-10-1-9-2",
        "ip-10-1-9-12",
        "ip-10-1-10-3",
        "worker-20",
        "worker-100",
    ]


def test_a_name_that_is_none_still_has_its_place() -> None:
    assert natural_ranks(["b", "a", "x[1-3]", "@group", ""]) == {
        "a": 0,
        "b": 1,
        "": 2,
        "@group": 3,
        "x[1-3]": 4,
    }


def test_boundaries_are_named_from_the_top() -> None:
    place = Placement("use1-az1", ("l1", "l2", "l3"), "block-7", "us-1")
    assert boundaries(place) == (
        ("az", "use1-az1"),
        ("layer-1", "l1"),
        ("layer-2", "l2"),
        ("layer-3", "l3"),
        ("block", "block-7"),
        ("ultraserver", "us-1"),
    )
    assert boundaries(Placement()) == ()


def test_a_topology_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(
        '{"n1": {"az": "a", "layers": ["x", "y", "z"]}, "n2": {"block": "b", "ultraserver": null}, "n3": {}}'
    )
    assert read_topology(file) == {
        "n1": Placement("a", ("x", "y", "z")),
        "n2": Placement(block="b"),
        "n3": Placement(),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"n1": {"zone": "a"}}',
            "'n1': Object contains unknown field `zone`; its keys are az, layers, block",
        ),
        ('{"n1": {"az": 3}}', "'n1': Expected `str | null`, got `int`"),
        ('{"n1": {"layers": "x"}}', "'n1'"),
        ('{"n1": ["a"]}', "'n1'"),
        ("[]", "write it like"),
        ("{", "write it like"),
        ("\xff\x00", "write it like"),
        ('{"n\\u001b[31m": {"no": 1}}', "n\\x1b"),
    ],
)
def test_a_wrong_topology_file_is_one_line_that_says_what_is_wrong(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "t.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError) as error:
        read_topology(file)
    assert said in str(error.value)
    assert str(error.value).isprintable()


def test_a_topology_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_topology(tmp_path / "none.json")
    with pytest.raises(UsageError, match="Is a directory"):
        read_topology(tmp_path)


def test_a_topology_file_nested_without_end_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(UsageError, match="no topology file") as refused:
        read_topology(file)
    assert "\n" not in str(refused.value)
