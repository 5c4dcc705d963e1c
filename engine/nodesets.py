"""Host names as people write them: ranges parsed and folded by ClusterShell, never handed to a shell or a group file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

from straggler.engine.errors import UsageError

MOST_HOSTS = 100_000
"""More hosts than one target may have; checked before a range is written out, so that a typing error costs no memory."""

MOST_BYTES = 16_000_000
"""The longest host file that is read."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@\\+-]*\$?")
_PATTERN = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,/-]+\])+")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18})(?:/([0-9]{1,9}))?)?")
_WITH_PORT = re.compile(r"(?P<name>\[[^\]]*:[^\]]*\]|[^:]+)(?::(?P<port>[^:]*))?")


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One host as it was asked for. None: not said, so ssh config decides. `host` is a name or an address, no range."""

    host: str
    user: str | None = None
    port: int | None = None


def fold(names: Iterable[str]) -> str:
    """`worker-[001-004,007]` for a list of names; names that are no plain host names are joined by commas."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    every = list(dict.fromkeys(names))
    plain = [name for name in every if _PLAIN.fullmatch(name)]
    other = [name for name in every if not _PLAIN.fullmatch(name)]
    folded = str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP)) if plain else ""
    return ",".join(filter(None, [folded, *other]))


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key by which worker-9 comes before worker-10."""
    parts = re.split(r"([0-9]{1,18})", name)
    return tuple((1, int(part), "") if at % 2 else (0, 0, part) for at, part in enumerate(parts))


def parse_hosts(text: str) -> tuple[HostSpec, ...]:
    """`user@node[001-016]:22,other,[fd00::7]` or `@FILE`, in the order written. Raises UsageError: one line, with the cure.

    A file has one item per line; what follows the first word (`slots=8`), `#` comments and blank lines are skipped.
    """
    text = text.strip()
    items = _file_items(text[1:]) if text.startswith("@") else ((item.strip(), "") for item in _split(text))
    found: list[HostSpec] = []
    seen: set[tuple[str, int]] = set()
    for item, where in items:
        for spec in _item(item, where, MOST_HOSTS - len(found)):
            key = spec.host.casefold(), spec.port or 22
            if key in seen:
                raise UsageError(f"{where}host {spec.host!r} is named twice; name each host once")
            seen.add(key)
            found.append(spec)
    if not found:
        raise UsageError(
            "the host list is empty; write it like --hosts 'user@node[001-016],other' or --hosts @FILE"
        )
    return tuple(found)


def node_ids(specs: Iterable[HostSpec]) -> list[str]:
    """One unique name per host: the host as typed, with the port behind it where one host is named with two ports."""
    specs = list(specs)
    many = Counter(spec.host.casefold() for spec in specs)
    return [
        spec.host if many[spec.host.casefold()] == 1 else f"{_bracketed(spec.host)}:{spec.port or 22}"
        for spec in specs
    ]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _split(text: str) -> Iterator[str]:
    """At the commas that stand outside of brackets."""
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0:
            yield text[start:at]
            start = at + 1
    if text:
        yield text[start:]


def _file_items(name: str) -> Iterator[tuple[str, str]]:
    path = Path(name).expanduser() if name.startswith("~") else Path(name)
    if not name:
        raise UsageError("--hosts @FILE: the name of the file is missing behind the @")
    for number, line in enumerate(_read(path).splitlines(), 1):
        words = line.split("#", 1)[0].split()
        where = f"{path}, line {number}: "
        if words and words[0].startswith("@"):
            raise UsageError(
                f"{where}a host file cannot name another file ({words[0]!r}); write its hosts here"
            )
        for item in _split(words[0]) if words else ():
            yield item, where


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except IsADirectoryError as error:
        raise UsageError(
            f"{path} is a directory; --hosts @FILE wants a file with one host per line"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read the host file {str(path)!r}: {reason}") from error
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{path} is longer than {MOST_BYTES // 1_000_000} MB; is it a list of hosts?")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file; --hosts @FILE wants one host per line") from error
    if "\0" in text:
        raise UsageError(f"{path} is not a text file; --hosts @FILE wants one host per line")
    return text


def _item(item: str, where: str, room: int) -> Iterator[HostSpec]:
    """One item without outer commas: user, name or range or address, port."""
    user, at, rest = item.rpartition("@")
    if at and not user:
        raise UsageError(
            f"{where}{item!r}: neither groups nor a file among hosts are read; write the hosts out, or --hosts @FILE alone"
        )
    if at and not _USER.fullmatch(user):
        raise UsageError(f"{where}{item!r}: {user!r} is not a user name; write it like user@node[001-016]:22")
    parts = _WITH_PORT.fullmatch(rest)
    if parts is None:
        hint = (
            "put an IPv6 address in brackets"
            if rest.count(":") > 1
            else "write it like user@node[001-016]:22"
        )
        raise UsageError(
            f"{where}{item!r} is not a host; {hint}" if item else f"{where}a host is missing beside a comma"
        )
    port = _port(parts["port"], item, where)
    for host in _names(parts["name"], item, where, room):
        yield HostSpec(host, user or None, port)


def _port(text: str | None, item: str, where: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise UsageError(f"{where}{item!r}: {text!r} is not a port; ports are 1 to 65535")
    return int(text)


def _names(pattern: str, item: str, where: str, room: int) -> Iterable[str]:
    if pattern.startswith("[") and ":" in pattern:
        try:
            address, _, zone = pattern[1:-1].partition("%")
            return [str(IPv6Address(address)) + (f"%{zone}" if _PLAIN.fullmatch(zone) else "")]
        except ValueError:
            raise UsageError(f"{where}{pattern!r} is not an IPv6 address") from None
    if not _PATTERN.fullmatch(pattern) or pattern.startswith(("-", ".")):
        raise UsageError(
            f"{where}{item!r} is not a host; names have letters, digits, dots, hyphens and ranges like node[001-016,020]"
        )
    many = _count(pattern, item, where)
    if many > room:
        raise UsageError(f"{where}{item!r}: more than {MOST_HOSTS:,} hosts; check the range")
    if "[" not in pattern:
        return [pattern]
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return [str(name) for name in NodeSet(pattern, resolver=RESOLVER_NOGROUP)]
    except (NodeSetException, ValueError) as error:
        raise UsageError(f"{where}{item!r} is not a range: {error}; write it like node[001-016]") from None


def _count(pattern: str, item: str, where: str) -> int:
    """How many names the ranges of a pattern stand for, without writing them out."""
    many = 1
    for body in re.findall(r"\[([^\]]*)\]", pattern):
        parts = [_RANGE.fullmatch(part) for part in body.split(",")]
        if None in parts:
            raise UsageError(f"{where}{item!r}: [{body}] is not a range; write it like [001-016,020]")
        size = 0
        for part in parts:
            assert part is not None
            low, high, step = int(part[1]), int(part[2] or part[1]), int(part[3] or 1)
            if high < low or step < 1:
                raise UsageError(f"{where}{item!r}: [{body}] runs backwards; write the smaller number first")
            size += (high - low) // step + 1
        many *= size
    return many
