"""The script as one parameter: understood by every shell, readable by nobody who could forge its frames, refused when too long."""

from __future__ import annotations

import base64
import re
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.collectors import COLLECTORS
from straggler.engine.errors import TransportError
from straggler.engine.frames import Block, Done, FrameReader, Hello
from straggler.engine.script import SSM_LIMIT, Request, Script, compose
from straggler.engine.transports.ssm_command import DOCUMENTS, PARAMETER_MAX, Renamer, command, parameters
from tests.nodeshell import SHELLS
from tests.ssm.asking import NONCE, said, saying

KEY = "3f2c1a4e-0000-4bbb-8ccc-123456789abc"


def test_the_whole_script_of_today_fits_with_room() -> None:
    script = compose(Request(COLLECTORS, 0, 2_000_000_000))
    assert len(command(script)) < PARAMETER_MAX * 3 / 4


def test_a_script_as_long_as_may_be_composed_fits() -> None:
    body = f"S_NONCE={NONCE} x=1\n".encode()
    assert len(command(Script(NONCE, body + b"#" * (SSM_LIMIT - len(body))))) <= PARAMETER_MAX


def test_a_script_that_does_not_fit_is_refused_with_its_length() -> None:
    body = f"S_NONCE={NONCE} x=1\n".encode() + b"#" * 50_000
    with pytest.raises(TransportError, match=r"66\d{3} characters"):
        command(Script(NONCE, body))


def test_the_agent_splits_it_into_sh_and_one_argument() -> None:
    text = command(compose(Request(COLLECTORS)))
    assert shlex.split(text)[:2] == ["sh", "-c"]
    assert len(shlex.split(text)) == 3
    # Nothing in it that the service takes for a parameter of its own, and no line ends to be lost.
    assert re.fullmatch(r"sh -c 'echo [A-Za-z0-9+/=]+ \| base64 -d \| sh'", text)


def test_the_nonce_of_the_frames_is_not_in_what_all_can_see() -> None:
    script = compose(Request(COLLECTORS))
    text = command(script)
    plain = base64.b64decode(text.split()[3])
    assert script.nonce.encode() not in plain
    assert b"S_MARK=" in plain


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
def test_every_shell_runs_it_and_its_frames_are_read(shell: tuple[str, ...]) -> None:
    # The agent starts `sh`; which shell that is, is the node's affair.
    argv = [*shell, *shlex.split(command(saying("hello")).replace("| sh'", f"| {' '.join(shell)}'"))[1:]]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)
    assert done.stderr == b""
    assert Renamer(NONCE).feed(done.stdout) == said("hello")


def test_each_run_has_another_key() -> None:
    argv = shlex.split(command(saying("x")))
    outputs = {subprocess.run(argv, capture_output=True, timeout=60, check=True).stdout for _ in range(3)}
    assert len(outputs) == 3


def framed(key: str) -> bytes:
    return (
        f"@@straggler-key {key}\n\n@@straggler {key} hello 1 0 5\n@@ x @@straggler y @@@straggler {key[:20]}\n"
        f"\n@@straggler {key} done 0\n"
    ).encode()


@given(
    st.lists(st.integers(1, 60), max_size=40), st.sampled_from([b"", b"Welcome!\r\n$ ", b"@@straggler-key\n"])
)
def test_the_cuts_of_the_stream_make_no_difference(sizes: list[int], banner: bytes) -> None:
    data, renamer, got = banner + framed(KEY), Renamer(NONCE), b""
    for size in sizes:
        piece, data = data[:size], data[size:]
        got += renamer.feed(piece)
    got += renamer.feed(data)
    assert got == banner + framed(KEY).partition(b"\n")[2].replace(f" {KEY} ".encode(), f" {NONCE} ".encode())


def test_what_prints_a_key_of_its_own_later_is_not_believed() -> None:
    other = "ffffffff-0000-4bbb-8ccc-123456789abc"
    renamer = Renamer(NONCE)
    data = renamer.feed(framed(KEY) + framed(other))
    frames = list(FrameReader(NONCE, 1).feed(data))
    assert [type(one) for one in frames] == [Hello, Done]
    assert not any(isinstance(one, Block) for one in frames)
    assert other.encode() in data


@given(st.binary(max_size=4000))
def test_a_stream_without_a_key_passes_but_for_its_end(data: bytes) -> None:
    renamer = Renamer(NONCE)
    got = renamer.feed(data)
    assert data.startswith(got)
    assert len(data) - len(got) <= 64
    assert not renamer.begun


def test_the_exit_code_comes_apart_from_the_output_where_the_document_can() -> None:
    first = parameters(DOCUMENTS[0], saying("x"))
    assert DOCUMENTS[0].name == "AWS-StartNonInteractiveCommand"
    assert first["separateOutputStream"] == ["true"]
