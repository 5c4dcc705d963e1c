"""What libfabric on the host offers for EFA. Apart from the kernel's side, so that a fi_info that hangs hides no port."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

# The EFA installer's fi_info before any other: a distribution's own build may know no efa and would accuse a healthy node.
SNIPPET = r"""
PATH=/opt/amazon/efa/bin:$PATH
if ! have fi_info; then missing fi_info; fi
echo "fi_info begin"
fi_info -p efa 2>&1
echo "fi_info end $?"
"""

_END = re.compile(r"fi_info end ([0-9]{1,3})")
_ERROR = re.compile(r".{0,200}?fi_getinfo: (-?[0-9]{1,6})\b.{0,400}")
_KIND = re.compile(r"-(?:rdm|dgrm)$")


@dataclass(frozen=True, slots=True)
class Libfabric:
    """`entries` of provider efa; `devices`: each NIC once, though one prints several entries (RDM, DGRAM, efa-direct).

    `error`: the number fi_getinfo gave instead (-61: no data), None without one. `exit`: of fi_info. `said`: its last lines.
    """

    entries: int
    devices: tuple[str, ...]
    fabrics: tuple[str, ...]
    versions: tuple[str, ...]
    error: int | None
    exit: int
    said: tuple[str, ...]


def parse(text: str) -> Libfabric | Unread:
    lines = text.splitlines()
    end = _END.fullmatch(lines[-1]) if lines else None
    if end is None or lines[0] != "fi_info begin" or not text.endswith("\n"):
        return garbled("fi_info's output did not arrive whole")
    return read(lines[1:-1], int(end[1]))


def read(lines: list[str], code: int) -> Libfabric:
    """`lines` as fi_info printed them; what is none of its lines is let go."""
    entries, of_efa, error = 0, False, None
    found: dict[str, dict[str, None]] = {"domain": {}, "fabric": {}, "version": {}}
    for line in lines:
        key, colon, value = line.strip().partition(": ")
        if key == "provider" and colon:
            of_efa = value == "efa"
            entries += of_efa
        elif key in found and of_efa and value:
            found[key][value] = None
        elif failed := _ERROR.fullmatch(line):
            error = int(failed[1])
    devices = tuple(dict.fromkeys(_KIND.sub("", one) for one in found["domain"]))
    said = tuple(line for line in lines if line.strip())[-3:]
    return Libfabric(entries, devices, tuple(found["fabric"]), tuple(found["version"]), error, code, said)


def fields(facts: Libfabric) -> Mapping[str, str | None]:
    return {
        "devices libfabric offers for efa": None
        if facts.error is None and not facts.devices
        else str(len(facts.devices)),
        "efa provider version": "/".join(facts.versions) or None,
    }


COLLECTOR = Collector(
    id="libfabric",
    what="whether libfabric on the host offers efa, and on which devices: without it NCCL falls back to TCP",
    snippet=SNIPPET,
    parse=parse,
    commands=("fi_info",),
    fields=fields,
)
