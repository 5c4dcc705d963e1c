"""Frames: what is whole is given, what is not is never given as whole, however the stream was cut, mangled or forged."""

from __future__ import annotations

import subprocess
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine.frames import (
    Block,
    Done,
    FloodError,
    FrameReader,
    Hello,
    cksum,
    encode,
    encode_done,
    encode_hello,
)
from straggler.engine.model import Status
from straggler.engine.script import CAP

NONCE = "00112233445566ff"
Frame = Hello | Block | Done

bodies = st.binary(max_size=200) | st.text(alphabet="@ \n\rstragle end0123456789", max_size=80).map(
    str.encode
)
replies = st.lists(st.tuples(bodies, bodies, st.integers(0, 255)), max_size=5)
noise = st.binary(max_size=60) | st.sampled_from(
    [
        b"\n@@straggler",
        b"Welcome!\r\n",
        b"\n@@straggler 0000000000000000 done 1\n",
        b"\n@@straggler " + NONCE.encode(),
    ]
)


def stream(said: list[tuple[bytes, bytes, int]]) -> bytes:
    blocks = [encode(NONCE, at, text, errors, code) for at, (text, errors, code) in enumerate(said)]
    return b"".join([encode_hello(NONCE, 0, 1_800_000_000), *blocks, encode_done(NONCE, len(said))])


def read(data: bytes, *cuts: int, count: int = 8) -> list[Frame]:
    reader = FrameReader(NONCE, count)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [frame for start, end in pairwise(edges) for frame in reader.feed(data[start:end])]


def fine(frames: list[Frame]) -> dict[int, tuple[str, str]]:
    return {
        one.index: (one.text, one.errors)
        for one in frames
        if isinstance(one, Block) and one.status is Status.OK
    }


@given(replies, st.lists(st.integers(0, 2000), max_size=20))
def test_frames_do_not_depend_on_how_the_bytes_arrive(
    said: list[tuple[bytes, bytes, int]], cuts: list[int]
) -> None:
    data = stream(said)
    whole = read(data)
    assert read(data, *cuts) == whole
    assert read(data, *range(len(data))) == whole
    assert [one.index for one in whole if isinstance(one, Block)] == list(range(len(said)))
    for block, (text, errors, code) in zip(
        [one for one in whole if isinstance(one, Block)], said, strict=True
    ):
        assert block.text == text.decode("utf-8", "backslashreplace")
        assert block.errors == errors.decode("utf-8", "backslashreplace").strip()
        assert block.exit_code == code
        assert (block.status is Status.OK) == (code == 0)


@settings(max_examples=400)
@given(st.data(), replies.filter(bool))
def test_one_wrong_byte_never_makes_another_good_reply(
    data: st.DataObject, said: list[tuple[bytes, bytes, int]]
) -> None:
    sent = stream(said)
    at = data.draw(st.integers(0, len(sent) - 1))
    new = data.draw(st.binary(min_size=1, max_size=1))
    broken = data.draw(
        st.sampled_from(
            [
                sent[:at] + new + sent[at + 1 :],
                sent[:at] + sent[at + 1 :],
                sent[:at] + new + sent[at:],
                sent[:at],
            ]
        )
    )
    was, now = fine(read(sent)), fine(read(broken))
    assert now.items() <= was.items()


@given(replies, noise, noise, noise)
def test_banners_around_frames_change_no_frame(
    said: list[tuple[bytes, bytes, int]], before: bytes, between: bytes, after: bytes
) -> None:
    blocks = [encode(NONCE, at, *reply) for at, reply in enumerate(said)]
    parts = [encode_hello(NONCE, 0, 1), *blocks, encode_done(NONCE, len(said))]
    assert read(before + between.join(parts) + after) == read(b"".join(parts))


@given(
    bodies, noise.filter(lambda banner: bool(banner.strip(b"\r")))
)  # a lone CR is what a PTY adds, and is undone
def test_a_banner_inside_a_reply_is_never_fine(body: bytes, banner: bytes) -> None:
    frame = encode(NONCE, 0, body, b"", 0)
    at = frame.index(b"\n", 1) + 1
    assert fine(read(frame[:at] + banner + frame[at:])) == {}


@given(replies)
def test_a_terminal_s_cr_lf_is_undone(said: list[tuple[bytes, bytes, int]]) -> None:
    lines = [(text.replace(b"\r", b""), errors.replace(b"\r", b""), code) for text, errors, code in said]
    sent = stream(lines)
    assert read(sent.replace(b"\n", b"\r\n")) == read(sent)


def test_nothing_without_the_nonce_is_a_frame() -> None:
    forged = stream([(b"all fine", b"", 0)]).replace(NONCE.encode(), b"ffffffffffffffff")
    assert read(forged) == []
    inside = read(encode(NONCE, 0, forged, b"", 0))
    assert fine(inside) == {0: (forged.decode(), "")}


