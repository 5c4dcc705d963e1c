"""Node names as people write them: ranges parsed and folded by ClusterShell, never handed to a shell or a group file."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def fold(names: Iterable[str]) -> str:
    """`worker-[001-004,007]` for a list of names; names that are no plain host names are joined by commas."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    every = list(dict.fromkeys(names))
    plain = [name for name in every if _PLAIN.fullmatch(name)]
    other = [name for name in every if not _PLAIN.fullmatch(name)]
    folded = str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP)) if plain else ""
    return ",".join(filter(None, [folded, *other]))
