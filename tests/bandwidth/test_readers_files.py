"""Logs on disk: whole folders in order; what cannot be read is told, and nothing that never ends is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from straggler.engine.bandwidth.model import RunState
from straggler.engine.bandwidth.readers import files
from straggler.engine.bandwidth.readers.files import read_paths
from tests.support.bandwidth_logs import pair_log

SIZES = (1 << 20, 1 << 21)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def told(*paths: Path) -> dict[str, str]:
    return {path.name: why for path, _, why in read_paths(paths) if why}


def test_a_folder_is_read_to_any_depth_and_in_order(tmp_path: Path) -> None:
    for name in ("round-02/a__c.txt", "round-01/a__b.txt", "round-00/a.txt", "round-00/deep/er/x__y.txt"):
        write(tmp_path / name, pair_log(("a", "b"), sizes=SIZES))
    seen = [
        path.relative_to(tmp_path).as_posix()
        for path, runs, why in read_paths([tmp_path])
        if runs and not why
    ]
    assert seen == ["round-00/a.txt", "round-00/deep/er/x__y.txt", "round-01/a__b.txt", "round-02/a__c.txt"]


def test_what_is_no_log_is_told_and_an_empty_pair_log_is_a_failed_run(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", "call Bob\n")
    write(tmp_path / "empty.txt", "")
    write(tmp_path / "a__b.txt", "")
    assert told(tmp_path) == {
        "notes.txt": "is no output of a bandwidth tool that is known here",
        "empty.txt": "is empty",
    }
    [run] = [run for _, runs, _ in read_paths([tmp_path]) for run in runs]
    assert (run.state, run.hosts) == (RunState.FAILED, ("a", "b"))


def test_a_run_that_names_no_host_says_how_to_name_it(tmp_path: Path) -> None:
    log = "\n".join(line for line in pair_log(("a", "b"), sizes=SIZES).splitlines() if "Rank" not in line)
    assert "A__B.txt" in told(write(tmp_path / "out.txt", log))["out.txt"]


def test_pipes_devices_and_what_is_missing_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert told(tmp_path)["pipe"] == "is neither a file nor a folder; it was not read"
    assert told(Path("/dev/zero"))["zero"] == "is neither a file nor a folder; it was not read"
    assert "No such file" in told(tmp_path / "gone")["gone"]


def test_a_file_larger_than_the_bound_is_told_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a__b.txt").open("wb") as out:
        out.truncate(files.LARGEST + 1)
    [(_, runs, why)] = read_paths([tmp_path])
    assert runs == []
    assert why == "is larger than 64 MiB; it was not read"


def test_a_link_back_up_ends_there(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a__b.txt", pair_log(("a", "b"), sizes=SIZES))
    (tmp_path / "in" / "up").symlink_to(tmp_path)
    assert [path.name for path, _, _ in read_paths([tmp_path])] == ["a__b.txt"]


def test_a_name_that_is_no_text_is_a_name_all_the_same(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"a__\xff.txt")).write_text("words\n")
    except OSError:
        pytest.fail("this file system takes only names that are text")
    assert len(list(read_paths([tmp_path]))) == 1
