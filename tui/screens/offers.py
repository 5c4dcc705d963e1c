"""What there is to open on this machine, for the chooser: each source is one function that may read files, not more.

They run in threads after the first paint, so what they need is imported inside them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

HOST_FILE_NAMES = ("hostfile", "hosts", "hosts.txt", "machinefile")
MOST_SESSIONS = 50
MOST_FILES = 50


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing to open. `value` is what the choice hands back; all of it is text from files, not yet made safe."""

    value: str
    title: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Offers:
    """What one source has, and in one line why it has nothing or not everything."""

    found: tuple[Offer, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One group of the chooser. `kind` goes into the Choice; `several`: more than one may be ticked."""

    kind: str
    title: str
    load: Callable[[], Offers]
    hint: str = ""
    several: bool = False


def sources(
    state_dir: Path | None = None,
    here: Path | None = None,
    *,
    region: str | None = None,
    profile: str | None = None,
) -> tuple[Source, ...]:
    """The groups in the order they are shown: what on-call needs first, what a newcomer needs last but in sight."""
    return (
        Source("hyperpod", "HyperPod clusters", partial(clusters, region, profile), hint=region or ""),
        Source("hosts", "Hosts by SSH", partial(host_files, here)),
        Source("local", "This machine", this_machine),
        Source("session", "Past sessions", partial(past_sessions, state_dir)),
        Source("demo", "Simulated cluster", scenarios, hint="nothing real is touched"),
        Source("ssh", "From ~/.ssh/config", config_hosts, hint="Space chooses several", several=True),
    )


def clusters(region: str | None = None, profile: str | None = None) -> Offers:
    """The HyperPod clusters of the region, by the credentials that are there; nobody is asked for any."""
    import asyncio

    from straggler.engine.aws import reading
    from straggler.engine.aws.clients import open_clients
    from straggler.engine.errors import StragglerError

    try:
        found = open_clients(region, profile, ask=False)
        listed = asyncio.run(reading.clusters(found))
    except StragglerError as error:
        return Offers(note=str(error))
    if not listed:
        return Offers(note=f"none in {found.region} (--region R looks elsewhere)")
    return Offers(tuple(Offer(one.arn, one.name, f"{one.status} · {found.region}") for one in listed))


def scenarios() -> Offers:
    from straggler.engine.simcluster.scenarios import SCENARIOS

    return Offers(tuple(Offer(name, name, one.title) for name, one in SCENARIOS.items()))


def this_machine() -> Offers:
    import socket

    return Offers((Offer("", "local", socket.gethostname() or "localhost"),))


def host_files(here: Path | None = None) -> Offers:
    """Files of the current directory that look like lists of hosts, with how many hosts each names."""
    where = here or Path()
    try:
        names = sorted(one.name for one in os.scandir(where) if _looks_like_hosts(one))
    except OSError as error:
        return Offers(note=f"this directory cannot be listed: {error.strerror}")
    if not names:
        return Offers(note="no hostfile, hosts.txt, machinefile or *.hosts in this directory")
    shown = tuple(_host_file(where, name) for name in names[:MOST_FILES])
    return Offers(shown, f"{len(names) - MOST_FILES} more files not shown" if len(names) > MOST_FILES else "")


def _looks_like_hosts(entry: os.DirEntry[str]) -> bool:
    return (entry.name in HOST_FILE_NAMES or entry.name.endswith(".hosts")) and entry.is_file()


def _host_file(where: Path, name: str) -> Offer:
    from straggler.engine.errors import UsageError
    from straggler.engine.nodesets import parse_hosts

    path = f"@{where / name}"
    try:
        count = len(parse_hosts(path))
    except UsageError as error:
        return Offer(path, f"@{name}", f"cannot be used: {error}")
    return Offer(path, f"@{name}", f"{count} host{'' if count == 1 else 's'}")


def config_hosts() -> Offers:
    from straggler.engine.errors import StragglerError
    from straggler.engine.targets import hosts

    try:
        names = hosts.config_hosts()
    except StragglerError as error:
        return Offers(note=str(error))
    if names:
        return Offers(tuple(Offer(name, name) for name in names))
    if Path("~/.ssh/config").expanduser().exists():
        return Offers(note="~/.ssh/config names no single host (patterns such as * are not listed)")
    return Offers(note="no ~/.ssh/config on this machine")


def past_sessions(state_dir: Path | None = None) -> Offers:
    """Newest first, by their first and last lines only."""
    from straggler.engine.recovery import list_sessions
    from straggler.engine.window import utc

    found = list_sessions(state_dir)
    if not found:
        return Offers(note="none on this machine yet")
    shown = tuple(
        Offer(
            str(one.path),
            f"{utc(one.started)[:16].replace('T', ' ')}Z",
            " · ".join(filter(None, (one.ended, one.title, one.symptom))),
        )
        for one in found[:MOST_SESSIONS]
    )
    more = len(found) - MOST_SESSIONS
    return Offers(shown, f"{more} older ones: straggler sessions" if more > 0 else "")
