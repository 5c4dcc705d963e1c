"""Findings somebody has seen and set aside for a while. They come back when they change, and when the time is over."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import msgspec

from straggler.engine.model import Finding
from straggler.engine.redact import redact
from straggler.engine.statedir import FILE_MODE, private_dir, reason, state_dir

FILE = "acknowledged.json"
SIZE_LIMIT = 4 * 2**20
"""Bytes of the file that are read; more is no list of ours."""


@dataclass(frozen=True, slots=True)
class Ack:
    """`until` and `at` are Unix seconds. `finding` is the finding's id, for people who read the file."""

    fingerprint: str
    finding: str
    who: str
    at: float
    until: float
    note: str = ""


class _File(msgspec.Struct, frozen=True):
    schema: int
    acknowledged: list[Ack]


def fingerprint(finding: Finding) -> str:
    """What makes a finding the same one: its id, level, title and nodes. One node more is another finding."""
    parts = (finding.id, finding.level.value, finding.title, *sorted(finding.subjects))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


@dataclass(frozen=True)
class Acks:
    """The acknowledgements of one state directory. `trouble` says what went wrong with the file, empty when nothing did."""

    path: Path
    by_fingerprint: Mapping[str, Ack] = field(default_factory=lambda: MappingProxyType({}))
    trouble: str = ""

    @classmethod
    def load(cls, state: Path | None = None) -> Acks:
        """Read the file; a damaged one is set aside under another name and said, never a reason to stop."""
        path = state_dir(state) / FILE
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as stream:
                data = stream.read(SIZE_LIMIT + 1)
            read = msgspec.json.decode(data, type=_File)
        except FileNotFoundError:
            return cls(path)
        except OSError as error:
            return cls(path, trouble=f"acknowledgements cannot be read: {path}: {reason(error)}")
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return cls(path, trouble=_set_aside(path))
        return cls(path, MappingProxyType({one.fingerprint: one for one in read.acknowledged}))

    def is_acknowledged(self, finding: Finding, now: float) -> bool:
        return self.of(finding, now) is not None

    def of(self, finding: Finding, now: float) -> Ack | None:
        """The acknowledgement that covers this finding now; None when there is none, it ran out, or the finding changed."""
        ack = self.by_fingerprint.get(fingerprint(finding))
        return ack if ack is not None and now < ack.until else None

    def acknowledge(
        self, finding: Finding, until: float, note: str = "", who: str = "", now: float | None = None
    ) -> Acks:
        """The acknowledgements with one more, saved; `trouble` says when saving failed (it then holds for this run only)."""
        at = time.time() if now is None else now
        ack = Ack(fingerprint(finding), finding.id, who or _user(), at, until, str(redact(note)))
        return self._changed({**_live(self._latest(), at), ack.fingerprint: ack})

    def withdraw(self, finding: Finding) -> Acks:
        """The acknowledgements without this finding's."""
        return self._changed({key: ack for key, ack in self._latest().items() if key != fingerprint(finding)})

    def _latest(self) -> dict[str, Ack]:
        """With what another session on this machine has saved meanwhile."""
        return {**self.by_fingerprint, **Acks.load(self.path.parent).by_fingerprint}

    def _changed(self, acks: dict[str, Ack]) -> Acks:
        trouble = ""
        try:
            _write(self.path, msgspec.json.format(msgspec.json.encode(_File(1, list(acks.values())))))
        except OSError as error:
            trouble = f"not saved, holds for this run only: {self.path}: {reason(error)}"
        return Acks(self.path, MappingProxyType(acks), trouble)


def _live(acks: Mapping[str, Ack], now: float) -> dict[str, Ack]:
    return {key: ack for key, ack in acks.items() if now < ack.until}


def _write(path: Path, data: bytes) -> None:
    """All or nothing: a new file (0600) takes the old one's place."""
    new = f".{FILE}.{secrets.token_hex(4)}"
    with private_dir(path.parent, own=False) as place:
        fd = os.open(
            new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE, dir_fd=place
        )
        try:
            with os.fdopen(fd, "wb") as stream:
                os.fchmod(stream.fileno(), FILE_MODE)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(new, path.name, src_dir_fd=place, dst_dir_fd=place)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(new, dir_fd=place)
            raise


def _set_aside(path: Path) -> str:
    aside = path.with_name(f"{FILE}.damaged-{int(time.time())}")
    try:
        os.replace(path, aside)
    except OSError as error:
        return f"acknowledgements are damaged and stay unused: {path}: {reason(error)}"
    return f"acknowledgements were damaged; the file is now {aside}, and every finding shows again"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.geteuid())
