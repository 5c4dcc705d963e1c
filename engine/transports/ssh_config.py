"""What the ssh config files say before any host is reached: local programs they start, keys they name, hosts they list.

asyncssh reads the files for the connection itself. This reader only looks: it starts nothing, so that what will be started
can be shown first. A `Match` block is taken as one that may apply, for whether it does can depend on running a program.
"""

from __future__ import annotations

import fnmatch
import getpass
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from straggler.engine.errors import UsageError

USER_CONFIG = Path("~/.ssh/config")
SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")

_DEEPEST = 16
_STARTS = {"proxycommand": "ProxyCommand"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of a config file. `hosts` are the patterns of its `Host` block; None: it may hold for every host."""

    option: str
    value: str
    hosts: tuple[str, ...] | None
    where: str

    def holds_for(self, host: str) -> bool:
        """As ssh does: one pattern must match, and none that is negated."""
        if self.hosts is None:
            return True
        hit = False
        for pattern in self.hosts:
            bare = pattern.removeprefix("!")
            if fnmatch.fnmatchcase(host, bare.replace("[", "[[]")):
                if pattern != bare:
                    return False
                hit = True
        return hit


def config_files(given: Path | None = None) -> list[Path]:
    """The files ssh itself would read, in its order: the given one alone, or the user's and then the system's."""
    if given is not None:
        return [given]
    return [path for path in (USER_CONFIG.expanduser(), SYSTEM_CONFIG) if path.exists()]


def read_settings(files: Sequence[Path]) -> list[Setting]:
    """Every setting of the files and of what they include. Raises UsageError for a file that cannot be read."""
    found: list[Setting] = []
    for path in files:
        found.extend(_settings(path, None, _DEEPEST))
    return found


def concrete_hosts(settings: Iterable[Setting]) -> list[str]:
    """The names of `Host` lines that are names and no patterns, in the order they appear."""
    named = (name for one in settings if one.option == "host" for name in one.value.split())
    return list(
        dict.fromkeys(name for name in named if not re.search(r"[*?!\[\]]", name) and name.isprintable())
    )


def programs(settings: Iterable[Setting], hosts: Iterable[str]) -> tuple[str, ...]:
    """Local programs that connecting to `hosts` (and to their jump hosts) starts or may start; one line each."""
    settings = list(settings)
    reached = _with_jumps(settings, hosts)
    found: list[str] = []
    for one in settings:
        if one.option == "match":
            found.extend(f"Match exec {command} ({one.where})" for command in _match_execs(one.value))
        elif one.option in _STARTS and one.value.lower() != "none" and any(map(one.holds_for, reached)):
            found.append(f"{_STARTS[one.option]} {one.value} ({one.where})")
    return tuple(dict.fromkeys(found))


def identity_files(settings: Iterable[Setting], hosts: Iterable[str], users: Iterable[str]) -> list[Path]:
    """The key files the config names for these hosts and their jump hosts, tokens expanded."""
    settings = list(settings)
    lines = [one for one in settings if one.option == "identityfile" and one.value.lower() != "none"]
    found: dict[Path, None] = {}
    for host in _with_jumps(settings, hosts) if lines else ():
        for one in lines:
            if one.holds_for(host):
                for user in users if "%r" in one.value else ("",):
                    found[expand_path(one.value, host, user)] = None
    return list(found)


def expand_path(value: str, host: str = "", user: str = "") -> Path:
    """A path of the config with `~` and the tokens %d %h %n %u %r %i %% filled in."""
    me = getpass.getuser()
    tokens = {
        "d": str(Path.home()),
        "h": host,
        "n": host,
        "u": me,
        "r": user or me,
        "i": str(os.getuid()),
        "%": "%",
    }
    filled = re.sub(r"%(.)", lambda token: tokens.get(token[1], token[0]), value)
    return Path(os.path.expandvars(filled)).expanduser()


def _with_jumps(settings: Sequence[Setting], hosts: Iterable[str]) -> list[str]:
    """The hosts and every host that ProxyJump leads through."""
    jumps = [one for one in settings if one.option == "proxyjump" and one.value.lower() != "none"]
    reached = dict.fromkeys(hosts)
    todo = list(reached) if jumps else []
    while todo:
        host = todo.pop()
        for one in jumps:
            if one.holds_for(host):
                for hop in one.value.split(","):
                    name = hop.rpartition("@")[2].rpartition(":")[0] or hop.rpartition("@")[2]
                    if name not in reached:
                        reached[name] = None
                        todo.append(name)
    return list(reached)


def _settings(path: Path, hosts: tuple[str, ...] | None, depth: int) -> Iterator[Setting]:
    for number, line in enumerate(_lines(path), 1):
        words = re.fullmatch(r"\s*([A-Za-z0-9]+)(?:\s*=\s*|\s+)(.*?)\s*", line)
        if words is None:
            continue
        option, value = words[1].lower(), words[2]
        where = f"{path} line {number}"
        if option == "host":
            hosts = tuple(_split(value))
            value = " ".join(hosts)
        elif option == "match":
            hosts = None
        elif option == "include":
            if depth:
                for other in _included(value):
                    yield from _settings(other, hosts, depth - 1)
            continue
        elif option == "identityfile":
            value = " ".join(_split(value))
        yield Setting(option, value, hosts, where)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(
            f"cannot read the ssh config {path}: {error.strerror}; make it readable or move it away"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the ssh config {path} is not a text file") from error


def _included(value: str) -> list[Path]:
    found: list[Path] = []
    for pattern in _split(value):
        path = Path(pattern).expanduser()
        base = Path(path.anchor) if path.anchor else USER_CONFIG.expanduser().parent
        found.extend(
            sorted(
                one
                for one in base.glob(str(path.relative_to(base) if path.anchor else path))
                if one.is_file()
            )
        )
    return found


def _match_execs(value: str) -> Iterator[str]:
    words = _split(value)
    for at, word in enumerate(words[:-1]):
        if word.lower().removeprefix("!") == "exec":
            yield words[at + 1]


def _split(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()
