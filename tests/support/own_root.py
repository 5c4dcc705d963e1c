"""A shell that sees other /sys and mounts than this machine's: real snippets on a made node, in a mount namespace of its own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path


def own_root(
    home: Path, files: Mapping[str, str], mounts: Sequence[str] = (), shell: str = "/usr/bin/dash"
) -> str:
    """The path of a program to give to `FakeTools.run(shell=...)`.

    `files`: path below / -> text, laid over what is there (its directories are overlaid at the deepest one that exists
    on this machine). `mounts`: further shell lines run before the node script, as root of the namespace.
    """
    lower = home / "lower"
    tops = set()
    for path, text in files.items():
        where = lower / path.lstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text)
        there = Path(path).parent
        while not there.is_dir():
            there = there.parent
        tops.add(there)
    lines = [
        f"mount -t overlay overlay -o lowerdir={lower}{top}:{top} {top}"
        for top in sorted(tops)
        if not any(other in top.parents for other in tops)
    ]
    inner = "; ".join(["set -e", *lines, *mounts, "set +e", f"exec {shell}"])
    wrapper = home / "node"
    wrapper.write_text(f"#!/bin/sh\nexec unshare -m sh -c {shlex.quote(inner)}\n")
    wrapper.chmod(0o755)
    return str(wrapper)
