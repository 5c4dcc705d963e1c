"""Kernel lines in any dress (dmesg, journal, syslog, a log shipper's) and what NVIDIA's driver says in them.

No meaning is given here: an Xid is a number, a device and a text. What a number means stands in `references/xid.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from straggler.engine import pci

_PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_XID = re.compile(
    rf"NVRM: Xid \((?:PCI:)?({_PCI})(?: GPU-I:([0-9]{{1,3}}))?[^()]{{0,40}}\): ([0-9]{{1,4}})(?![0-9])(.*)"
)
_SXID = re.compile(rf"SXid \((?:PCI:)?({_PCI})[^()]{{0,40}}\): ([0-9]{{1,6}})(?![0-9])(.*)")
_CAUSE = re.compile(r"caused by previous Xid ([0-9]{1,4})(?![0-9])")
_GPU = re.compile(rf"(?:GPU|GPU at PCI:|Xid \(PCI:)\s?({_PCI})")
_FALLEN = re.compile(r"fallen off the bus", re.IGNORECASE)
_PROBE = re.compile(r"probe routine (?:was not called|failed) for")
_GSP = re.compile(r"GSP Timeout|HeartbeatTimedOut|Heartbeat timed out|GSP RPC timeout", re.IGNORECASE)
_RECOVERY = re.compile(
    r"recovery action changed from [^()]{0,20}\(([^()]{1,60})\) to [^()]{0,20}\(([^()]{1,60})\)",
    re.IGNORECASE,
)
_PID = re.compile(r"\bpid='?([0-9]{1,10})\b")

WRAP = 3
"""Lines that one sentence of the driver may be spread over."""


@dataclass(frozen=True, slots=True)
class Line:
    """One kernel message. `at`: Unix seconds by the node's clock, None where the line has no usable stamp."""

    text: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class XidEvent:
    """One `NVRM: Xid` line. `pci` as pci.device gives it; `mig`: the GPU instance; `cause`: the Xid it names as its cause.

    `recovery`: what Xid 154 says the GPU needs from now on, in the driver's words.
    """

    xid: int
    pci: str
    line: Line
    mig: int | None = None
    pid: int | None = None
    cause: int | None = None
    recovery: str | None = None


@dataclass(frozen=True, slots=True)
class SxidLine:
    """One line of an NVSwitch error. One event prints up to three lines (severity, data, words). `pci` has its function."""

    sxid: int
    pci: str
    line: Line


@dataclass(frozen=True, slots=True)
class Fallen:
    """The driver's words for a GPU that answers no more; `pci` is None where the sentence names none."""

    pci: str | None
    line: Line


def xids(lines: Iterable[Line]) -> Iterator[XidEvent]:
    for line in lines:
        found = _XID.search(line.text)
        address = pci.device(found[1]) if found else None
        if found is None or address is None:
            continue
        cause, recovery, process = _CAUSE.search(found[4]), _RECOVERY.search(found[4]), _PID.search(found[4])
        yield XidEvent(
            xid=int(found[3]),
            pci=address,
            line=line,
            mig=int(found[2]) if found[2] else None,
            pid=int(process[1]) if process else None,
            cause=int(cause[1]) if cause else None,
            recovery=recovery[2].strip() if recovery else None,
        )


def sxids(lines: Iterable[Line]) -> Iterator[SxidLine]:
    for line in lines:
        if found := _SXID.search(line.text):
            yield SxidLine(int(found[2]), found[1].lower(), line)


def fallen(lines: Iterable[Line]) -> Iterator[Fallen]:
    """GPUs that left the bus in the driver's words, with or without an Xid, also where the sentence is wrapped."""
    recent: list[str] = []
    for line in lines:
        recent = [*recent[-WRAP + 1 :], line.text]
        if _FALLEN.search(line.text):
            named = next((found for text in reversed(recent) if (found := _GPU.search(text))), None)
            yield Fallen(pci.device(named[1]) if named else None, line)
            recent = []


def probe_failures(lines: Iterable[Line]) -> Iterator[Line]:
    return (line for line in lines if "NVRM" in line.text and _PROBE.search(line.text))


def gsp_timeouts(lines: Iterable[Line]) -> Iterator[Line]:
    """The firmware processor's silence in the driver's own words (no Xid need be printed)."""
    return (line for line in lines if "NVRM" in line.text and _GSP.search(line.text))
