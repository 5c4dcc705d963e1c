"""What is found in a captured file: its parts, their facts, and what they mean. Plain and frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from straggler.engine.model import Finding, Verdict

UNKNOWN = "unknown"
"""The kind of a file nobody here can read: a result, not an error."""


@dataclass(frozen=True, slots=True)
class Said:
    """One verdict over a part. `lines`: numbers (from 1) and verbatim text of its evidence. `subjects`: hosts it is about."""

    verdict: Verdict
    lines: tuple[tuple[int, str], ...] = ()
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of a file that is of one kind. `first`..`last` are line numbers from 1; `facts` are ready for JSON.

    `gist`: the facts in a sentence, for people; it is raw text until it has passed safe().
    """

    kind: str
    first: int
    last: int
    facts: Mapping[str, Any]
    said: tuple[Said, ...] = ()
    gist: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of capture. `recognise` and `read` get clean text (readers.lines.clean) and, to read, where it came from.

    `read` gives the whole first and, where the file holds several, each of them after it. `finds`: every finding id it may give.
    """

    name: str
    recognise: Callable[[str], bool]
    read: Callable[[str, str], tuple[Part, ...]]
    finds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inspected:
    """One file. `why`: why it could not be read or is of no known kind. `findings` holds those of all parts."""

    path: str
    kind: str
    facts: Mapping[str, Any]
    gist: str = ""
    why: str = ""
    read: bool = True
    findings: tuple[Finding, ...] = ()
    parts: tuple[tuple[Part, tuple[Finding, ...]], ...] = ()
