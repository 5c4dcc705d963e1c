"""What a HyperPod cluster says of itself and of its nodes: failed, stuck, without recovery, mixed. A state in passing is no fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from straggler.engine.aws.cluster_facts import NODES, STATUS, Told
from straggler.engine.aws.hyperpod import Cluster, Member
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Finding, Level, Node, Priority, Uncovered, Unread
from straggler.engine.nodesets import fold
from straggler.engine.readings import CLUSTER
from straggler.engine.rules.fleet import fleet_finding

ID = "cluster-state"
FINDS = (
    "cluster.failed",
    "cluster.changing",
    "cluster.in-service",
    "cluster.node-failed",
    "cluster.node-stuck",
    "cluster.node-changing",
    "cluster.nodes-run",
    "cluster.recovery-off",
    "cluster.mixed-types",
    "cluster.not-read",
)
SOURCE = "AWS API"
COSTS: Mapping[str, str] = {
    STATUS: "whether the cluster failed and why, and whether it recovers nodes by itself",
    NODES: "which nodes failed or are stuck, and whether a group mixes instance types",
}
"""What is unknown without a reading."""

_FAILED = ("Failed",)
_GONE = ("Failure", "NotFound")


_finding = partial(fleet_finding, rule=ID, source=SOURCE)


def cluster_findings(told: Mapping[str, Told], nodes: Sequence[Node], known: Knowledge) -> list[Finding]:
    """Subjects are nodes of `nodes`; what is about the cluster has all of them."""
    found: list[Finding] = []
    every = tuple(node.id for node in nodes)
    about = told[STATUS].facts if STATUS in told else None
    values = {}
    if isinstance(about, Cluster):
        values = {"cluster": about.name, "region": about.arn.region}
        found += _of_cluster(about, every, values, known)
    if NODES in told and not isinstance(told[NODES].facts, Unread):
        found += _of_nodes(told[NODES], every, values, known)
    for name, one in told.items():
        if isinstance(one.facts, Unread):
            title = f"{name} not read: {one.facts.status.value}"
            why = f"{one.facts.why}; unknown: {COSTS.get(name, name)}"
            found.append(
                _finding(
                    "cluster.not-read",
                    Level.UNKNOWN,
                    title,
                    every,
                    known,
                    details=((CLUSTER, why),),
                    unread=one.facts.status,
                )
            )
    return found


def gaps(told: Mapping[str, Told]) -> tuple[Uncovered, ...]:
    """The readings that could not be had."""
    return tuple(
        Uncovered(name, one.facts.status, one.facts.why, (CLUSTER,))
        for name, one in told.items()
        if isinstance(one.facts, Unread)
    )


def _of_cluster(
    about: Cluster, every: tuple[str, ...], values: Mapping[str, str], known: Knowledge
) -> Iterator[Finding]:
    said = f"{about.status}: {about.failure}" if about.failure else about.status
    priority = None
    if about.status in _FAILED or about.failure:
        name, level, title = "cluster.failed", Level.FAIL, "the cluster says that it failed"
        if about.status not in _FAILED:
            level, title, priority = Level.WARN, "the cluster tells of a failure", Priority.P2
    elif about.status == "InService":
        name, level, title = "cluster.in-service", Level.PASS, "the cluster is in service"
    elif about.status == "RollingBack":
        name, level, title = "cluster.changing", Level.WARN, "a change of the cluster is being rolled back"
        priority = Priority.P2
    elif about.status == "Deleting":
        name, level, title = "cluster.changing", Level.WARN, "the cluster is being deleted"
    else:
        name, level, title = "cluster.changing", Level.INFO, "the cluster is being changed"
    yield _finding(
        name,
        level,
        title,
        every,
        known,
        details=((CLUSTER, said),),
        evidence=(said,),
        priority=priority,
        values=values,
    )
    if about.node_recovery == "None":
        title = "the cluster does not reboot or replace faulty nodes by itself"
        yield _finding(
            "cluster.recovery-off",
            Level.INFO,
            title,
            every,
            known,
            evidence=("NodeRecovery: None",),
            values=values,
        )


def _of_nodes(
    told: Told, every: tuple[str, ...], values: Mapping[str, str], known: Knowledge
) -> Iterator[Finding]:
    facts = told.facts
    chosen = set(every)
    members = [one for one in facts if one.id in chosen] if isinstance(facts, tuple) else []
    failed = [one for one in members if one.status in _GONE]
    passing = [one for one in members if one.status not in ("Running", *_GONE)]
    stuck = [one for one in passing if _age(one, told.at) > _limit(one, known)]
    moving = [one for one in passing if one not in stuck]
    make = partial(_group, values=values, known=known)
    if failed:
        yield make("cluster.node-failed", Level.FAIL, "the cluster says that nodes failed", failed)
    if stuck:
        title = "nodes have not come into service long after their launch"
        yield make("cluster.node-stuck", Level.WARN, title, stuck, at=told.at, confidence=0.7)
    if moving:
        title = "nodes are being changed or checked by the cluster"
        yield make("cluster.node-changing", Level.INFO, title, moving)
    running = tuple(one.id for one in members if one.status == "Running")
    if running:
        title = "the cluster says that nodes run"
        yield _finding("cluster.nodes-run", Level.PASS, title, running, known, values=values)
    yield from _mixed(members, values, known)


def _age(one: Member, now: float) -> float:
    """Seconds since the last of launch and software update; 0 where neither is told."""
    times = [at for at in (one.launched, one.updated) if at is not None]
    return now - max(times) if times else 0.0


def _limit(one: Member, known: Knowledge) -> float:
    """Seconds after which the state is no longer one in passing."""
    if one.status == "Pending":
        return known.number("cluster.pending-stuck") * 60
    if one.status == "DeepHealthCheckInProgress":
        return known.number("cluster.health-check-stuck") * 60
    return float("inf")


def _group(
    name: str,
    level: Level,
    title: str,
    members: Sequence[Member],
    *,
    values: Mapping[str, str],
    known: Knowledge,
    at: float | None = None,
    confidence: float = 0.95,
) -> Finding:
    """One finding of nodes in some state, folded by what is said of them."""
    by_word: dict[str, list[str]] = {}
    for one in members:
        said = f"{one.status}: {one.message}" if one.message else str(one.status or "no status told")
        if at is not None:
            said += f", {_age(one, at) / 60:.0f} min since launch or update"
        by_word.setdefault(said, []).append(one.id)
    details = tuple((fold(ids), said) for said, ids in by_word.items())
    ids = tuple(one.id for one in members)
    return _finding(
        name,
        level,
        title,
        ids,
        known,
        details=details,
        evidence=tuple(by_word)[:8],
        confidence=confidence,
        values=values,
    )


def _mixed(members: Sequence[Member], values: Mapping[str, str], known: Knowledge) -> Iterator[Finding]:
    groups: dict[str, dict[str, list[str]]] = {}
    for one in members:
        if one.instance_type:
            groups.setdefault(one.group, {}).setdefault(one.instance_type, []).append(one.id)
    for name, types in groups.items():
        if len(types) > 1:
            title = f"group {name} mixes instance types"
            details = tuple((fold(ids), kind) for kind, ids in sorted(types.items()))
            ids = tuple(node for each in types.values() for node in each)
            yield _finding(
                "cluster.mixed-types", Level.WARN, title, ids, known, details=details, values=values
            )
