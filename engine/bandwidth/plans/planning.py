"""From the nodes of a target and what the operator asks for to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from straggler.engine.bandwidth import placement, schedule
from straggler.engine.bandwidth.model import Round
from straggler.engine.bandwidth.plans import base
from straggler.engine.bandwidth.plans.base import Load, Plan, Pods
from straggler.engine.errors import UsageError
from straggler.engine.knowledge import Instance, Knowledge
from straggler.engine.model import Node, Placement
from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the operator asks for; None and empty: what is usual. `sizes` is MIN:MAX, `environment` NAME=VALUE, `mca` the same."""

    engine: str
    rounds: int | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    instance_type: str | None = None
    gpus: int | None = None
    efa: int | None = None
    sizes: str | None = None
    binary: str | None = None
    mpirun: str | None = None
    deadline: int | None = None
    environment: tuple[str, ...] = ()
    mca: tuple[str, ...] = ()
    image: str | None = None
    tolerations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what is to be said about it: which nodes were left out and why."""

    plan: Plan
    notes: tuple[str, ...] = ()


def make(nodes: Sequence[Node], wishes: Wishes, known: Knowledge, places: Mapping[str, Placement]) -> Planned:
    """The plan of a sweep. `places` comes on top of what the nodes themselves say. Raises UsageError: one line, with the cure."""
    chosen, kind, notes = _one_type(nodes, wishes, known)
    if wishes.pairs:
        chosen = _of_pairs(chosen, wishes.pairs)
    if len(chosen) < 2:
        raise UsageError("a sweep needs at least two nodes with GPUs; name more of them")
    base.check_names([node.id for node in chosen])
    where = {node.id: places.get(node.id, node.placement) for node in chosen}
    chosen = list(placement.order([Node(one.id, placement=where[one.id]) for one in chosen]))
    names = tuple(node.id for node in chosen)
    load = _load(wishes, known, known.instance(kind))
    plan = Plan(
        engine=wishes.engine,
        nodes=names,
        rounds=_rounds(names, where, wishes, known),
        load=load,
        seed=wishes.seed,
        instance_type=kind,
        pods=_pods(wishes, known, known.instance(kind))
        if wishes.engine == "kubernetes" and wishes.image
        else None,
        placement={name: levels for name in names if (levels := placement.boundaries(where[name]))},
    )
    return Planned(plan, notes)


def _one_type(
    nodes: Sequence[Node], wishes: Wishes, known: Knowledge
) -> tuple[list[Node], str | None, tuple[str, ...]]:
    """The nodes of one instance type: EFA does not carry every mix, and a mixed pair is as fast as its slower type."""
    asked = (wishes.instance_type or "").removeprefix("ml.") or None
    if asked is not None and known.instance(asked) is None:
        raise UsageError(
            f"--instance-type {safe(asked)}: no such type is known; it is written like p5.48xlarge"
        )
    if asked is not None:
        _refuse_without_gpus(asked, known.instances[asked])
    kinds = {node.id: (node.instance_type or "").removeprefix("ml.") or None for node in nodes}
    fitting = [node for node in nodes if _sweepable(known.instance(kinds[node.id]))]
    if asked is not None:
        fitting = [node for node in fitting if kinds[node.id] in (asked, None)]
    if not fitting:
        for kind in filter(None, kinds.values()):
            if (instance := known.instance(kind)) is not None:
                _refuse_without_gpus(kind, instance)
        raise UsageError("no node of this type is among the nodes of the target")
    found = sorted({kinds[node.id] or "" for node in fitting} - {""})
    if len(found) > 1:
        raise UsageError(
            f"the nodes are of {len(found)} types ({', '.join(found)}), which do not compare;"
            f" sweep one at a time: --instance-type {found[0]}"
        )
    left_out = [node.id for node in nodes if node not in fitting]
    notes = (f"left out, of another type or without NVIDIA GPUs: {safe(fold(left_out))}",) if left_out else ()
    return fitting, asked or (found[0] if found else None), notes


def _sweepable(instance: Instance | None) -> bool:
    """A type that is not known may have GPUs: whether it does, the operator says."""
    return instance is None or instance.gpus > 0


def _refuse_without_gpus(kind: str, instance: Instance) -> None:
    if instance.accelerator == "neuron":
        raise UsageError(
            f"{kind} has Trainium or Inferentia, which does not run NCCL; its own test is nccom-test"
        )
    if instance.gpus == 0:
        raise UsageError(f"{kind} has no GPUs; a sweep runs nccl-tests between nodes that have some")


def _of_pairs(nodes: Sequence[Node], pairs: Sequence[tuple[str, str]]) -> list[Node]:
    known = {node.id for node in nodes}
    for name in (name for pair in pairs for name in pair):
        if name not in known:
            raise UsageError(f"--pairs names {name!r}, which is not among the nodes that can be swept")
    wanted = {name for pair in pairs for name in pair}
    return [node for node in nodes if node.id in wanted]


def _rounds(
    names: Sequence[str], where: Mapping[str, Placement], wishes: Wishes, known: Knowledge
) -> tuple[Round, ...]:
    first = schedule.round_zero(names)
    if wishes.pairs:
        return (first, *schedule.pack(wishes.pairs))
    limit = int(known.number("sweep.rounds")) if wishes.rounds is None else wishes.rounds
    return (first, *schedule.rounds(names, where, wishes.seed, limit))


def _load(wishes: Wishes, known: Knowledge, instance: Instance | None) -> Load:
    gpus = wishes.gpus or (instance.gpus if instance is not None else 0)
    if not gpus:
        raise UsageError(
            "the instance type of the nodes is not known; give --instance-type p5.48xlarge or the like, or --gpus N per node"
        )
    usual = f"{known.word('sweep.size-min')}:{known.word('sweep.size-max')}"
    sizes = base.sizes(wishes.sizes or usual)
    iterations, warmup = int(known.number("sweep.iterations")), int(known.number("sweep.warmup"))
    usual_efa = instance.efa if instance is not None else 0
    efa = usual_efa if wishes.efa is None else wishes.efa
    seconds = base.healthy_seconds(known, instance, sizes, 2 * iterations + warmup, gpus)
    deadline = int(known.number("sweep.deadline")) if wishes.deadline is None else wishes.deadline
    load = Load(
        binary=wishes.binary or known.word("sweep.binary"),
        gpus=gpus,
        efa=efa,
        sizes=sizes,
        iterations=iterations,
        warmup=warmup,
        deadline=deadline,
        grace=int(known.number("sweep.grace")),
        seconds=min(seconds, deadline),
        between=int(known.number(f"sweep.between.{wishes.engine}")),
        environment=base.environment(known, efa, wishes.environment),
        mpirun=wishes.mpirun or known.word("sweep.mpirun"),
        mca=tuple((name, value) for name, _, value in (one.partition("=") for one in wishes.mca)),
    )
    base.check_load(load)
    return load


def _pods(wishes: Wishes, known: Knowledge, instance: Instance | None) -> Pods:
    image = wishes.image or ""
    base.check_image(image)
    return Pods(
        image=image,
        hugepages=known.word("sweep.hugepages"),
        memory=known.word("sweep.memory"),
        shm=known.word("sweep.shm"),
        start_seconds=int(known.number("sweep.start-seconds")),
        keep_seconds=int(known.number("sweep.keep-seconds")),
        tolerations=wishes.tolerations,
        compute_domain=instance is not None and instance.nvlink_nodes > 1,
    )
