"""Hosts reachable by SSH as a target: the names as typed, ssh config as it stands, passphrases asked for beforehand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from straggler.engine.model import Node
from straggler.engine.nodesets import fold, node_ids, parse_hosts
from straggler.engine.targets.base import Target
from straggler.engine.transports import ssh_config


def hosts_target(
    text: str,
    *,
    user: str | None = None,
    port: int | None = None,
    ssh_config_file: Path | None = None,
    ask: Callable[[str], str | None] | None = None,
) -> Target:
    """The target for `--hosts TEXT`; no host is contacted and no program started here. Raises UsageError.

    `user` and `port` are for hosts that name none. `ask` gets what a passphrase is for and gives it, or None; it is
    called from here only, so nothing is asked later.
    """
    from straggler.engine.transports.ssh import SshTransport
    from straggler.engine.transports.ssh_dial import Dialer
    from straggler.engine.transports.ssh_keys import agent_sockets, open_keys

    specs = [replace(one, user=one.user or user, port=one.port or port) for one in parse_hosts(text)]
    ids = node_ids(specs)
    names = [one.host for one in specs]
    files = ssh_config.config_files(ssh_config_file)
    settings = ssh_config.read_settings(files)
    users = dict.fromkeys(one.user or "" for one in specs)
    ring = open_keys(
        ssh_config.identity_files(settings, names, users),
        agent_sockets(one.value for one in settings if one.option == "identityagent"),
        ask,
    )
    starts = ssh_config.programs(settings, names)
    dialer = Dialer(files, ring, slow_config=any(one.startswith("Match exec") for one in starts))
    return Target(
        kind="hosts",
        title=_title(ids),
        nodes=tuple(Node(name) for name in ids),
        transport=SshTransport(dict(zip(ids, specs, strict=True)), dialer),
        spec={"hosts": text if not text.lstrip().startswith("@") else fold(ids)},
        starts=starts,
    )


def config_hosts(path: Path | None = None) -> list[str]:
    """The hosts ssh config names one by one (no patterns), for choosing from; none when there is no readable config."""
    files = ssh_config.config_files(path)
    readable = [one for one in files if os.access(one, os.R_OK) and one.is_file()]
    return ssh_config.concrete_hosts(ssh_config.read_settings(readable))


def _title(ids: list[str]) -> str:
    many = "1 host" if len(ids) == 1 else f"{len(ids)} hosts"
    folded = fold(ids)
    return f"{many} by SSH: {folded if len(folded) <= 60 else folded[:59] + '…'}"
