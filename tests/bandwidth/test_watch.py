"""Results are handed on as they appear, each once, and none that is still being written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from straggler.engine.bandwidth.watch import appearing

END = b"\n# straggler: exited with status 0\n"


class Day:
    """A clock that only moves when somebody sleeps; between two looks it does what the test says happens then."""

    def __init__(self, folder: Path, *happens: Callable[[], object]) -> None:
        self.now = 1_000_000.0
        self.folder = folder
        self.happens = list(happens)
        self.got: list[tuple[str, bytes]] = []

    def write(self, name: str, data: bytes, *, more: bool = False) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab" if more else "wb") as file:
            file.write(data)
        os.utime(path, (self.now, self.now))

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if not self.happens:
            raise EndOfDay
        self.happens.pop(0)()

    async def pass_by(self, **options: float) -> list[tuple[str, bytes]]:
        try:
            async for one in appearing(self.folder, clock=lambda: self.now, sleep=self.sleep, **options):
                self.got.append(one)
        except EndOfDay:
            pass
        return self.got


class EndOfDay(Exception):
    """Nothing more happens."""


def nothing() -> None:
    return None


async def test_a_result_is_handed_on_once_when_it_has_come_to_rest(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.happens = [lambda: day.write("round-01/a__b.txt", b"# busbw" + END), nothing, nothing, nothing]
    assert await day.pass_by() == [("round-01/a__b.txt", b"# busbw" + END)]


async def test_a_result_that_grows_is_waited_for(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.happens = [
        lambda: day.write("a__b.txt", b"one\n"),
        lambda: day.write("a__b.txt", b"two\n", more=True),
        lambda: day.write("a__b.txt", END, more=True),
        nothing,
    ]
    assert await day.pass_by() == [("a__b.txt", b"one\ntwo\n" + END)]


async def test_a_result_without_an_end_counts_once_nobody_has_written_to_it_for_long(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.write("a__b.txt", b"cut off in the mid")
    day.happens = [nothing] * 4
    assert await day.pass_by(old=60, poll=10) == []
    day.happens = [nothing] * 4
    assert await day.pass_by(old=60, poll=10) == [("a__b.txt", b"cut off in the mid")]


async def test_a_result_that_is_written_again_is_handed_on_again(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.write("a__b.txt", b"first" + END)
    day.happens = [nothing, lambda: day.write("a__b.txt", b"second, better" + END), nothing, nothing]
    assert [data for _, data in await day.pass_by()] == [b"first" + END, b"second, better" + END]


async def test_a_folder_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    day = Day(tmp_path / "later")
    day.happens = [nothing, lambda: day.write("n1.txt", END), nothing]
    assert await day.pass_by() == [("n1.txt", END)]


async def test_links_pipes_and_hidden_files_are_no_results(tmp_path: Path) -> None:
    day = Day(tmp_path)
    (tmp_path / "secret").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "secret" / "key").write_bytes(END)
    day.folder = tmp_path / "out"
    (day.folder / "a__b.txt").symlink_to(tmp_path / "secret" / "key")
    (day.folder / "there").symlink_to(tmp_path / "secret")
    os.mkfifo(day.folder / "c__d.txt")
    day.write(".plan.json.new", END)
    day.write(".git/x.txt", END)
    day.happens = [nothing] * 3
    assert await day.pass_by() == []


async def test_a_file_that_goes_away_between_two_looks_is_no_error(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.write("a__b.txt", b"half")
    day.happens = [
        lambda: (tmp_path / "a__b.txt").unlink(),
        nothing,
        lambda: day.write("a__b.txt", END),
        nothing,
    ]
    assert await day.pass_by() == [("a__b.txt", END)]


async def test_many_results_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    day = Day(tmp_path)
    for name in ("round-01/c__d.txt", "round-00/a.txt", "round-01/a__b.txt"):
        day.write(name, END)
    day.happens = [nothing, nothing]
    assert [name for name, _ in await day.pass_by()] == [
        "round-00/a.txt",
        "round-01/a__b.txt",
        "round-01/c__d.txt",
    ]