def test_a_damaged_exit_code_or_state_is_seen() -> None:
    sent = encode(NONCE, 3, b"text", b"", 7)
    for wrong in (b"begin 3 ok 0 ", b"begin 4 ok 7 ", b"begin 3 full 7 "):
        assert (
            fine(read(sent.replace(b"begin 3 ok 7 ", wrong).replace(b" end 3", b" end " + wrong[6:7]))) == {}
        )


@pytest.mark.parametrize(
    "head",
    [
        b"begin",
        b"begin x ok 0 0 0 0 0",
        b"begin 0 ok 0 0 0 0",
        b"begin 0 fine 0 0 0 0 0",
        b"begin 0 ok 9999 0 0 0 0",
        b"begin 99999 ok 0 0 0 0 0",
        b"begin -1 ok 0 0 0 0 0",
        b"begin 0 ok 0 1_0 0 0 0",
        b"begin 0 ok 0 " + b"9" * 150 + b" 0 0 0",
        b"hello 1 x y",
        b"hello 2 0 0",
        b"done x",
        b"done " + b"1" * 199,
        b"done " + b"1" * 500,
        b"end 0",
    ],
)
def test_words_out_of_range_are_no_frame_and_do_no_harm(head: bytes) -> None:
    good = encode(NONCE, 1, b"fine", b"", 0)
    frames = read(b"\n@@straggler " + NONCE.encode() + b" " + head + b"\n" + good)
    assert fine(frames) == {1: ("fine", "")}
    assert not any(isinstance(one, Done) for one in frames)


def test_a_lost_end_costs_one_reply_not_the_rest() -> None:
    first, second = encode(NONCE, 0, b"a", b"", 0), encode(NONCE, 1, b"b", b"", 0)
    frames = read(first.replace(b" end 0", b" xnd 0") + second + encode_done(NONCE, 2))
    assert fine(frames) == {1: ("b", "")}
    assert [one.status for one in frames if isinstance(one, Block)] == [Status.TRUNCATED, Status.OK]
    assert frames[-1] == Done(2)


def test_a_reply_that_never_ends_is_cut_off_and_what_follows_is_read() -> None:
    open_end = encode(NONCE, 0, b"a", b"", 0).rsplit(b"\n@@", 1)[0] + b"x" * 3 * CAP
    frames = read(open_end + encode(NONCE, 1, b"b", b"", 0), *range(0, 4 * CAP, 65536))
    assert fine(frames) == {1: ("b", "")}
    assert [one.status for one in frames if isinstance(one, Block)] == [Status.TRUNCATED, Status.OK]


def test_a_reply_longer_than_kept_is_truncated_not_fine() -> None:
    [block] = read(encode(NONCE, 0, b"x" * (CAP + 5), b"", 0))
    assert isinstance(block, Block)
    assert (block.status, len(block.text), block.cut) == (Status.TRUNCATED, CAP, 1)


@pytest.mark.parametrize(
    ("state", "status"), [("late", Status.TIMED_OUT), ("left", Status.ABANDONED), ("full", Status.TRUNCATED)]
)
def test_how_it_ended_stands_before_what_it_said(state: str, status: Status) -> None:
    words = f"0 {state} 0 4 9"
    summed = words.encode() + b"\ntext"
    head = f"\n@@straggler {NONCE} begin {words} {cksum(summed)} {len(summed)}\n"
    [block] = read(head.encode() + b"text" + f"\n@@straggler {NONCE} end 0\n".encode())
    assert isinstance(block, Block)
    assert (block.status, block.text, block.after) == (status, "text", 9)


def test_more_than_a_node_could_honestly_send_is_a_flood() -> None:
    reader = FrameReader(NONCE, 1)
    with pytest.raises(FloodError):
        [frame for _ in range(100) for frame in reader.feed(b"x" * 65536)]
    assert len(reader.noise) <= 2000


@pytest.mark.parametrize(
    "piece",
    [
        b"\n@@straggler " + NONCE.encode() + b" begin 0 ok 0 0 0 0 ",
        b"\n@@straggler " + NONCE.encode() + b" ",
        b"\n",
        b"\n@@straggler " + NONCE.encode() + b" begin 0 ok 0 0 0 0 0\n",
        b"x",
    ],
)
@pytest.mark.parametrize("opened", [b"", b"\n@@straggler " + NONCE.encode() + b" begin 0 ok 0 0 0 0 0\n"])
def test_ten_hostile_megabytes_cost_no_more_than_their_length(piece: bytes, opened: bytes) -> None:
    """Quadratic work would take ten thousand times the linear time here; the ratio of twice the input is at most doubled."""

    def cost(size: int) -> float:
        reader = FrameReader(NONCE, 40)
        data = (piece * (size // len(piece) + 1))[:size]
        begun = time.process_time()
        list(reader.feed(opened))
        for at in range(0, size, 512):
            for _ in reader.feed(data[at : at + 512]):
                pass
        return time.process_time() - begun

    assert cost(10_000_000) < 40 * cost(1_000_000) + 1


@given(st.binary(max_size=3000))
@settings(max_examples=30)
def test_the_checksum_is_that_of_coreutils(data: bytes) -> None:
    said = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout.split()
    assert [cksum(data), len(data)] == [int(word) for word in said]
