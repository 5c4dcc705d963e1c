"""Readers of bandwidth tools' output. A format is told by what stands in it, never by the name of the file."""

from __future__ import annotations

from collections.abc import Callable

from straggler.engine.bandwidth.model import Run, RunState
from straggler.engine.bandwidth.readers import (
    aws_csv,
    endings,
    fi_pingpong,
    iperf3,
    names,
    nccl_fast,
    nccl_json,
    nccl_tests,
    pairs_csv,
)
from straggler.engine.bandwidth.readers.lines import clean, first_words

READERS: tuple[Callable[[str, str], list[Run]], ...] = (
    nccl_json.read,
    iperf3.read,
    nccl_tests.read,
    fi_pingpong.read,
    aws_csv.read,
    pairs_csv.read,
)
"""Asked in this order; the first that knows the text has it. Each returns no run for text that is not its own."""

UNKNOWN_TOOL = "unknown"


def read_runs(data: bytes, source: str) -> list[Run]:
    """Every run in one capture; `source` is the file's path or what stands for one. Never raises for content.

    Nothing is returned where nothing is recognised, unless the name says whose log it is: then having no result is the result.
    """
    fast = nccl_fast.read(data, source)
    if fast is not None:
        return [fast]
    return read_text(clean(data), source)


def read_text(text: str, source: str) -> list[Run]:
    """The careful way, for text that is already clean (`lines.clean`)."""
    for read in READERS:
        runs = read(text, source)
        if runs:
            return runs
    return _without_result(text, source)


def _without_result(text: str, source: str) -> list[Run]:
    if not names.is_log(source):
        return []
    how, line = endings.sign(text)
    if not text.strip():
        why = "no output"
    elif how:
        why = f"no result, it {how}: {line}"
    else:
        why = f"no result in its output, which begins: {first_words(text)}"
    return [Run(source, UNKNOWN_TOOL, names.hosts_of(source), RunState.FAILED, why)]
