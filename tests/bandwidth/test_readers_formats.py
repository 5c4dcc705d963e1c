"""The other outputs that hold a bandwidth: nccl-tests' JSON, CSV, fi_pingpong and iperf3, each told by its content."""

from __future__ import annotations

import json
from typing import Any

import pytest

from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.bandwidth.readers import read_runs
from straggler.engine.bandwidth.readers.iperf3 import DEFAULT_BLOCK


def runs(text: str, source: str = "out.txt") -> list[Run]:
    return read_runs(text.encode(), source)


def one(text: str, source: str = "out.txt") -> Run:
    [run] = runs(text, source)
    return run


# nccl-tests' JSON


def document(**other: Any) -> dict[str, Any]:
    cell = {"time": 52.1, "alg_bw": 20.1, "bus_bw": 37.7, "nwrong": 0.0}
    given: dict[str, Any] = {
        "version": 3,
        "start_time": "2026-12-01 03:12:44",
        "args": ["/opt/nccl-tests/build/all_reduce_perf", "-b", "1M"],
        "env": ["SECRET_TOKEN=do-not-look"],
        "nccl_version": 22703,
        "config": {
            "nthreads": 1,
            "ngpus": 8,
            "devices": [
                {
                    "rank": at,
                    "group": 0,
                    "pid": 7,
                    "hostname": f"w-{at}",
                    "device": 0,
                    "device_hex": "0000:0a:00",
                    "device_info": "H100",
                }
                for at in range(2)
            ],
        },
        "results": [
            {
                "size": 1 << 20,
                "count": 1 << 18,
                "type": "float",
                "redop": "sum",
                "root": "    -1",
                "out_of_place": cell,
                "in_place": cell,
            },
            {
                "size": 1 << 21,
                "count": 1 << 19,
                "type": "float",
                "redop": "sum",
                "root": "    -1",
                "out_of_place": None,
                "in_place": cell,
            },
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 11.1, "okay": "unchecked"},
        "errors": [""],
        "end_time": "2026-12-01 03:13:44",
    }
    return {**given, **other}


def test_json_of_nccl_tests_is_a_run_like_its_text() -> None:
    run = one(json.dumps(document()))
    assert (run.state, run.hosts, run.ranks, run.collective) == (
        RunState.OK,
        ("w-0", "w-1"),
        16,
        "all_reduce",
    )
    assert run.points == {1 << 20: 37.7, 1 << 21: 37.7}
    assert "do-not-look" not in repr(run)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"out_of_bounds": {"count": 4, "okay": "false"}}, RunState.FAILED),
        ({"errors": ["unhandled system error"], "out_of_bounds": {}}, RunState.FAILED),
        ({"results": []}, RunState.FAILED),
        ({"results": [], "out_of_bounds": None}, RunState.FAILED),
        ({"out_of_bounds": None}, RunState.TRUNCATED),
        ({"config": 7, "results": "none", "args": {}, "errors": 3}, RunState.FAILED),
    ],
)
def test_json_that_says_less_than_all_is_a_state(change: dict[str, Any], state: RunState) -> None:
    assert one(json.dumps(document(**change)), "a__b.json").state is state


def test_json_is_never_fine_however_little_is_cut_off() -> None:
    text = json.dumps(document())
    for at in range(60, len(text) - 1, 7):
        run = one(text[:at], "a__b.json")
        assert (run.state, run.points) == (RunState.TRUNCATED, {}), at


# CSV of pairs


def test_a_table_of_pairs_with_and_without_a_header() -> None:
    plain = runs("a,b,400.5\na,c,200\n")
    assert [(run.hosts, dict(run.points), run.state) for run in plain] == [
        (("a", "b"), {0: 400.5}, RunState.OK),
        (("a", "c"), {0: 200.0}, RunState.OK),
    ]
    assert [run.hosts for run in runs("a,b,busbw_gbs\na,b,400.5\na,c,200")] == [("a", "b"), ("a", "c")]
    turned = one("size_bytes,host_b,host_a,busbw_gbs\r\n1024,y,x,3.5\r\n")
    assert (turned.hosts, turned.points) == (("x", "y"), {1024: 3.5})


def test_rows_of_one_pair_and_size_are_runs_and_other_sizes_join_them() -> None:
    text = "a,b,busbw_gbs,size_bytes\n" + "a,b,1,1024\na,b,2,2048\na,b,1.5,1024\na,b,2.5,2048\n"
    assert [dict(run.points) for run in runs(text)] == [{1024: 1.0, 2048: 2.0}, {1024: 1.5, 2048: 2.5}]


