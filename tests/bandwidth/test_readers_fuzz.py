"""No input makes a reader raise, nothing that is cut is ever fine, no value is made up, and the fast reader agrees with the careful one."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from straggler.engine.bandwidth.model import RunState
from straggler.engine.bandwidth.readers import nccl_fast, read_runs, read_text
from straggler.engine.bandwidth.readers.lines import clean
from straggler.engine.inspect import nccl_tests
from tests.support.bandwidth_logs import pair_log
from tests.support.cases import cases

SOURCE = "round-01/a__b.txt"
HOST = st.from_regex(r"[a-z][a-z0-9-]{0,12}(?:\.[a-z0-9]{1,8})?", fullmatch=True)
SEEDS = [one.text.encode() for one in cases("nccl-tests")]
PRINTED = [
    *SEEDS,
    pair_log(("a", "b"), gpus=2, sizes=(8, 1024, 1 << 30)).encode(),
    b"a,b,busbw_gbs,size_bytes\na,b,400,1024\na,c,390,1024\n",
    b"bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n64  10  =10  1.2k  0.00s  9.62  6.65  0.15\n",
    b"Connecting to host 10.7.0.3, port 5201\n[  5]   0.00-1.00   sec   112 MBytes   936 Mbits/sec   receiver\n\niperf Done.\n",
    b'{"version":3,"start_time":"x","config":{"devices":[{"hostname":"a"}]},"results":[{"size":8,"out_of_place":{"bus_bw":3.5}}]}',
]


@st.composite
def logs(draw: Any) -> str:
    count = draw(st.integers(1, 9))
    first = draw(st.integers(0, 20))
    return pair_log(
        draw(st.lists(HOST, min_size=1, max_size=3, unique=True)),
        peak=draw(st.sampled_from([0.01, 0.5, 12.0, 480.0, 3000.0])),
        sizes=tuple(8 << at for at in range(first, first + count)),
        gpus=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 9)),
        program=draw(st.sampled_from(["all_reduce_perf", "alltoall_perf", "all_gather_perf_mpi"])),
        version=draw(st.sampled_from([None, "2.13.10", "2.17.6"])),
        checked=draw(st.booleans()),
    )


@st.composite
def broken(draw: Any) -> bytes:
    """Printed output with pieces cut out, doubled, overwritten or moved."""
    data = bytearray(draw(st.sampled_from(PRINTED)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        upto = draw(st.integers(at, min(len(data), at + 200)))
        how = draw(st.integers(0, 3))
        if how == 0:
            del data[at:upto]
        elif how == 1:
            data[at:at] = data[at:upto]
        elif how == 2:
            data[at:upto] = draw(st.binary(max_size=8))
        else:
            data[at:at] = draw(
                st.sampled_from(
                    [b"\n", b"\r", b"\x1b[31m", b"N/A", b"nan", b"-", b".", b"#", b"{", b"1_0", b" 9e99 "]
                )
            )
    return bytes(data)


@given(
    st.one_of(
        st.binary(max_size=300),
        broken(),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    )
)
@example(b"{" * 3000)
@example(b"[" * 100_000)
@example(b"# Avg bus bandwidth : 1.2.3 \n# Out of bounds values : 99999999999999999999 OK\n")
@example("8  2  float  sum  -1  ١  ٢  ٣  0\n".encode())
@example(
    b"# Out of bounds values : " + b"9" * 5000 + b" OK\n# nThread " + b"9" * 5000 + b" nGpus 1 minBytes\n"
)
@example(
    b"8  2  float  sum  -1  1  2  "
    + b"9" * 400
    + b"  0\n# Avg bus bandwidth : 1e999 \n# Out of bounds values : 0 OK\n"
)
@example(
    b"bytes iters total time MB/sec usec/xfer Mxfers/sec\n"
    + b"9" * 400
    + b"k 1 1 1s 1 "
    + b"9" * 400
    + b" 1\n"
)
@example(b"a,b," + b"9" * 400 + b"," + b"9" * 5000 + b"\n")
@settings(max_examples=400, deadline=None)
def test_no_input_raises_and_every_value_is_one_that_was_printed(data: bytes) -> None:
    text = clean(data)
    printed = {float(number) for number in re.findall(r"(?a:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)", text)}
    for run in read_runs(data, SOURCE):
        assert run.state is RunState.OK or run.why
        scaled = printed | {value * scale / 8e9 for value in printed for scale in (1, 1e3, 1e6, 1e9, 1e12)}
        # Below 1 GB/s the time column gives the digits that two decimals leave out.
        sharper = {
            one for one in run.points.values() if one < 1 and any(abs(one - p) < 0.0052 for p in printed)
        }
        assert set(run.points.values()) - sharper <= scaled - {float("inf"), 0.0}
    if nccl_tests.KIND.recognise(text):
        nccl_tests.KIND.read(text, SOURCE)


@given(logs(), st.data())
@settings(max_examples=200, deadline=None)
def test_a_log_that_is_cut_before_its_end_is_never_fine(log: str, data: st.DataObject) -> None:
    end = log.index("112.345") + len("112.345")
    cut = log[: data.draw(st.integers(0, end))].encode()
    for run in read_runs(cut, SOURCE):
        assert run.state is not RunState.OK
    assert read_runs(cut, SOURCE), "a log named after a pair is never left out"


@given(logs())
@settings(max_examples=200, deadline=None)
def test_the_fast_reader_knows_whole_logs_and_says_what_the_careful_one_says(log: str) -> None:
    careful = read_text(clean(log.encode()), SOURCE)
    fast = nccl_fast.read(log.encode(), SOURCE)
    assert (
        fast is not None
        or careful[0].ranks == 1
        or "E" in log.upper().split("# OUT OF")[0].split("(GB/S)")[-1]
    )
    assert fast is None or [fast] == careful


@given(logs(), st.data())
@settings(max_examples=500, deadline=None)
def test_whatever_is_done_to_a_log_the_fast_reader_leaves_it_or_agrees(log: str, data: st.DataObject) -> None:
    broken_log = bytearray(log.encode())
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(broken_log)))
        upto = data.draw(st.integers(at, min(len(broken_log), at + 40)))
        broken_log[at:upto] = data.draw(
            st.one_of(
                st.sampled_from([b"", b" ", b"0", b"1", b"\n", b"-", b".", b"_", b"N/A", b"e", b"nan", b"#"]),
                st.binary(max_size=3),
            )
        )
    fast = nccl_fast.read(bytes(broken_log), SOURCE)
    assert fast is None or [fast] == read_text(clean(bytes(broken_log)), SOURCE)


def test_every_cut_of_one_log_at_every_byte() -> None:
    log = pair_log(("a", "b"), gpus=1, sizes=(1 << 20, 1 << 21)).encode()
    end = log.index(b"112.345") + len(b"112.345")
    for at in range(len(log)):
        [run] = read_runs(log[:at], SOURCE)
        assert (run.state is RunState.OK) == (at > end), at
        assert run.hosts == ("a", "b"), at
