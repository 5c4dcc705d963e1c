"""What is known, loaded from `references/` and from the user's config directory, checked against a schema.

Every file is TOML read once into frozen structs; a wrong key, type or missing source is a KnowledgeError that names the file.
User files may add or replace entries of thresholds, Xids and sections; those are marked `theirs` and shown as such.
A replay or a bundle never supplies any.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from straggler.engine.compat import tomllib
from straggler.engine.errors import KnowledgeError
from straggler.engine.model import Level, Priority

T = TypeVar("T")


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One limit. `low`..`high` is the sanity bound a user's own value must keep to (numbers only)."""

    value: int | float | str
    unit: str
    source: str
    date: datetime.date
    note: str = ""
    low: float | None = None
    high: float | None = None
    theirs: bool = False


class MeasuredBusbw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bus bandwidth somebody measured and published: lowest and highest of the runs, GB/s as nccl-tests count it (10^9).

    `nodes` nodes with all their GPUs, messages of `size_bytes`; `collective` as nccl-tests call it, without `_perf`.
    """

    collective: str
    nodes: int
    size_bytes: int
    low: float
    high: float
    unit: Literal["GB/s"]
    source: str
    date: datetime.date
    note: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high or self.nodes < 1 or self.size_bytes < 1:
            raise ValueError("0 < low <= high, nodes >= 1 and size_bytes >= 1 do not hold")


class Instance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one instance type has when it is whole. `efa`: EFA devices; `line_gbps`: network line rate of the node, Gbit/s.

    `nvlink_gbs`: NVLink rate of one GPU, GB/s in one direction; `nvlink_nodes`: how many nodes one NVLink domain can join.
    """

    accelerator: str
    gpus: int
    gpu: str
    efa: int
    line_gbps: int
    source: str
    date: datetime.date
    generation: str = ""
    nvlink_lanes: int | None = None
    nvlink_gbs: int | None = None
    nvlink_nodes: int = 1
    nvme: str = ""
    temp_limit_c: int | None = None
    cores: int | None = None
    note: str = ""
    busbw: tuple[MeasuredBusbw, ...] = ()


class Xid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of NVIDIA's catalogue. `action` is the immediate bucket, `then` the investigatory one.

    `by_generation` overrides `action` for a GPU generation (ampere, hopper, blackwell). `note`: what other sources
    say. `also`: further ids of the same fact.
    """

    name: str
    meaning: str
    action: str
    source: str
    date: datetime.date
    then: str = ""
    by_generation: Mapping[str, str] = {}
    application: bool = False
    also: tuple[str, ...] = ()
    note: str = ""
    theirs: bool = False


class FindingKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a finding before any node is read. `section` is FILE.md#anchor below references/remedies.

    `level`: how bad it is by itself, where that is knowledge (an Xid) and not the rule's own judgement.
    """

    section: str
    why: str
    false_alarm: str
    next_step: str
    route: str = ""
    priority: Priority | None = None
    level: Level | None = None
    clears: tuple[str, ...] = ()


class Symptom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer to 'what hurts?'. `rules` are asked first-to-last; empty means all. `asked` says why it matters. `pairs`: results
    of pairwise runs tell, too, where there are any."""

    title: str
    hint: str
    asked: str
    rules: tuple[str, ...] = ()
    pairs: bool = False
    sections: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    means: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Knowledge:
    """Everything in references/, one attribute per file. Look-ups of unknown names raise KeyError: no silent default."""

    thresholds: Mapping[str, Threshold]
    instances: Mapping[str, Instance]
    xids: Mapping[int, Xid]
    findings: Mapping[str, FindingKind]
    symptoms: Mapping[str, Symptom]
    glossary: Mapping[str, Term]
    theirs: tuple[str, ...] = ()

    def finding_kind(self, name: str) -> FindingKind:
        """The entry of a finding id. Raises KeyError for an id nobody declared.

        Xids are the one open family: an `xid.N` without an entry of its own has that of its action, `xid:ACTION`; so has
        one whose verdict is the user's own. A number outside the catalogue is `xid:UNLISTED`.
        """
        number = name.removeprefix("xid.")
        if number == name or not number.isdigit():
            return self.findings[name]
        xid = self.xids.get(int(number))
        if xid is None:
            return self.findings["xid:UNLISTED"]
        own = None if xid.theirs else self.findings.get(name)
        return own or self.findings[f"xid:{xid.action}"]

    def number(self, name: str) -> float:
        """The value of a numeric threshold."""
        value = self.thresholds[name].value
        if isinstance(value, str):
            raise KnowledgeError(f"thresholds.toml: {name} is not a number")
        return value

    def word(self, name: str) -> str:
        return str(self.thresholds[name].value)

    def instance(self, kind: str | None) -> Instance | None:
        """The entry of an instance type with or without HyperPod's `ml.` in front; None when the type is not known."""
        return self.instances.get((kind or "").removeprefix("ml."))


