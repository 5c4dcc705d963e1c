"""One spelling of PCI addresses: every tool prints another one."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-7])?")


def device(text: str) -> str | None:
    """`0000:5a:00` of `00000000:5A:00.0`, `PCI:0000:5a:00` or `5a:00.0`; the function is left out. None: no address."""
    found = _ADDRESS.fullmatch(text.strip().removeprefix("PCI:"))
    if found is None:
        return None
    return f"{int(found[1] or '0', 16):04x}:{found[2].lower()}:{found[3].lower()}"