@pytest.mark.parametrize("said", ["", "-", "nan", "N/A", "failed", "timeout", "0", "-3", "inf", "1e999"])
def test_a_pair_without_a_value_is_a_failed_run_never_a_zero(said: str) -> None:
    good, bad = runs(f"a,b,busbw_gbs,size_bytes\na,b,400,1024\na,c,{said},1024\n")
    assert (good.state, bad.state, bad.hosts) == (RunState.OK, RunState.FAILED, ("a", "c"))
    assert bad.points == {}
    assert bad.why


@pytest.mark.parametrize("size", ["1073741824", "1073741824.0", "1G", "1 GiB", "1024MB", "1048576k"])
def test_a_size_may_be_written_with_its_unit(size: str) -> None:
    assert one(f"a,b,busbw_gbs,size_bytes\na,b,400,{size}\n").points == {1 << 30: 400.0}


def test_a_size_that_is_none_is_told_with_its_pair() -> None:
    run = one("a,b,busbw_gbs,size_bytes\na,b,400,large\n")
    assert (run.state, run.hosts, run.points) == (RunState.FAILED, ("a", "b"), {})


def test_a_status_column_is_believed() -> None:
    text = "a,b,busbw_gbs,size_bytes,status,runs\na,b,400,1024,ok,2\na,c,,1024,truncated,1\na,d,9,1024,implausible,1\n"
    assert [run.state for run in runs(text)] == [RunState.OK, RunState.TRUNCATED, RunState.IMPLAUSIBLE]


def test_a_node_with_itself_is_a_node_alone_and_latency_is_lower_is_better() -> None:
    assert one("a,a,470,1024\n").hosts == ("a",)
    assert one("a,b,latency_us\na,b,21.5\n").metric is Metric.LATENCY


def test_a_last_row_that_is_cut_is_truncated() -> None:
    text = "a,b,400,1024\na,c,390,1024\na,d,39"
    assert [run.state for run in runs(text)] == [RunState.OK, RunState.OK, RunState.TRUNCATED]
    assert runs(text)[2].points == {}


@pytest.mark.parametrize(
    "text",
    [
        "name,age,town\nx,7,y\n",
        "just words\n",
        "a,b\n",
        "a,b,400\nthis line is not one\n",
        '"a\n',
        "a,b,4x\n",
        ",,\n",
    ],
)
def test_other_text_is_no_table_of_pairs(text: str) -> None:
    assert runs(text) == []


def test_a_row_that_is_not_understood_below_a_header_is_told_and_takes_no_other_with_it() -> None:
    good, bad = runs("a,b,busbw_gbs\na,b,400\na,c,about four hundred\n")
    assert (good.state, bad.state, bad.hosts) == (RunState.OK, RunState.FAILED, ("a", "c"))
    assert "about four hundred" in bad.why


def test_the_csv_of_aws_s_sample_scripts_is_one_run_of_the_pair_in_its_name() -> None:
    header = (
        "Size_Bytes,Size_KB,Size_MB,Count,Data_Type,Operation,Root,OOP_Time_us,OOP_AlgBW_GBps,OOP_BusBW_GBps,OOP_Errors,"
        "IP_Time_us,IP_AlgBW_GBps,IP_BusBW_GBps,IP_Errors\n"
    )
    row = "1048576,1024.0,1.0,262144,float,sum,-1,52.1,20.1,37.7,{},51.0,20.5,38.5,0\n"
    good = one(header + row.format(0), "a__b_results.csv")
    assert (good.state, good.hosts, good.points) == (RunState.OK, ("a", "b_results"), {1 << 20: 37.7})
    assert one(header + row.format(3), "a__b.csv").state is RunState.FAILED
    assert one(header + row.format(0)[:60], "a__b.csv").state is RunState.TRUNCATED
    assert one(header, "a__b.csv").state is RunState.FAILED


# fi_pingpong

PINGPONG = """\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      10      =10      1.2k        0.00s      9.62       6.65       0.15
64k     10      =10      1.2m        0.01s    210.98     310.62       0.00
1m      10      =10      20m         0.09s    240.30    4363.60       0.00
"""


def test_a_pingpong_is_a_latency_by_size() -> None:
    run = one(PINGPONG, "a__b.txt")
    assert (run.state, run.hosts, run.metric) == (RunState.OK, ("a", "b"), Metric.LATENCY)
    assert run.points == {64: 6.65, 65536: 310.62, 1 << 20: 4363.6}
    assert run.metric.lower_is_better