def load(config: Path | None = None) -> Knowledge:
    """The shipped knowledge, and on top of it what the user's `config` directory holds. Raises KnowledgeError."""
    return _with_theirs(_shipped(), config) if config is not None and files_in(config) else _shipped()


def files_in(directory: Path) -> list[Path]:
    """What a directory of the user's holds, sorted; nothing where there is none. Raises KnowledgeError if it cannot be listed."""
    try:
        found = sorted(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise KnowledgeError(f"{directory}: {error.strerror}; make it readable or move it away") from error
    for path in found:
        # Reading a pipe would wait for ever, a device might never end.
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise KnowledgeError(f"{path}: is neither a file nor a directory; move it away")
    return found


@cache
def _shipped() -> Knowledge:
    home = files("straggler.references")

    def read(name: str, kind: type[T]) -> dict[str, T]:
        return _parse(home.joinpath(name).read_bytes(), name, kind)

    xids = read("xid.toml", Xid)
    return Knowledge(
        thresholds=read("thresholds.toml", Threshold),
        instances=read("instances.toml", Instance),
        xids={int(number): one for number, one in xids.items()},
        findings=read("findings.toml", FindingKind),
        symptoms=read("tree.toml", Symptom),
        glossary=read("glossary.toml", Term),
    )


def _parse(raw: bytes, name: str, kind: type[T]) -> dict[str, T]:
    try:
        return msgspec.convert(tomllib.loads(raw.decode()), type=dict[str, kind])  # type: ignore[valid-type]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise KnowledgeError(f"{name}: {error}") from error


def _with_theirs(known: Knowledge, config: Path) -> Knowledge:
    """Their thresholds and Xids laid over ours; a value outside the sanity bound is refused by name."""
    thresholds, xids, theirs = dict(known.thresholds), dict(known.xids), []
    for name, one in _read_theirs(config / "thresholds.toml", Threshold).items():
        ours = thresholds.get(name)
        if ours is None:
            raise KnowledgeError(f"{config / 'thresholds.toml'}: no threshold is called {name!r}")
        _check_bound(config / "thresholds.toml", name, one, ours)
        thresholds[name] = msgspec.structs.replace(one, low=ours.low, high=ours.high, theirs=True)
        theirs.append(f"threshold {name}")
    for number, xid in _read_theirs(config / "xid.toml", Xid).items():
        if not number.isdigit():
            raise KnowledgeError(f"{config / 'xid.toml'}: {number!r} is not an Xid number")
        for action in (xid.action, *xid.by_generation.values()):
            if f"xid:{action}" not in known.findings:
                raise KnowledgeError(
                    f"{config / 'xid.toml'}: Xid {number}: {action!r} is not one of {_actions(known)}"
                )
        xids[int(number)] = msgspec.structs.replace(xid, theirs=True)
        theirs.append(f"Xid {number}")
    return Knowledge(
        thresholds, known.instances, xids, known.findings, known.symptoms, known.glossary, tuple(theirs)
    )


def _actions(known: Knowledge) -> str:
    return ", ".join(sorted(name.removeprefix("xid:") for name in known.findings if name.startswith("xid:")))


def _read_theirs(path: Path, kind: type[T]) -> dict[str, T]:
    try:
        return _parse(path.read_bytes(), str(path), kind)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise KnowledgeError(f"{path}: {error.strerror}; make it readable or move it away") from error


def _check_bound(path: Path, name: str, theirs: Threshold, ours: Threshold) -> None:
    if isinstance(theirs.value, str) is not isinstance(ours.value, str):
        raise KnowledgeError(
            f"{path}: {name} must be a {'word' if isinstance(ours.value, str) else 'number'}"
        )
    if theirs.unit != ours.unit:
        raise KnowledgeError(f"{path}: {name} is in {ours.unit}, not in {theirs.unit}")
    if isinstance(theirs.value, str):
        return
    if (ours.low is not None and theirs.value < ours.low) or (
        ours.high is not None and theirs.value > ours.high
    ):
        raise KnowledgeError(
            f"{path}: {name} = {theirs.value} is outside {ours.low}..{ours.high} {ours.unit}"
        )
