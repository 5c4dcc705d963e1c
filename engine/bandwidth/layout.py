"""From runs to a matrix: which runs compare with each other, at which message size, and what stands for each pair.

Only runs of one tool, collective and unit compare; the largest group of them makes the matrix, the others are named in its
notes. One message size is compared, the largest that nearly all complete pair runs have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from straggler.engine.bandwidth.limits import shipped
from straggler.engine.bandwidth.matrix import STATES, Matrix
from straggler.engine.bandwidth.model import Metric, Run, RunState
from straggler.engine.nodesets import natural

Ceiling = Callable[[Run], "float | None"]
"""The most a run can reach by physics, in the unit of its metric; None: not known."""

_CODE = {state: code for code, state in enumerate(STATES)}
_BAD_FIRST = (RunState.IMPLAUSIBLE, RunState.FAILED, RunState.TRUNCATED)


@dataclass(frozen=True, slots=True)
class _Best:
    """What stands for one pair or node: its best complete run at the size, else how its runs ended."""

    value: float
    state: RunState


def build(
    runs: Iterable[Run],
    nodes: Sequence[str] = (),
    *,
    share: float | None = None,
    names: Mapping[str, str] | None = None,
    ceiling: Ceiling = lambda run: None,
) -> Matrix:
    """Lay out `runs`. `nodes`: the order to draw in; hosts that are not among them follow in natural order.

    `share`: how many of the complete pair runs (0..1) must have the size that is compared; None: `bandwidth.common-size`.
    `names`: other names of nodes, so that a log that says `ip-10-0-0-7` finds its node.
    """
    known = dict(names or {})
    share = shipped().common_size if share is None else share
    told = [_renamed(run, known) for run in runs]
    short = _domains((*nodes, *(host for run in told for host in run.hosts)), frozenset(nodes))
    every = [_checked(_renamed(run, short), ceiling) for run in told]
    pairs, alone, groups = _sorted_out(every)
    mute = [run for run in alone if run.ranks == 1 and run.state is RunState.OK and not run.points]
    alone = [run for run in alone if run.ranks != 1 or run.state is not RunState.OK or run.points]
    kept, notes = _comparable(pairs)
    single, more = _comparable(alone)
    notes += more
    if mute:
        # Repeating such a run gives no more: it is no doubt about its node.
        notes.append(
            f"{len(mute)} runs with a single rank have no bus bandwidth: they say nothing of their nodes"
        )
    size = _size(kept, share)
    alone_size = _size(single, share)
    seen = {host for run in (*kept, *single) for host in run.hosts}
    order = [*dict.fromkeys(nodes), *sorted(seen - set(nodes), key=natural)]
    at = {name: number for number, name in enumerate(order)}
    metric = kept[0].metric if kept else single[0].metric if single else Metric.BUSBW
    by_pair: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for run in kept:
        one, other = at[run.hosts[0]], at[run.hosts[1]]
        by_pair[min(one, other), max(one, other)].append(run)
    by_node: dict[int, list[Run]] = defaultdict(list)
    for run in single:
        by_node[at[run.hosts[0]]].append(run)
    keys = sorted(by_pair)
    bests = [_best(by_pair[key], size, metric) for key in keys]
    ends = np.array(keys, dtype=np.int32).reshape(-1, 2)
    solo = {node: _best(found, alone_size, metric) for node, found in by_node.items()}
    missing = sum(size not in run.points for run in kept if run.state is RunState.OK)
    if missing:
        notes.append(f"{missing} complete runs do not have the message size that is compared")
    return Matrix(
        nodes=tuple(order),
        size=size,
        metric=metric,
        a=ends[:, 0].copy(),
        b=ends[:, 1].copy(),
        value=np.array([best.value for best in bests], dtype=np.float64),
        state=np.array([_CODE[best.state] for best in bests], dtype=np.uint8),
        runs=np.array([len(by_pair[key]) for key in keys], dtype=np.int32),
        alone=np.array([solo[n].value if n in solo else np.nan for n in range(len(order))], dtype=np.float64),
        alone_state=np.array(
            [_CODE[solo[n].state] if n in solo else 0 for n in range(len(order))], dtype=np.uint8
        ),
        alone_runs=np.array([len(by_node.get(n, ())) for n in range(len(order))], dtype=np.int32),
        alone_size=alone_size,
        collective=kept[0].collective if kept else single[0].collective if single else None,
        detail={key: tuple(found) for key, found in by_pair.items()},
        by_node={node: tuple(found) for node, found in by_node.items()},
        groups=tuple(groups),
        notes=tuple(notes),
    )


def _domains(hosts: Iterable[str], nodes: frozenset[str]) -> Mapping[str, str]:
    """A host that one log calls by its short name and another with its domain is one node: the name it goes by.

    Two hosts of one short name in two domains stay apart, and addresses have no short name.
    """
    whole: dict[str, list[str]] = defaultdict(list)
    seen = dict.fromkeys(hosts)
    for host in seen:
        short, dot, _ = host.partition(".")
        if dot and short in seen and not short.isdigit():
            whole[short].append(host)
    one = {short: long[0] for short, long in whole.items() if len(long) == 1}
    # A node of the target keeps its name; of two that are both nodes nothing is known to be the same.
    same = {
        (short if long in nodes else long): (long if long in nodes else short) for short, long in one.items()
    }
    return {other: name for other, name in same.items() if other not in nodes}


def _renamed(run: Run, names: Mapping[str, str]) -> Run:
    if not names or not any(host in names for host in run.hosts):
        return run
    return replace(run, hosts=tuple(dict.fromkeys(names.get(host, host) for host in run.hosts)))


def _checked(run: Run, ceiling: Ceiling) -> Run:
    """A value the wire cannot carry makes the whole run implausible: what else it says is no better."""
    if run.state is not RunState.OK or run.metric is not Metric.BUSBW:
        return run
    most = ceiling(run)
    best = max(run.points.values(), default=0.0)
    if most is None or best <= most:
        return run
    return replace(
        run,
        state=RunState.IMPLAUSIBLE,
        why=f"{best:.0f} GB/s is more than the {most:.0f} GB/s that is possible here",
    )


def _sorted_out(runs: Sequence[Run]) -> tuple[list[Run], list[Run], list[Run]]:
    pairs, alone, groups = [], [], []
    for run in runs:
        if len(run.hosts) == 2:
            pairs.append(run)
        elif len(run.hosts) == 1:
            alone.append(run)
        elif run.hosts:
            groups.append(run)
    return pairs, alone, groups


def _comparable(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """The runs of the commonest unit and collective. One that does not say what it was belongs to them, too."""
    metrics = Counter(run.metric for run in runs if run.points)
    if not metrics:
        return runs, []
    metric = max(metrics, key=lambda one: (metrics[one], one.value))
    said = Counter(run.collective for run in runs if run.points and run.metric is metric and run.collective)
    collective = max(said, key=lambda one: (said[one], one), default=None)
    kept: list[Run] = []
    left: list[Run] = []
    for run in runs:
        fits = not run.points or (run.metric is metric and run.collective in (collective, None))
        (kept if fits else left).append(run)
    others = Counter(f"{run.collective or run.tool} ({run.metric.value})" for run in left)
    notes = [f"{many} runs of {kind} are left out: they do not compare" for kind, many in others.items()]
    return kept, notes


def _size(runs: Sequence[Run], share: float) -> int | None:
    """The largest size that at least `share` of the complete runs have; where there is none, the one most of them have."""
    complete = [run for run in runs if run.state is RunState.OK and run.points]
    counts: Counter[int] = Counter()
    for run in complete:
        counts.update(run.points.keys())
    if not counts:
        return None
    common = [size for size, many in counts.items() if many >= share * len(complete)]
    return max(common) if common else max(counts, key=lambda size: (counts[size], size))


def _best(runs: Sequence[Run], size: int | None, metric: Metric) -> _Best:
    pick = min if metric.lower_is_better else max
    # A size that a file does not give is kept as 0 bytes: still one and the same for all its runs.
    done = [run for run in runs if run.state is RunState.OK]
    values = [] if size is None else [run.points[size] for run in done if size in run.points]
    if values:
        return _Best(pick(values), RunState.OK)
    states = {run.state for run in runs}
    return _Best(float("nan"), next((bad for bad in _BAD_FIRST if bad in states), RunState.TRUNCATED))
