"""iperf3, as JSON (`-J`) or text: what the receiver got, in GB/s (10^9 bytes), from the sending host to the receiving one.

iperf3 has no message size; what it hands to the socket at once (the block) stands for it. The text says it only with `-V`,
otherwise it is the documented default for TCP. Source: software.es.net/iperf/invoking.html, read 2026-12-01.
"""

from __future__ import annotations

import json
import math
import re
from types import MappingProxyType
from typing import Any

from straggler.engine.bandwidth.model import NO_POINTS, Metric, Run, RunState
from straggler.engine.bandwidth.readers import endings, names

TOOL = "iperf3"

DEFAULT_BLOCK = 128 * 1024

_CONNECTING = re.compile(r"(?a)Connecting to host (\S+), port \d+")
_LOCAL = re.compile(r"(?a)\[ *\d+\] local (\S+) port \d+ connected (?:to|with) (\S+) port \d+")
_BLOCK = re.compile(r"(?a)\b(\d{1,12}) byte blocks")
_REVERSE = re.compile(r"(?a)Reverse mode, remote host \S+ is sending")
_ERROR = re.compile(r"(?a)iperf3: (?:error|interrupt) - (.+)")
_SUMMARY = re.compile(
    r"(?a)\[(SUM| *\d+)\](?:\[(TX|RX)-[CS]\])?\s+[\d.]+-\s*[\d.]+\s+sec\s+[\d.]+ [KMGT]?Bytes\s+([\d.]+) ([KMGT]?)bits/sec.*\breceiver\b"
)
_SERVER = re.compile(r"(?a)Accepted connection from (\S+), port \d+")
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def read(text: str, source: str) -> list[Run]:
    """One run, two of a test in both directions at once, or none where the text is not iperf3's."""
    start = text.lstrip()
    if start.startswith("{") and '"start"' in start[:200] and ("iperf" in text or '"intervals"' in text):
        return _from_json(text, source)
    if _CONNECTING.search(text) or _SERVER.search(text) or _ERROR.search(text):
        return _from_text(text, source)
    return []


def _from_json(text: str, source: str) -> list[Run]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        hosts = names.hosts_of(source)
        return [_run(source, hosts, RunState.TRUNCATED, "its JSON stops before its end", DEFAULT_BLOCK, None)]
    begun, ended = _object(given.get("start")), _object(given.get("end"))
    test = _object(begun.get("test_start"))
    block = test.get("blksize")
    block = block if isinstance(block, int) and not isinstance(block, bool) and block > 0 else DEFAULT_BLOCK
    link = next(iter(_connected(begun)), {})
    hosts = names.hosts_of(source) or _both(link.get("local_host"), link.get("remote_host"))
    if test.get("reverse") == 1:
        hosts = hosts[::-1]
    if given.get("error"):
        return [_run(source, hosts, RunState.FAILED, f"failed: {given['error']}", block, None)]
    runs = []
    for name, way in (("sum_received", hosts), ("sum_received_bidir_reverse", hosts[::-1])):
        if name == "sum_received" or name in ended:
            rate = _rate(
                _object(ended.get(name)) or (_object(ended.get("sum")) if name == "sum_received" else {})
            )
            runs.append(_judged(source, way, rate, block))
    return runs


def _judged(source: str, hosts: tuple[str, ...], rate: float | None, block: int) -> Run:
    if rate is None or not math.isfinite(rate):
        return _run(source, hosts, RunState.FAILED, "ended without a result", block, None)
    if rate == 0:
        return _run(source, hosts, RunState.FAILED, "nothing arrived", block, None)
    return _run(source, hosts, RunState.OK, "", block, rate)


def _from_text(text: str, source: str) -> list[Run]:
    found = _BLOCK.search(text)
    block = int(found[1]) or DEFAULT_BLOCK if found else DEFAULT_BLOCK
    link = _LOCAL.search(text)
    hosts = names.hosts_of(source) or (_both(link[1], link[2]) if link else ())
    serving = _SERVER.search(text) is not None and not _CONNECTING.search(text)
    if (_REVERSE.search(text) is not None) != (serving and not names.hosts_of(source)):
        hosts = hosts[::-1]
    rates: dict[str, dict[str, float]] = {}
    for one in _SUMMARY.finditer(text):
        mine = rates.setdefault(one[2] or "TX", {})
        mine[one[1].strip()] = float(one[3]) * _SCALE[one[4]] / 8e9 if one[3].count(".") < 2 else 0.0
    failed = _ERROR.search(text)
    how, line = endings.sign(text)
    if failed:
        return [_run(source, hosts, RunState.FAILED, f"failed: {failed[1].strip()[:300]}", block, None)]
    if how:
        return [_run(source, hosts, RunState.FAILED, f"{how}: {line}", block, None)]
    if not rates or ("iperf Done." not in text and not serving):
        return [_run(source, hosts, RunState.TRUNCATED, "its output stops before its last line", block, None)]
    return [
        _judged(source, hosts[::-1] if way == "RX" else hosts, each.get("SUM", sum(each.values())), block)
        for way, each in rates.items()
    ]


def _run(
    source: str, hosts: tuple[str, ...], state: RunState, why: str, block: int, rate: float | None
) -> Run:
    points = NO_POINTS if rate is None else MappingProxyType({block: rate})
    return Run(source, TOOL, hosts, state, why, Metric.RATE, points, directed=True)


def _connected(begun: dict[str, Any]) -> list[dict[str, Any]]:
    listed = begun.get("connected")
    return [_object(one) for one in listed] if isinstance(listed, list) else []


def _both(one: object, other: object) -> tuple[str, ...]:
    return (one, other) if isinstance(one, str) and isinstance(other, str) and one and other else ()


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rate(summed: dict[str, Any]) -> float | None:
    """GB/s of a summary, None where it has none."""
    bits = summed.get("bits_per_second")
    if (
        isinstance(bits, bool)
        or not isinstance(bits, (int, float))
        or abs(bits) > 1e300
        or not math.isfinite(bits)
    ):
        return None
    return max(0.0, bits / 8e9)
