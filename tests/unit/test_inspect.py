"""`straggler inspect`: what a file is, what it means and what to do next, without a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine import knowledge
from straggler.engine.inspect import kinds, reading, report
from straggler.engine.sections import Sections
from straggler.tui import cli
from tests.support.bandwidth_logs import pair_log
from tests.support.cases import HOME, Case, cases

CASES = HOME / "nccl-tests"
SIZES = (1 << 20, 1 << 30)
KNOWN = knowledge.load()
SECTIONS = Sections.load()


@pytest.fixture(autouse=True)
def own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAGGLER_CONFIG_DIR", str(tmp_path / "config"))


def inspected(capsys: pytest.CaptureFixture[str], *paths: Path | str) -> list[dict[str, Any]]:
    assert cli.main(["inspect", "--format", "json", *map(str, paths)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    return list(document["files"])


@pytest.mark.parametrize("case", cases("nccl-tests"), ids=lambda case: case.name)
def test_every_recorded_output_is_told_apart_and_judged(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    [file] = inspected(capsys, CASES / f"{case.name}.txt")
    assert file["kind"] == case.expected["kind"]
    found = {one["id"] for one in file["findings"]}
    assert set(case.expected["findings"]) <= found
    assert not found & set(case.expected["not"])
    assert {name: file["facts"].get(name) for name in case.expected if name in file["facts"]} == {
        name: value for name, value in case.expected.items() if name in file["facts"]
    }
    assert case.expected.keys() - file["facts"].keys() == {"kind", "findings", "not"}


def test_a_finding_has_everything_a_finding_of_a_live_check_has(capsys: pytest.CaptureFixture[str]) -> None:
    path = CASES / "h100-fleet-cuda-failure.txt"
    [file] = inspected(capsys, path)
    [failed] = [one for one in file["findings"] if one["id"] == "nccl-tests.nccl-failure"]
    assert failed["level"] == "FAIL"
    assert failed["subjects"] == ["GPN-143", "GPN-121", "GPN-119"]
    assert failed["evidence"][0]["source"] == f"{path}:32"
    assert failed["evidence"][0]["text"].startswith("GPN-143: Test NCCL failure")
    for name in ("priority", "why", "false_alarm", "next_step"):
        assert failed[name], name
    assert SECTIONS.has(failed["reference"])


def test_every_finding_id_of_every_kind_has_an_entry_and_a_section() -> None:
    for name in kinds.FINDS:
        assert SECTIONS.has(KNOWN.finding_kind(name).section), name


def test_a_file_with_several_runs_lists_each_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, other = pair_log(("a", "b"), sizes=SIZES), pair_log(("a", "c"), sizes=SIZES, closed=False)
    (tmp_path / "slurm.out").write_text(good + other)
    [file] = inspected(capsys, tmp_path / "slurm.out")
    lines = len(good.splitlines())  # the last of them is empty
    assert [part["lines"] for part in file["parts"]] == [
        [1, lines - 1],
        [lines + 1, len((good + other).splitlines())],
    ]
    assert [part["facts"]["hosts"] for part in file["parts"]] == [["a", "b"], ["a", "c"]]
    assert [len(part["findings"]) for part in file["parts"]] == [0, 1]
    assert [one["subjects"] for one in file["findings"]] == [["a", "c"]]
    assert (file["facts"]["rows"], file["facts"]["complete"]) == (4, False)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("pairs.txt", "a,b,busbw_gbs\na,b,400\na,c,failed\n", "pairs-csv"),
        (
            "ping.json",
            "bytes iters total time MB/sec usec/xfer Mxfers/sec\n64 1k 125k 0.01s 11.55 5.54 0.18\n",
            "fi-pingpong",
        ),
        ("x", "Connecting to host 10.0.0.2, port 5201\niperf3: error - unable to connect\n", "iperf3"),
        ("r.log", '{"version":3,"start_time":"t","results":[', "nccl-tests-json"),
        ("notes.csv", "call Bob\n", "unknown"),
        ("empty", "", "unknown"),
    ],
)
def test_a_kind_is_told_by_what_stands_in_the_file(
    name: str, text: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert [one["kind"] for one in inspected(capsys, tmp_path / name)] == [kind]


def test_a_folder_is_read_whole_and_what_cannot_be_read_is_in_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a__b.txt").write_text(pair_log(("a", "b"), sizes=SIZES))
    os.mkfifo(tmp_path / "in" / "pipe")
    files = inspected(capsys, tmp_path / "in", tmp_path / "gone")
    assert [(Path(one["path"]).name, one["kind"]) for one in files] == [
        ("a__b.txt", "nccl-tests"),
        ("pipe", "unknown"),
        ("gone", "unknown"),
    ]
    assert "No such file" in files[2]["why"]


def test_where_nothing_can_be_read_it_says_so_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").mkdir()
    for paths in ([tmp_path / "gone"], [tmp_path / "gone", tmp_path / "gone too"], [tmp_path / "none"]):
        assert cli.main(["inspect", *map(str, paths)]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1
        assert "nothing could be read" in said.err


def test_without_a_path_the_arguments_are_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["inspect"])
    assert ended.value.code == 2
    assert "PATH" in capsys.readouterr().err


def test_standard_input_is_a_file_called_dash(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "straggler.tui", "inspect", "-"],
        input=(CASES / "wrong-values-scientific.txt").read_bytes(),
        capture_output=True,
        env={**os.environ, "STRAGGLER_CONFIG_DIR": str(tmp_path)},
        timeout=60,
        check=True,
    )
    assert done.stdout.decode().startswith("-: nccl-tests\n")


def test_the_text_says_what_it_is_what_it_means_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(CASES / "wrong-values-scientific.txt")]) == 0
    text = capsys.readouterr().out
    kind = KNOWN.finding_kind("nccl-tests.wrong-results")
    plain = " ".join(text.split())
    assert "FAIL P0 Results were wrong" in plain
    assert f"Next: {kind.next_step}" in plain
    assert f"Remedy: remedies/{kind.section}" in plain
    assert "108 FAILED" in plain


def test_a_run_that_hung_says_which_line_tells_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "slurmstepd: error: *** STEP 71.0 ON a CANCELLED AT 2026-12-01T03:44:10 DUE TO TIME LIMIT ***"
    (tmp_path / "a__b.txt").write_text(pair_log(("a", "b"), sizes=SIZES, closed=False, ending=line + "\n"))
    [file] = inspected(capsys, tmp_path / "a__b.txt")
    [cut] = file["findings"]
    assert cut["id"] == "nccl-tests.incomplete"
    assert cut["evidence"][0]["text"] == line
    assert "time limit" in cut["details"][0]["text"]


def test_hostile_text_in_a_file_never_reaches_the_terminal_as_it_is() -> None:
    evil = "evil\x1b]0;title\x07\u202ename"
    log = pair_log(("a", "b"), sizes=SIZES, closed=False).replace(" on          b ", f" on {evil} ")
    log += f"{evil}: Test NCCL failure common.cu:777 '{evil}\x9b31m'\n"
    one = reading.inspect(log.encode(), f"/tmp/{evil}.txt", KNOWN, SECTIONS)
    for text in (report.as_text([one]), report.as_json([one])):
        assert not set(text) & set("\x1b\x07\x9b\u202e")


PRINTED = [
    (HOME / kind / f"{case.name}.txt").read_bytes()
    for kind in ("nccl-tests", "fi-info")
    for case in cases(kind)
]


@given(
    st.one_of(
        st.binary(max_size=200),
        st.builds(
            lambda data, at, upto, put: data[:at] + put + data[max(at, upto) :],
            st.sampled_from(PRINTED),
            st.integers(0, 3000),
            st.integers(0, 3000),
            st.binary(max_size=12),
        ),
    )
)
@settings(max_examples=150, deadline=None)
def test_whatever_a_file_holds_the_answer_is_plain_text_and_json(data: bytes) -> None:
    one = reading.inspect(data, "x.txt", KNOWN, SECTIONS)
    text = report.as_text([one])
    assert all(char == "\n" or char.isprintable() for char in text)
    json.loads(report.as_json([one]), parse_constant=pytest.fail)
