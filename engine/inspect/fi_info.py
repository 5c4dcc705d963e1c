"""fi_info's listing, inspected: does libfabric offer efa, and on which devices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from straggler.engine.collectors import libfabric
from straggler.engine.collectors.libfabric import Libfabric
from straggler.engine.inspect.model import Kind, Part, Said
from straggler.engine.model import Level, Verdict

FINDS = ("efa.present", "efa.not-found")

_ENTRY = re.compile(r"^\s*provider: \S+\n\s*fabric: \S", re.MULTILINE)
_ASKED = re.compile(r"\bfi_info\b")
_ERROR = re.compile(r"^.{0,80}fi_getinfo: -?\d{1,6}\b.*$", re.MULTILINE)


def recognise(text: str) -> bool:
    return _ENTRY.search(text) is not None or (
        _ERROR.search(text) is not None and _ASKED.search(text) is not None
    )


def read(text: str, source: str) -> tuple[Part, ...]:
    facts = libfabric.read(text.split("\n"), 0)
    shown = {
        "entries": facts.entries,
        "devices": list(facts.devices),
        "fabrics": list(facts.fabrics),
        "versions": list(facts.versions),
        "error": facts.error,
    }
    last = text.rstrip("\n").count("\n") + 1
    if facts.devices:
        gist = f"libfabric offers efa on {len(facts.devices)} devices: {', '.join(facts.devices[:4])}"
    else:
        gist = "libfabric offers no efa" if facts.error is not None else "no entry of efa is listed"
    return (Part(KIND.name, 1, last, shown, tuple(_said(facts, text)), gist),)


def _said(facts: Libfabric, text: str) -> Iterator[Said]:
    """Only libfabric's own words accuse it: a listing of other providers says nothing of efa."""
    if facts.devices:
        yield Said(Verdict("efa.present", Level.PASS, "libfabric offers efa"))
    elif facts.error is not None:
        lines = [(at, line.strip()) for at, line in enumerate(text.split("\n"), 1) if _ERROR.search(line)]
        detail = f"fi_getinfo {facts.error}"
        verdict = Verdict("efa.not-found", Level.FAIL, "libfabric does not find the efa provider", detail)
        yield Said(verdict, tuple(lines[:2]))


KIND = Kind("fi-info", recognise, read, FINDS)
