"""Mounts that hang, went stale, or fell back to read-only; and which shared file systems are there."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import filesystems
from straggler.engine.collectors.filesystems import Filesystems, Mount
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(filesystems.COLLECTOR)
    words = view.known.word("mount.stale-words").split(",")
    stale = [path for path, said in facts.troubles.items() if any(word in said.lower() for word in words)]
    unasked = [path for path in facts.troubles if path not in stale and path not in facts.sizes]
    if stale:
        yield Verdict(
            "mount.stale",
            Level.FAIL,
            "a mounted file system does not answer any more",
            ", ".join(stale[:4]),
            tuple(facts.troubles[path] for path in stale[:4]),
            values={"mount": stale[0]},
        )
    if facts.silent:
        kinds = [f"{path} ({_kind(facts, path)})" for path in facts.silent[:4]]
        yield Verdict(
            "mount.hung",
            Level.FAIL,
            "a mounted file system hangs",
            f"no answer from {', '.join(kinds)} in {filesystems.WAIT} s",
            tuple(f"df {path}: no answer" for path in facts.silent[:4]),
            confidence=0.85,
            values={"mount": facts.silent[0]},
        )
    if fallen := [one for one in facts.mounts if _fell_back(one)]:
        detail = ", ".join(f"{one.path} ({one.kind})" for one in fallen[:4])
        yield Verdict(
            "mount.read-only",
            Level.FAIL,
            "a file system went read-only",
            detail,
            tuple(f"{one.device} {one.path} {one.kind} {','.join(one.options)}" for one in fallen[:4]),
            confidence=0.85,
            values={"mount": fallen[0].path},
        )
    if unasked:
        detail = ", ".join(f"{path}: {facts.troubles[path]}" for path in unasked[:4])
        yield Verdict("mount.ok", Level.UNKNOWN, "a mounted file system could not be asked", detail)
    if not (stale or facts.silent or fallen or unasked):
        yield Verdict("mount.ok", Level.PASS, "every mounted file system answers")
    shared = [
        f"{one.path} ({one.kind})"
        for one in facts.mounts
        if one.kind == "lustre" or one.kind.startswith("nfs")
    ]
    local = [path for path in view.known.word("mount.local").split(",") if facts.mount(path)]
    yield Verdict(
        "mount.list",
        Level.INFO,
        "shared and local file systems",
        ", ".join([*dict.fromkeys(shared), *local]) or "none but the root volume",
    )


def _fell_back(one: Mount) -> bool:
    """A disk mounted read-write that the kernel made read-only after an error says so in its options."""
    return (
        one.read_only
        and one.kind in ("ext4", "xfs", "btrfs")
        and any(word in one.options for word in ("errors=remount-ro", "shutdown", "emergency_ro"))
    )


def _kind(facts: Filesystems, path: str) -> str:
    mount = facts.mount(path)
    return mount.kind if mount else "?"


RULE = Rule(
    id="mounts",
    reads=(filesystems.COLLECTOR,),
    judge=judge,
    finds=("mount.ok", "mount.stale", "mount.hung", "mount.read-only", "mount.list"),
    unknown="mount.ok",
    spec=("B4",),
)
