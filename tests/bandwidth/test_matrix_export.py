"""The matrix as text, JSON, CSV and SVG, and the command that prints it: what scripts and readers can rely on."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine.bandwidth import layout
from straggler.engine.bandwidth.model import Blame, Kind, Metric, Round, Run, RunState
from straggler.engine.bandwidth.picture import Picture, Section, arranged, by_score, short_names
from straggler.engine.bandwidth.readers import pairs_csv
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.export import matrix_csv, matrix_json, matrix_svg, matrix_text
from straggler.engine.model import Placement
from straggler.engine.simcluster import nccl_tests
from straggler.engine.simcluster.scenarios import build
from straggler.engine.targets.demo import demo_target
from straggler.tui import cli
from tests.support import matrices
from tests.support.matrices import attributed, matrix, names, view

SVG = "{http://www.w3.org/2000/svg}"
FORMATS: dict[str, Callable[[MatrixView], str]] = {
    "text": matrix_text.render,
    "json": matrix_json.render,
    "csv": matrix_csv.render,
    "svg": matrix_svg.render,
}


# JSON: the contract.


def test_json_has_the_keys_scripts_depend_on() -> None:
    found = json.loads(matrix_json.render(matrices.slow_node(8 + 4)))
    contract = {"schema", "size_bytes", "nodes", "pairs", "median_gbs", "mean_gbs", "verdicts"}
    assert contract <= found.keys()
    assert found["schema"] == 1
    assert found["size_bytes"] == 8 << 30
    assert found["nodes"][0] == "worker-001"
    assert found["pairs"][0].keys() == {"a", "b", "busbw_gbs", "status", "runs"}
    [verdict] = found["verdicts"]
    assert {"kind", "subjects", "effect", "confidence", "why", "next_pair"} <= verdict.keys()
    assert verdict["kind"] == "node"
    assert verdict["subjects"] == ["worker-011"]
    assert verdict["effect"] == pytest.approx(-0.31)
    assert verdict["next_pair"] == ["worker-011", "worker-004"]
    assert {
        "metric",
        "doubts",
        "below_mean",
        "alone",
        "groups",
        "expected",
        "ceiling",
        "notes",
    } <= found.keys()


def test_a_pair_without_a_value_is_null_and_has_its_state() -> None:
    text = matrix_json.render(matrices.failed_pairs())
    assert "NaN" not in text
    assert "Infinity" not in text
    by_pair = {(one["a"], one["b"]): one for one in json.loads(text)["pairs"]}
    assert by_pair["worker-001", "worker-021"]["busbw_gbs"] is None
    assert by_pair["worker-001", "worker-021"]["status"] == "failed"
    assert by_pair["worker-002", "worker-006"]["status"] == "truncated"
    assert by_pair["worker-003", "worker-008"]["status"] == "implausible"
    assert by_pair["worker-004", "worker-005"] == {
        "a": "worker-004",
        "b": "worker-005",
        "busbw_gbs": None,
        "status": "ok",
        "runs": 1,
    }


def test_no_verdict_is_an_empty_list_and_no_run_is_null_medians() -> None:
    assert json.loads(matrix_json.render(matrices.healthy()))["verdicts"] == []
    one = matrix(names(3), lambda a, b: RunState.FAILED)
    found = json.loads(matrix_json.render(view(one, attributed(one))))
    assert found["median_gbs"] is None
    assert found["mean_gbs"] is None


# CSV.


def test_csv_reads_back_as_the_same_matrix() -> None:
    for make in matrices.FLEETS.values():
        before = make().matrix
        runs = pairs_csv.read(matrix_csv.render(make()), "again.csv")
        again = layout.build(runs, before.nodes)
        assert again.size == before.size
        assert again.nodes == before.nodes
        assert again.a.tolist() == before.a.tolist()
        complete = [
            at for at, code in enumerate(before.state) if code == 0 and before.value[at] == before.value[at]
        ]
        assert again.value[complete] == pytest.approx(before.value[complete], rel=1e-5)
        stated = [at for at, code in enumerate(before.state) if code]
        assert again.state[stated].tolist() == before.state[stated].tolist()


def test_a_latency_is_not_called_a_bandwidth() -> None:
    one = matrix(("a", "b", "c"), lambda a, b: 15.0 + b, metric=Metric.LATENCY)
    text = matrix_csv.render(view(one, attributed(one)))
    assert text.splitlines()[0] == "a,b,latency_us,size_bytes,status,runs"
    found = json.loads(matrix_json.render(view(one, attributed(one))))
    first = found["pairs"][0]
    assert (first["busbw_gbs"], first["latency_us"], first["status"]) == (None, 16.0, "ok")
    assert found["median_gbs"] is None
    assert found["median_us"] == 17.0
    assert all(run.metric is Metric.LATENCY for run in pairs_csv.read(text, "x"))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", " =", "\r@"])
def test_a_spreadsheet_runs_no_name(start: str) -> None:
    evil = f'{start}HYPERLINK("http://x")'
    one = matrix((evil, "b"), lambda a, b: 471.0)
    [_, row] = csv.reader(matrix_csv.render(view(one, attributed(one))).splitlines())
    assert row[0].lstrip()[0] not in "=+-@\t\r"


# SVG.


@pytest.mark.parametrize("count", [0, 1, 2, 24, 100, 200])
def test_svg_is_whole_and_carries_nothing_from_elsewhere(count: int) -> None:
    if count < 2:
        one = matrix(names(count), lambda a, b: 471.0)
        text = matrix_svg.render(view(one, attributed(one)))
    else:
        text = matrix_svg.render(matrices.healthy(count))
    root = ElementTree.fromstring(text)
    assert root.find(f"{SVG}title") is not None
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert f"{count} node" in (description.text or "")
    tags = {one.tag.removeprefix(SVG) for one in root.iter()}
    assert tags <= {"svg", "title", "desc", "defs", "pattern", "rect", "path", "text", "g"}
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("example.org", "")


def test_svg_is_the_same_for_the_same_matrix() -> None:
    assert matrix_svg.render(matrices.failed_pairs()) == matrix_svg.render(matrices.failed_pairs())


def test_svg_names_the_accused_and_draws_the_boundary() -> None:
    text = matrix_svg.render(matrices.slow_node())
    assert "verdict: worker-011 is slow" in text
    assert "use1-az2" in text


def test_every_pair_of_the_svg_is_drawn_twice_and_no_other() -> None:
    text = matrix_svg.render(matrices.partial())
    cells = sum(
        (one.get("d") or "").count("z")
        for one in ElementTree.fromstring(text).iter(f"{SVG}path")
        if one.get("fill") is not None
    )
    assert cells == 2 * len(matrices.partial().matrix) + 24


# Text.


def test_text_says_the_verdict_first_then_what_is_open_then_the_digits() -> None:
    text = matrix_text.render(matrices.slow_node())
    order = ["VERDICT worker-011 is slow (−31 %, 97 % sure, 23 of 23 pairs)", "Why: its best pairs"]
    order += ["To confirm it: run worker-011 × worker-004 with nothing beside it", "For information:"]
    order += [
        "23 pairs more than 5 % below the mean",
        "No verdict rests on that",
        "culprit",
        "9 = at the median",
    ]
    places = [" ".join(text.split()).find(one) for one in order]
    assert -1 not in places
    assert places == sorted(places)
    assert "011  6 6 6 6 6 6 6 6 │ 6 6 · 6" in text


def test_nobody_accused_says_what_was_not_covered() -> None:
    text = matrix_text.render(matrices.partial())
    assert "No verdict: nobody is accused; 1 run to repeat." in text
    assert "254 pairs not run" in text
    assert "it is not the same as fine" in text
    text = matrix_text.render(matrices.failed_pairs())
    for gap in ("23 pairs failed", "1 pair cut off", "1 pair above what the wire can carry"):
        assert gap in text
    assert "readme.md" in text


def test_without_any_value_nothing_is_said_of_anybody() -> None:
    one = matrix(names(3), lambda a, b: RunState.FAILED)
    text = matrix_text.render(view(one, attributed(one)))
    assert "nothing can be said of any node" in text
    assert "nobody is accused" not in text


def test_a_wide_matrix_is_folded_to_its_worst_rows() -> None:
    text = matrix_text.render(matrices.slow_node(130))
    assert max(map(len, text.splitlines())) <= 120
    assert "the matrix is too wide for text (130 nodes)" in text.lower()
    assert next(line for line in text.splitlines() if line.startswith("011 ")) == "011  6: 129"
    assert "and 118 more" in text


def test_a_run_over_many_nodes_is_shown_and_accuses_nobody() -> None:
    one = matrix(names(4), lambda a, b: 471.0)
    good = Run("job.log", "nccl-tests", names(4), RunState.OK, points={1 << 30: 380.0})
    bad = Run("hung.log", "nccl-tests", names(3), RunState.FAILED, "timed out")
    text = matrix_text.render(view(replace(one, groups=(good, bad)), attributed(one)))
    assert "4 nodes, worker-[001-004]: 380 GB/s at 1 GiB (job.log)" in text
    assert "3 nodes, worker-[001-003]: failed: timed out (hung.log)" in text


def test_round_zero_alone_says_that_no_pair_was_run() -> None:
    one = matrix(names(4), lambda a, b: None, [], own=lambda at: 480.0 if at else 300.0)
    text = matrix_text.render(view(replace(one, size=None), attributed(one)))
    assert text.startswith("Pairwise busbw GB/s · 0 of 6 pairs")
    assert "no pair was run yet" in text
    assert Picture(view(one, attributed(one)), range(4)).row(0)[0] == "5"


def test_only_ascii_when_asked() -> None:
    for make in matrices.FLEETS.values():
        assert matrix_text.render(make(), ascii_only=True).isascii()


def test_a_fleet_that_is_slow_as_a_whole_is_drawn_beside_what_it_should_be() -> None:
    found = matrices.majority_slow()
    picture = Picture(found, range(24))
    assert picture.row(10).count("9") == 0
    assert picture.row(0)[1] == "9"
    assert "9 = at what it should be" in matrix_text.render(found)


@pytest.mark.parametrize(
    ("blame", "said"),
    [
        (
            Blame(Kind.LINK, ("a", "b"), -0.4, 0.9, "", 2, 2),
            "the link a × b is slow (−40 %, 90 % sure, 2 of 2 pairs)",
        ),
        (
            Blame(Kind.BOUNDARY, ("az:x", "az:y"), -0.2, 0.9, "", 9, 9),
            "traffic between AZ x and y is slow",
        ),
        (
            Blame(Kind.BOUNDARY, ("az:x", "az:*"), -0.2, 0.9, "", 9, 9),
            "traffic between AZ x and any other is slow",
        ),
        (
            Blame(Kind.BOUNDARY, ("block:*",), None, 0.9, "", 9, 9),
            "traffic from one block to another fails",
        ),
        (Blame(Kind.NODE, ("a",), None, 1.0, "", 5, 5), "every run of a failed (> 99 % sure, 5 of 5 pairs)"),
        (
            Blame(Kind.NODE, ("a",), -0.1, 0.9, "", 2, 2, alone=True),
            "a is slow by itself (−10 %, 90 % sure, 2 of 2 runs)",
        ),
        (
            Blame(Kind.BOUNDARY, ("layer-3:p", "layer-3:q"), -0.2, 0.9, "", 9, 9),
            "traffic between network layer 3 p and q is slow",
        ),
        (Blame(Kind.CLUSTER, (), -0.3, 0.9, "", 9, 9), "the fleet as a whole is slow"),
        (Blame(Kind.CLUSTER, (), -0.3, 0.9, "", 6, 9), "most of the fleet is slow: 6 of 9 nodes"),
    ],
)
def test_each_kind_of_verdict_is_a_plain_sentence(blame: Blame, said: str) -> None:
    one = matrix(("a", "b", "c"), lambda a, b: 400.0)
    text = matrix_text.render(view(one, attributed(one, (blame,))))
    assert f"{said}" in " ".join(text.split())


# Hostile names.


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=5, unique=True), st.text(max_size=40))
def test_whatever_a_file_calls_its_hosts_stays_text(hosts: list[str], place: str) -> None:
    one = matrix(tuple(hosts), lambda a, b: 400.0 if b % 2 else RunState.TRUNCATED, notes=(place,))
    blame = Blame(Kind.NODE, (hosts[0],), -0.3, 0.9, place, 1, 1, (hosts[0], hosts[1]), evidence=(place,))
    where = {hosts[0]: Placement(place or None), hosts[1]: Placement("b", ("x",))}
    found = view(one, attributed(one, (blame,)), where)
    for name, render in FORMATS.items():
        text = render(found)
        assert not [char for char in text if char != "\n" and not char.isprintable()], name
    ElementTree.fromstring(matrix_svg.render(found))
    json.loads(matrix_json.render(found))
    assert len(list(csv.reader(matrix_csv.render(found).splitlines()))) == 1 + len(one)


def test_short_names_keep_what_tells_nodes_apart() -> None:
    assert short_names(["worker-001", "worker-002"]) == (("001", "002"), "worker-")
    assert short_names(["ip-10-0-0-1.ec2.internal", "ip-10-0-0-23.ec2.internal"]) == (
        ("1", "23"),
        "ip-10-0-0-",
    )
    assert short_names(["a1.x", "b2.x"]) == (("a1", "b2"), "")
    assert short_names(["node1", "node12"]) == (("1", "12"), "node")
    assert short_names(["node", "node1"]) == (("node", "node1"), "")
    assert short_names(["alone-7"]) == (("alone-7",), "")
    assert short_names([]) == ((), "")
    [long, other], _ = short_names(["x" * 40 + "-a", "y" * 40 + "-b"])
    assert long == "…" + "x" * 13 + "-a"
    assert len(other) == 16


# Boundaries.


def sections_of(where: dict[str, Placement], count: int) -> list[tuple[str, int, bool]]:
    one = matrix(names(count), lambda a, b: 471.0)
    found = arranged(view(one, attributed(one), where)).sections
    return [(" ".join(section.names), section.stop - section.start, section.wider) for section in found]


def test_zones_are_parted_more_strongly_than_racks_within_them() -> None:
    where = {
        name: Placement("az1" if at < 16 else "az2", (f"rack-{at // 8}",))
        for at, name in enumerate(names(24))
    }
    assert sections_of(where, 24) == [("az1 rack-0", 8, True), ("rack-1", 8, False), ("az2 rack-2", 8, True)]
    lines = matrix_text.render(
        view(one := matrix(names(24), lambda a, b: 471.0), attributed(one), where)
    ).splitlines()
    assert sum("╪" in line or "╬" in line for line in lines) == 1
    assert sum("┼" in line or "╫" in line for line in lines) == 1


def test_places_of_a_few_nodes_each_are_not_parted() -> None:
    where = {
        name: Placement("az1", (f"leaf-{at // 2:02}",), block=f"b{at // 12}")
        for at, name in enumerate(names(24))
    }
    assert sections_of(where, 24) == [("b0", 12, False), ("b1", 12, False)]
    where = {name: Placement(f"az{at // 12}", (f"leaf-{at // 2:02}",)) for at, name in enumerate(names(24))}
    assert sections_of(where, 24) == [("az0", 12, False), ("az1", 12, False)]


def test_nodes_of_unknown_place_stand_apart_and_a_place_all_share_parts_nothing() -> None:
    every = names(8)
    assert sections_of({name: Placement("az1") for name in every}, 8) == []
    assert sections_of({}, 8) == []
    known = {name: Placement("az1") for name in every[2:]}
    assert sections_of(known, 8) == [("az1", 6, False), ("no az", 2, False)]


def test_a_long_name_keeps_its_end() -> None:
    one = Section(("use1-az1", "nn-0a1b2c3d"), 0, 8)
    assert one.named(30) == "use1-az1 nn-0a1b2c3d"
    assert one.named(10) == "use1-az1"
    assert one.named(4) == "…az1"
    assert one.named(1) == ""


# The command.


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Twenty-four nodes, one of them slow with everybody."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "pairs.csv").write_text(matrix_csv.render(matrices.slow_node()))
    (folder / "notes.md").write_text("nothing to see")
    return folder


def straggler(*words: str | Path) -> int:
    try:
        return cli.main([str(word) for word in words])
    except SystemExit as end:
        return int(end.code or 0)


def test_the_command_names_the_slow_node(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert straggler("matrix", results) == 0
    out = capsys.readouterr().out
    assert "VERDICT  worker-011 is slow" in out
    assert "notes.md: is no output of a bandwidth tool" in " ".join(out.split())


@pytest.mark.parametrize(
    ("scenario", "kinds"), [("healthy", []), ("slow-node", ["node"]), ("cross-az", ["boundary"])]
)
def test_logs_of_simulated_nodes_are_read_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scenario: str, kinds: list[str]
) -> None:
    sims, target = build(scenario, 12, 0), demo_target(scenario, 12)
    every = [Round(0, tuple((name,) for name in sims))]
    every += [Round(number, (pair,)) for number, pair in enumerate(combinations(sims, 2), 1)]
    (tmp_path / "logs").mkdir()
    for name, text in nccl_tests.runs(sims, every):
        (tmp_path / "logs" / Path(name).name).write_text(text)
    places = {node.id: {"az": node.placement.az, "layers": node.placement.layers} for node in target.nodes}
    (tmp_path / "nodes.json").write_text(json.dumps(places))
    words = ("--instance-type", "ml.p5.48xlarge", "--topology", tmp_path / "nodes.json", "--format", "json")
    assert straggler("matrix", tmp_path / "logs", *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in found["verdicts"]] == kinds
    assert len(found["pairs"]) == 66
    assert len(found["alone"]["nodes"]) == 12
    assert found["ceiling"] == 750


def test_the_command_names_the_boundary_of_a_topology_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.csv").write_text(matrix_csv.render(matrices.cross_az()))
    where = {name: {"az": place.az} for name, place in matrices.az_of(24).items()}
    (tmp_path / "nodes.json").write_text(json.dumps(where))
    words = ("matrix", tmp_path / "pairs.csv", "--topology", tmp_path / "nodes.json", "--format", "json")
    assert straggler(*words) == 0
    [verdict] = json.loads(capsys.readouterr().out)["verdicts"]
    assert verdict["kind"] == "boundary"
    assert verdict["subjects"] == ["az:use1-az1", "az:use1-az2"]


@pytest.mark.parametrize("form", ["text", "json", "csv", "svg"])
def test_every_format_is_printed_whole(results: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    assert straggler("matrix", results, "--format", form) == 0
    said = capsys.readouterr()
    assert said.out.endswith("\n")
    assert said.err == ""
    assert "worker-011" in said.out


def test_a_type_brings_its_ceiling_and_a_fleet_below_its_expectation_is_slow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = matrix(names(12), lambda a, b: 210.0 + a)
    text = matrix_csv.render(view(one, attributed(one)))
    (tmp_path / "pairs.csv").write_text(text)
    assert (
        straggler("matrix", tmp_path / "pairs.csv", "--instance-type", "p5.48xlarge", "--format", "json") == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["expected"]["what"] == "p5 pairs"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "PATH"),
        (("nowhere",), 1, "no bandwidth result was read"),
        (("results/notes.md",), 1, "is no output of a bandwidth tool"),
        (("results", "--instance-type", "p5.48xlarg"), 2, "did you mean p5.48xlarge?"),
        (("results", "--instance-type", "abacus"), 2, "nothing is known of the instance type"),
        (("results", "--topology", "results/notes.md"), 2, "is no topology file"),
        (("results", "--topology", "nowhere.json"), 2, "cannot read the topology file"),
        (("results", "--format", "xml"), 2, "invalid choice"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    status: int,
    said: str,
) -> None:
    monkeypatch.chdir(results.parent)
    assert straggler("matrix", *words) == status
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert said in told.err


def test_an_empty_folder_is_nothing_that_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert straggler("matrix", tmp_path) == 1
    assert "there are no files" in capsys.readouterr().err


def test_a_pipe_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert straggler("matrix", tmp_path) == 1
    assert "neither a file nor a folder" in capsys.readouterr().err


def test_a_view_is_a_snapshot() -> None:
    found = matrices.healthy()
    with pytest.raises(AttributeError):
        found.revision = 2  # type: ignore[misc]
    assert replace(found, revision=2).matrix is found.matrix


def test_before_the_first_pair_nothing_is_said_of_what_pairs_should_reach() -> None:
    empty = matrix(("a", "b"), lambda a, b: 1.0, [])
    text = " ".join(matrix_text.render(view(empty, attributed(empty))).split())
    assert "expected" not in text.partition("nodes")[0]
    assert "ceiling" not in text


def test_by_score_a_node_that_failed_with_everybody_comes_before_all() -> None:
    found = matrices.failed_pairs()
    [blame] = found.attribution.verdicts
    scores = {name: 1.0 for name in found.matrix.nodes if name not in blame.subjects}
    scored = replace(found, attribution=replace(found.attribution, scores=scores))
    assert found.matrix.nodes[by_score(scored)[0]] == blame.subjects[0]