def test_the_pingpong_of_fabtests_has_other_columns_and_the_same_reading() -> None:
    text = "bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    text += "64      1k      125k        0.01s     11.55       5.54       0.18\n"
    assert one(text, "a__b.txt").points == {64: 5.54}


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (PINGPONG.splitlines()[0] + "\n", RunState.FAILED),
        (PINGPONG[:-20], RunState.TRUNCATED),
        (PINGPONG + "timeout: sending signal TERM to command 'fi_pingpong'\n", RunState.FAILED),
        (PINGPONG + "fi_cq_sread(): 5 (Input/output error)\n", RunState.FAILED),
        ("+ fi_pingpong -p tcp 10.0.0.2\nfi_getinfo: -61\n", RunState.FAILED),
    ],
)
def test_a_pingpong_that_did_not_end_well_is_a_state(text: str, state: RunState) -> None:
    run = one(text, "a__b.txt")
    assert (run.state, run.hosts) == (state, ("a", "b"))


# iperf3

TEXT = """\
Connecting to host 10.77.0.3, port 5201
[  5] local 10.77.0.2 port 43210 connected to 10.77.0.3 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   114 MBytes   957 Mbits/sec    0   1.02 MBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-1.00   sec   114 MBytes   957 Mbits/sec    0             sender
[  5]   0.00-1.00   sec   112 MBytes   936 Mbits/sec                  receiver

iperf Done.
"""


def iperf(**other: Any) -> str:
    given: dict[str, Any] = {
        "start": {
            "connected": [
                {
                    "socket": 5,
                    "local_host": "10.77.0.2",
                    "local_port": 4,
                    "remote_host": "10.77.0.3",
                    "remote_port": 5201,
                }
            ],
            "version": "iperf 3.12",
            "test_start": {"protocol": "TCP", "num_streams": 1, "blksize": 131072, "reverse": 0},
        },
        "intervals": [],
        "end": {
            "sum_sent": {"bits_per_second": 957e6, "sender": True},
            "sum_received": {"bits_per_second": 936e6, "sender": True},
        },
    }
    return json.dumps({**given, **other}, indent="\t")


def test_iperf3_is_what_the_receiver_got_in_one_direction() -> None:
    for text in (TEXT, iperf()):
        run = one(text)
        assert (run.state, run.hosts, run.directed, run.metric) == (
            RunState.OK,
            ("10.77.0.2", "10.77.0.3"),
            True,
            Metric.RATE,
        )
        assert run.points == {DEFAULT_BLOCK: pytest.approx(0.117)}
        assert one(text, "a__b.json").hosts == ("a", "b")


def test_a_reverse_test_goes_the_other_way() -> None:
    assert one("Reverse mode, remote host 10.77.0.3 is sending\n" + TEXT, "a__b.txt").hosts == ("b", "a")
    start = json.loads(iperf())["start"]
    start["test_start"]["reverse"] = 1
    assert one(iperf(start=start), "a__b.json").hosts == ("b", "a")


def test_several_streams_are_one_sum() -> None:
    many = TEXT.replace(
        "\niperf Done.",
        "[  7]   0.00-1.00   sec   112 MBytes   64.0 Mbits/sec                  receiver\n"
        "[SUM]   0.00-1.00   sec   224 MBytes  1.00 Gbits/sec                  receiver\n\niperf Done.",
    )
    assert one(many).points == {DEFAULT_BLOCK: 0.125}


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("iperf3: error - unable to connect to server: Connection refused\n", RunState.FAILED),
        (TEXT.split("- - -")[0], RunState.TRUNCATED),
        (TEXT.split("iperf Done")[0], RunState.TRUNCATED),
        (TEXT.split("- - -")[0] + "iperf3: interrupt - the client has terminated\n", RunState.FAILED),
        (TEXT.split("- - -")[0] + "Terminated\n", RunState.FAILED),
        (iperf(error="unable to connect to server", end={}), RunState.FAILED),
        (iperf(end={}), RunState.FAILED),
        (iperf(end={"sum_received": {"bits_per_second": 0}}), RunState.FAILED),
        (iperf()[:-40], RunState.TRUNCATED),
    ],
)
def test_an_iperf3_that_did_not_end_well_is_a_state(text: str, state: RunState) -> None:
    run = one(text, "a__b.txt")
    assert (run.state, run.hosts, run.points) == (state, ("a", "b"), {})
    assert run.why
