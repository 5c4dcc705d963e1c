"""Sizes in words."""

from __future__ import annotations


def size(count: int) -> str:
    """Bytes in the largest binary unit that leaves a number of at least 1."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"
