"""The fast way through a well-formed pair log: what a run needs and nothing else, in a handful of passes over whole columns.

It answers only for output of which every byte is where nccl-tests puts it; all other output is left to the careful reader, which
gives the same answer for these logs too (a test compares the two).
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import compress
from operator import lt
from types import MappingProxyType

from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.bandwidth.readers.digits import COARSE, sharp
from straggler.engine.bandwidth.readers.nccl_tests import TOOL

_HEAD = re.compile(
    rb"(?:# nccl-tests version [^\n]+\n# Collective test starting: (?:[^\s/]*/)*(\w+?)_perf\w*\n)?"
    rb"# nThread (\d{1,4}) nGpus (\d{1,4}) minBytes [^\n]*\n#\n# Using devices\n"
)
_RANK = re.compile(
    rb"(?m)^#  Rank +(\d+) Group +\d+ Pid +\d+ on +(\S+) device +\d+ \[[^\]\n]*\] [\w .+/()-]*$"
)
_INFO = re.compile(rb"(?m)^([\w.-]+):\d+:\d+ \[\d+\] NCCL INFO [ -~]*$")
_VERSION = re.compile(rb"(?m)^NCCL version \d\S*$")
_TITLES = re.compile(
    rb"\n(?:NCCL version \d\S*\n)?#\n#  +out-of-place  +in-place *\n"
    rb"#  +size  +count  +type  +redop  +root  +time  +algbw  +busbw +#wrong  +time  +algbw  +busbw +#wrong *\n"
    rb"#  +\(B\)  +\(elements\)  +\(us\)  +\(GB/s\)  +\(GB/s\)  +\(us\)  +\(GB/s\)  +\(GB/s\) *\n"
)
_TAIL = re.compile(
    rb"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : \d+(?:\.\d+)? ?\n#\n"
    rb"(?:# Collective test concluded: \S+\n(?:#\n)?)?\n?"
)
_WORDS = 13
"""Words of a row that has redop, root and both placements."""

_TYPES = frozenset(
    {b"float", b"half", b"bfloat16", b"double", b"int8", b"uint8", b"int32", b"uint32", b"int64", b"uint64"}
)
_RIGHT = frozenset({b"0", b"N/A"})
_FIGURES = b" 0123456789."
_NUMBERS = [b"%d" % at for at in range(4096)]


def read(data: bytes, source: str) -> Run | None:
    """The run of a whole, well-formed, successful log; None for any other, of which nothing is said here."""
    head = _HEAD.match(data)
    end = data.rfind(b"# Out of bounds values")
    if head is None or end < 0 or not data.isascii() or b"\r" in data or b"\x1b" in data:
        return None
    titles = _TITLES.search(data, head.end(), end)
    if titles is None or _TAIL.fullmatch(data, end) is None:
        return None
    hosts = _hosts(data[head.end() : titles.start()])
    if hosts is None or len(hosts) % (int(head[2]) * int(head[3]) or len(hosts) + 1):
        return None
    points = _points(data[titles.end() : end], len(hosts), head[1].decode() if head[1] else None)
    if points is None:
        return None
    return Run(
        source,
        TOOL,
        tuple([host.decode() for host in dict.fromkeys(hosts)]),
        RunState.OK,
        "",
        Metric.BUSBW,
        points,
        head[1].decode() if head[1] else None,
        len(hosts),
    )


def _hosts(listed: bytes) -> list[bytes] | None:
    """The host of every rank, from a list that holds nothing but ranks, counted from 0, and what NCCL says of itself there."""
    said = _INFO.findall(listed) if b" NCCL INFO " in listed else []
    found = _RANK.findall(listed)
    count = len(found)
    more = len(said) + len(_VERSION.findall(listed)) if said else 0
    whole = 2 <= count <= len(_NUMBERS) and listed.count(b"\n") == count + more - 1
    if not whole or [number for number, _ in found] != _NUMBERS[:count] or b"nranks" in listed:
        return None
    hosts = [host for _, host in found]
    return hosts if set(said) <= set(hosts) else None


def _points(table: bytes, ranks: int, collective: str | None) -> MappingProxyType[int, float] | None:
    """Bus bandwidth out of place by size, from rows of equal width that are all of one type, operation and root."""
    words = table.split()
    rows, over = divmod(len(words), _WORDS)
    width = table.find(b"\n") + 1
    if over or not rows or rows * width != len(table):
        return None
    kind, operation, root, checked, checked_too = words[2], words[3], words[4], words[8], words[12]
    # With this many of each in its own column, everything in the table that is no figure, dot or blank is accounted for.
    others = b"".join((kind, operation, root, checked, checked_too)).translate(None, _FIGURES) + b"\n"
    if (
        words[2::_WORDS].count(kind) != rows
        or words[3::_WORDS].count(operation) != rows
        or words[4::_WORDS].count(root) != rows
        or words[8::_WORDS].count(checked) != rows
        or words[12::_WORDS].count(checked_too) != rows
        or not _RIGHT.issuperset((checked, checked_too))
        or kind not in _TYPES
        or not (operation.isalpha() and operation.islower())
        or not root.removeprefix(b"-").isdigit()
        or not b"".join(words[1::_WORDS]).isdigit()
        or table.translate(None, _FIGURES) != others * rows
        or table[width - 1 :: width] != b"\n" * rows
    ):
        return None
    sizes = _sizes(b" ".join(words[0::_WORDS]))
    if sizes is None:
        return None
    try:
        busbw = list(map(float, words[7::_WORDS]))
        if max(busbw) < COARSE:
            micro, algbw = map(float, words[5::_WORDS]), map(float, words[6::_WORDS])
            busbw = [sharp(*row, ranks, collective) for row in zip(sizes, micro, algbw, busbw, strict=True)]
    except ValueError:
        return None
    return MappingProxyType(dict(compress(zip(sizes, busbw, strict=True), busbw)))


@lru_cache(maxsize=64)
def _sizes(words: bytes) -> tuple[int, ...] | None:
    """The message sizes, ascending; None for anything else. All runs of a sweep have the same ones."""
    if b"." in words:
        return None
    sizes = tuple(map(int, words.split()))
    return sizes if sizes[0] > 0 and all(map(lt, sizes, sizes[1:])) else None
