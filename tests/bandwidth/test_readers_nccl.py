"""nccl-tests' text in the dresses people meet it in; what a run is worth when it failed, hung, was cut or is alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.bandwidth.readers import nccl_text, read_runs
from tests.support.bandwidth_logs import pair_log

A, B = "ip-10-1-0-1", "ip-10-1-0-2"
SIZES = (1 << 20, 1 << 26, 1 << 30)
LOG = pair_log((A, B), sizes=SIZES)


def one(text: str, source: str = "out.txt") -> Run:
    [run] = read_runs(text.encode(), source)
    return run


PLAIN = one(LOG)


def test_a_whole_log_gives_hosts_ranks_collective_and_one_value_per_size() -> None:
    assert (PLAIN.state, PLAIN.why, PLAIN.hosts, PLAIN.ranks) == (RunState.OK, "", (A, B), 16)
    assert (PLAIN.collective, PLAIN.metric, tuple(PLAIN.points)) == ("all_reduce", Metric.BUSBW, SIZES)
    assert 112.345 not in PLAIN.points.values(), "the average over sizes is no value"


def every_line(change: Callable[[int, str], str]) -> str:
    return "".join(change(at, line) + "\n" for at, line in enumerate(LOG.splitlines()))


DRESSES = {
    "Open MPI's tags": every_line(lambda at, line: f"[1,0]<stdout>:{line}"),
    "Open MPI's tags, indented by a pager": every_line(lambda at, line: f"        [1,0]<stdout>:{line}"),
    "srun's labels": every_line(lambda at, line: f"0: {line}"),
    "srun's wide labels": every_line(lambda at, line: f" 3: {line}"),
    "kubectl's prefix": every_line(lambda at, line: f"[pod/nccl-launcher-x7k2p/nccl] {line}"),
    "stern's prefix": every_line(lambda at, line: f"nccl-launcher-x7k2p mpi-launcher {line}"),
    "container time stamps": every_line(lambda at, line: f"2026-12-01T03:12:{at:02}.123456789Z {line}"),
    "containerd's log": every_line(lambda at, line: f"2026-12-01T03:12:{at:02}.1Z stdout F {line}"),
    "Windows line ends": LOG.replace("\n", "\r\n"),
    "colours": every_line(lambda at, line: f"\x1b[32m{line}\x1b[0m"),
    "a byte order mark": "\ufeff" + LOG,
    "warnings of NCCL between its lines": every_line(
        lambda at, line: (
            f"{line}\n{A}:123:456 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]"
        )
    ),
    "lines of a launcher before and after": f"+ srun --mpi=pmix all_reduce_perf\nWarning: Permanently added 'x'\n{LOG}\nreal 1m2s\n",
    "NCCL's version": LOG.replace("#\n#     ", "NCCL version 2.27.3+cuda12.8\n#\n#     ", 1),
    "a row broken by another writer": LOG.replace(
        "float     sum      -1",
        f"float     sum      -1{B}:77:91 [3] NCCL INFO Channel 00/0 : 8[0] -> 0[0]\n",
        1,
    ),
    "a row wrapped by a terminal": re.sub(r"(sum +-1 +\S+ +\S+) ", "\\1\n", LOG, count=1),
    "the number of cycles, twice": LOG.replace(
        "# Out of", "".join(line + "\n" for line in LOG.splitlines() if " float " in line) + "# Out of"
    ),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_run_is_read_in_any_dress(dress: str) -> None:
    seen = one(DRESSES[dress])
    assert (seen.state, seen.hosts, seen.points, seen.ranks) == (RunState.OK, (A, B), PLAIN.points, 16)


@pytest.mark.parametrize(
    "program",
    [
        "all_gather_perf",
        "reduce_scatter_perf",
        "alltoall_perf",
        "sendrecv_perf",
        "broadcast_perf",
        "gather_perf",
        "hypercube_perf",
    ],
)
def test_any_collective_is_named(program: str) -> None:
    assert one(pair_log((A, B), sizes=SIZES, program=program)).collective == program.removesuffix("_perf")


def test_text_that_windows_wrote_in_utf_16_is_read() -> None:
    [run] = read_runs(LOG.encode("utf-16"), "out.txt")
    assert (run.state, run.points) == (RunState.OK, PLAIN.points)


def test_where_out_of_place_is_not_there_the_value_in_place_counts() -> None:
    row = "  1048576  262144  float  sum  -1  {}  11.00  22.00  33.00  0\n"
    head = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
    tail = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 9.9 \n"
    gone = one(head + row.format("N/A  N/A  N/A  N/A") + tail, "a__b.txt")
    assert gone.points == {1 << 20: 33.0}
    assert one(head + row.format("1.0  2.0  3.0  0") + tail, "a__b.txt").points == {1 << 20: 3.0}


def test_an_old_table_without_operation_root_and_in_place_is_read() -> None:
    text = (
        "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
        "#       size         count    type     time   algbw   busbw  error\n"
        "     1048576        262144   float   211.00    4.97    4.97  2e-07\n"
        "     2097152        524288   float   400.00    5.24    5.24  4e-07\n"
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 5.1 \n#\n"
    )
    run = one(text, "a__b.txt")
    assert (run.state, run.points) == (RunState.OK, {1 << 20: 4.97, 1 << 21: 5.24})
    assert one(text.replace("4e-07", "1e+00"), "a__b.txt").why == "computed wrong results"


def test_reports_per_iteration_and_time_stamps_are_no_values() -> None:
    head = (
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%"
        "     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%           timestamp\n"
    )
    row = (
        "     1048576        262144     float     sum      -1    52.11   20.12   37.73       0    50.00    60.00    59.00     3.10"
        "    51.00   20.56   38.55       0    49.00    61.00    60.00     2.90  2026-12-01 03:12:44\n"
    )
    run = one(head + row + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 38 \n", "a__b.txt")
    assert (run.state, run.points) == (RunState.OK, {1 << 20: 37.73})


def test_cpu_time_says_nothing_about_the_wire() -> None:
    run = one(LOG.replace("    time   algbw", " cputime   algbw"))
    assert (run.state, run.points) == (RunState.IMPLAUSIBLE, {})


ENDINGS = {
    "slurmstepd: error: *** STEP 71.0 ON ip-10-1-0-1 CANCELLED AT 2026-12-01T03:44:10 DUE TO TIME LIMIT ***": "time limit",
    "timeout: sending signal TERM to command 'mpirun'": "hung",
    "ip-10-1-0-2: Test timeout (120s) common.cu:525": "hung",
    "srun: error: ip-10-1-0-2: task 8: Killed": "killed",
    "ip-10-1-0-2: Test CUDA failure common.cu:331 'no CUDA-capable device is detected'": "CUDA",
    "mpirun noticed that process rank 3 with PID 0 on node ip-10-1-0-2 exited on signal 9 (Killed).": "killed",
    "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD with errorcode 1.": "aborted",
    "ssh: connect to host ip-10-1-0-2 port 22: Connection timed out": "reach",
    "bash: all_reduce_perf: command not found": "started",
    "command terminated with exit code 137": "aborted",
}


@pytest.mark.parametrize("line", ENDINGS)
@pytest.mark.parametrize("rows", [0, 2])
def test_a_run_that_did_not_end_by_itself_is_a_failed_run_that_says_why(line: str, rows: int) -> None:
    lines = pair_log((A, B), sizes=SIZES, closed=False).splitlines()
    text = "\n".join([*lines[: len(lines) - len(SIZES) + rows], line, ""])
    run = one(text)
    assert (run.state, run.hosts) == (RunState.FAILED, (A, B))
    assert ENDINGS[line] in run.why
    assert line in run.why


@pytest.mark.parametrize("line", ENDINGS)
def test_a_run_that_never_spoke_is_a_failed_run_of_the_pair_its_file_is_named_after(line: str) -> None:
    run = one(f"{line}\n", f"round-03/{A}__{B}.txt")
    assert (run.state, run.hosts) == (RunState.FAILED, (A, B))
    assert ENDINGS[line] in run.why


def test_an_empty_log_is_a_failed_run_of_its_pair() -> None:
    run = one("", f"{A}__{B}.txt")
    assert (run.state, run.why, run.hosts, run.points) == (RunState.FAILED, "no output", (A, B), {})


def test_headers_without_a_row_are_a_failed_run() -> None:
    run = one(pair_log((A, B), sizes=SIZES, closed=False).split("#       size")[0])
    assert (run.state, run.hosts, run.points) == (RunState.FAILED, (A, B), {})


def test_a_log_that_stops_after_a_row_is_truncated() -> None:
    run = one(pair_log((A, B), sizes=SIZES, closed=False))
    assert (run.state, len(run.points)) == (RunState.TRUNCATED, 3)


def test_a_list_of_ranks_that_is_cut_after_the_first_host_is_no_node_alone() -> None:
    text = LOG[: LOG.index(f"on {B}") - 40]
    assert one(text, f"{A}__{B}.txt").hosts == (A, B)


def test_wrong_results_are_a_failed_run_though_the_tool_went_on() -> None:
    wrong = LOG.replace("# Out of bounds values : 0 OK", "# Out of bounds values : 12 FAILED")
    assert (one(wrong).state, one(wrong).why) == (RunState.FAILED, "computed wrong results")


def test_two_runs_that_wrote_at_once_are_not_trusted() -> None:
    other = pair_log((A, "ip-10-1-0-3"), sizes=SIZES, seed=3)
    mixed = "".join(f"{x}\n{y}\n" for x, y in zip(LOG.splitlines(), other.splitlines(), strict=True))
    run = one(mixed)
    assert (run.state, run.points) == (RunState.FAILED, {})
    assert "mixed" in run.why


def test_runs_one_after_the_other_are_runs_of_their_own() -> None:
    hung = pair_log(
        (A, "ip-10-1-0-4"),
        sizes=SIZES,
        closed=False,
        ending="slurmstepd: error: CANCELLED DUE TO TIME LIMIT\n",
    )
    other = pair_log((A, "ip-10-1-0-3"), sizes=SIZES, peak=240.0, version=None)
    runs = read_runs((LOG + hung + other).encode(), "slurm-71.out")
    assert [run.hosts[1] for run in runs] == [B, "ip-10-1-0-4", "ip-10-1-0-3"]
    assert [run.state for run in runs] == [RunState.OK, RunState.FAILED, RunState.OK]
    assert runs[0].points == PLAIN.points


def test_tables_cut_out_of_several_logs_are_runs_of_their_own() -> None:
    rows = [line for line in LOG.splitlines() if " float " in line or "Out of" in line or "Avg" in line]
    runs = read_runs("\n".join(rows * 3).encode() + b"\n", "a__b.txt")
    assert [(run.state, run.points) for run in runs] == [(RunState.OK, PLAIN.points)] * 3


def test_a_failed_start_before_a_good_run_does_not_spoil_it() -> None:
    failed = (
        pair_log((A, B), sizes=SIZES, closed=False).split("#\n#     ")[0]
        + f"{B}: Test NCCL failure common.cu:777 'x'\n"
    )
    assert [run.state for run in read_runs((failed + LOG).encode(), "retry.log")] == [
        RunState.FAILED,
        RunState.OK,
    ]


@pytest.mark.parametrize(
    "line",
    [
        "GPN-143: Test NCCL failure common.cu:1204 'unhandled cuda error'",
        "[1,251]<stderr>:GPN-1: something",
        "srun: error: GPN-31: tasks 96-103: Exited with exit code 3",
        "  Process name: [[44912,1],251]",
        "...",
    ],
)
def test_a_list_of_ranks_that_others_take_part_beside_is_not_whole(line: str) -> None:
    listed, table = LOG.split("#\n#     ", 1)
    assert nccl_text.whole(LOG).world == 16
    assert nccl_text.whole(f"{listed}{line}\n#\n#     {table}").world is None


def test_a_node_alone_has_its_own_score_and_many_hosts_are_a_group() -> None:
    assert one(pair_log((A,), sizes=SIZES)).hosts == (A,)
    assert len(one(pair_log(tuple(f"w-{at}" for at in range(5)), sizes=SIZES)).hosts) == 5


def test_a_single_rank_has_no_bus_bandwidth() -> None:
    run = one(pair_log((A,), sizes=SIZES, gpus=1))
    assert (run.state, run.points, run.ranks) == (RunState.OK, {}, 1)
    assert "single rank" in run.why


@pytest.mark.parametrize(
    ("source", "hosts"),
    [
        ("a__b.txt", ("a", "b")),
        ("logs/round-02/a__b.out", ("a", "b")),
        ("a__b", ("a", "b")),
        ("w-1.ec2.internal__w-2.ec2.internal.log", ("w-1.ec2.internal", "w-2.ec2.internal")),
        ("w-1.ec2.internal__w-2.ec2.internal", ("w-1.ec2.internal", "w-2.ec2.internal")),
        ("a__a.txt", ("a",)),
        ("round-00/a.txt", ("a",)),
        ("round-0/w-1.ec2.internal.txt", ("w-1.ec2.internal",)),
        ("a__b__c.log", ("a", "b", "c")),
        ("round-01/a.txt", ()),
        ("slurm-71.out", ()),
        ("a__.txt", ()),
        ("__init__.py", ()),
    ],
)
def test_hosts_come_from_the_name_where_the_log_lists_none(source: str, hosts: tuple[str, ...]) -> None:
    headless = "\n".join(line for line in LOG.splitlines() if "Rank" not in line)
    assert one(headless, source).hosts == hosts


@pytest.mark.parametrize(
    "source",
    ["my__notes.md", "notes.txt", "a__b.err", "run__pair.sh", "round-00/hostfile", "round-00/run.sh"],
)
def test_a_file_that_is_no_log_is_nobody_s_failed_run(source: str) -> None:
    assert read_runs(b"some words\n", source) == []
