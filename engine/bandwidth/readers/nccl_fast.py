"""The fast way through a well-formed pair log: what a run needs and nothing else, in a handful of passes over whole columns.

It answers only for output of which every byte is where nccl-tests puts it; all other output is left to the careful reader, which
gives the same answer for these logs too (a test compares the two).
"""

from __future__ import annotations

import re
from itertools import compress
from types import MappingProxyType

from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.bandwidth.readers.nccl_tests import TOOL

_HEAD = re.compile(
    rb"(?:# nccl-tests version [^\n]+\n# Collective test starting: (?:[^\s/]*/)*(\w+?)_perf\w*\n)?"
    rb"# nThread (\d{1,4}) nGpus (\d{1,4}) minBytes [^\n]*\n#\n# Using devices\n"
)
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
_DIGITS = b" \n0123456789.-"
_NUMBERS = tuple(b"%d" % at for at in range(4096))


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
    points = _points(data[titles.end() : end])
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
    """The host of every rank, from a list in which each line has the same number of words."""
    count = listed.count(b"\n") + 1
    words = listed.split()
    each = len(words) // count
    if (
        not 2 <= count <= len(_NUMBERS)
        or each < _WORDS
        or each * count != len(words)
        or listed.count(b"] ") != count
        or listed.count(b" [") != count
        or listed.count(b"\n#  Rank ") != count - 1
        or tuple(words[2::each]) != _NUMBERS[:count]
        or {*words[1::each], *words[3::each], *words[5::each], *words[7::each], *words[9::each]}
        != _LIST_WORDS
        or not b"".join(words[6::each]).isdigit()
        or not b"".join(words[4::each]).isdigit()
        or not b"".join(words[10::each]).isdigit()
    ):
        return None
    return words[8::each]


_LIST_WORDS = {b"Rank", b"Group", b"Pid", b"on", b"device"}


def _points(table: bytes) -> MappingProxyType[int, float] | None:
    """Bus bandwidth out of place by size, from rows of equal width that are all of one type, operation and root."""
    width = table.find(b"\n") + 1
    rows = table.count(b"\n")
    words = table.split()
    if width < 2 or rows * width != len(table) or rows * _WORDS != len(words):
        return None
    kinds, operations, roots = set(words[2::_WORDS]), set(words[3::_WORDS]), set(words[4::_WORDS])
    if (
        table[width - 1 :: width] != b"\n" * rows
        or not (len(kinds) == len(operations) == len(roots) == 1 and kinds <= _TYPES)
        or not _RIGHT.issuperset(words[8::_WORDS])
        or not _RIGHT.issuperset(words[12::_WORDS])
        or not b"".join(words[0::_WORDS]).isdigit()
        or not b"".join(words[1::_WORDS]).isdigit()
        or b" ." in table
    ):
        return None
    (kind,), (operation,) = kinds, operations
    left = table.replace(kind, b"").replace(operation, b"").replace(b"N/A", b"")
    if not operation.isalpha() or not operation.islower() or left.translate(None, _DIGITS):
        return None
    try:
        int(*roots)
        sizes = list(map(int, words[0::_WORDS]))
        busbw = list(map(float, words[7::_WORDS]))
        for column in (5, 6, 9, 10, 11):
            # Read only to know that they are numbers: a row with anything else in it is for the careful reader.
            list(map(float, words[column::_WORDS]))
    except ValueError:
        return None
    if sizes[0] <= 0 or sizes != sorted(set(sizes)) or min(busbw) < 0:
        return None
    return MappingProxyType(dict(compress(zip(sizes, busbw, strict=True), busbw)))
