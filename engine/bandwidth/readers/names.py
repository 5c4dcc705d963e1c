"""Hosts out of a log's name: `A__B.*` is a pair; `A__A.*`, and `A.*` in a folder round-00 or alone-NNN, a node alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_ALONE = re.compile(r"round-?0+|alone-\d+")
_LOGS = frozenset({".txt", ".log", ".out", ".stdout"})
_NO_LOGS = frozenset(
    {".err", ".stderr", ".md", ".py", ".sh", ".svg", ".png", ".yaml", ".yml", ".toml", ".sbatch", ".xml"}
)
"""What is kept beside a log and is no run of its own."""


def hosts_of(source: str) -> tuple[str, ...]:
    """The hosts a file's name gives, each once; empty where it gives none."""
    path = PurePath(source)
    parts = _without_ending(path.name).split("__")
    alone = len(parts) == 1 and _ALONE.fullmatch(path.parent.name) is not None
    if (len(parts) == 1 and not alone) or not all(_HOST.fullmatch(part) for part in parts):
        return ()
    return tuple(dict.fromkeys(parts))


def is_log(source: str) -> bool:
    """Whether a file named after hosts is a run's own output, so that having no result in it is a result.

    A single name is too little to tell by: beside the logs of a round there may be a host file or a script.
    """
    path = PurePath(source)
    if not hosts_of(source):
        return False
    return path.suffix in _LOGS or ("__" in path.name and path.suffix not in _NO_LOGS)


def same_host(one: str, other: str) -> bool:
    """Whether two names may be one machine: equal, or one is the other without its domain."""
    return one == other or (one.split(".")[0] == other.split(".")[0] and ("." in one) != ("." in other))


def settle(listed: Sequence[str], others: Sequence[str], source: str, *, whole: bool) -> tuple[str, ...]:
    """The hosts of a run: those its output lists; the file's where it lists none, or where a list that is not whole lacks some.

    `others`: hosts that lines outside the list speak of. They take part as well, so that an excerpt of a big job is no pair.
    """
    named = hosts_of(source)
    if not listed:
        return named or tuple(others)
    if whole:
        return tuple(listed)
    if len(named) > len(listed) and all(any(same_host(a, b) for b in named) for a in listed):
        return named
    return (*listed, *others)


def _without_ending(name: str) -> str:
    """`A__B.domain.log` without `.log`; without anything, where the last part belongs to the host's domain."""
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem:
        return name
    first, mark, last = stem.partition("__")
    domain = mark and first.endswith(f".{ending}") and last.count(".") < first.count(".")
    return name if domain or ending.isdigit() else stem
