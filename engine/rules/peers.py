"""Every fact of a node against its peers: the one that differs is shown, folded; nobody is accused where there is no majority.

A fleet rule: it looks over the nodes of one group, so it makes findings itself instead of verdicts per node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from straggler.engine.collectors import COLLECTORS, identity
from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Evidence, Finding, Level, Node, Unread
from straggler.engine.nodesets import fold

ID = "peers"
FINDS = ("peers.differs", "peers.split", "peers.same", "peers.same-machine", "peers.same-hostname")

Values = dict[tuple[str, str], dict[str, str]]
"""(collector, field) -> node -> value, of the nodes that could be read."""


@dataclass(frozen=True, slots=True)
class _Odd:
    """One field in which some nodes differ from the majority."""

    collector: str
    name: str
    common: str
    same: tuple[str, ...]
    others: tuple[tuple[str, tuple[str, ...]], ...]
    unread: tuple[str, ...]


def peer_findings(
    nodes: Sequence[Node],
    facts: dict[str, dict[str, object]],
    known: Knowledge,
    breathe: Callable[[], None] = lambda: None,
) -> list[Finding]:
    """Findings over every group of nodes; `facts` is node -> collector -> facts or Unread. `breathe`: see judge()."""
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if any(not isinstance(one, Unread) for one in facts.get(node.id, {}).values()):
            groups[node.group].append(node)
    kinds = [kind for group in groups.values() for kind in _by_type(group, facts)]
    found = [one for kind in kinds for one in _group(kind, facts, known, breathe)]
    return found + list(_doubles(nodes, facts, known))


def _by_type(nodes: list[Node], facts: dict[str, dict[str, object]]) -> list[list[Node]]:
    """The nodes of a group by instance type. Where only one type was read, a node that did not say is taken for its peer."""
    types: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        types[_type(node, facts)].append(node)
    return [nodes] if len(types.keys() - {""}) <= 1 else list(types.values())


def _type(node: Node, facts: dict[str, dict[str, object]]) -> str:
    read = facts.get(node.id, {}).get(identity.COLLECTOR.id)
    return node.instance_type or (read.instance_type if isinstance(read, identity.Identity) else None) or ""


def _group(
    nodes: list[Node], facts: dict[str, dict[str, object]], known: Knowledge, breathe: Callable[[], None]
) -> Iterator[Finding]:
    names = [node.id for node in nodes]
    values = _values(names, facts)
    odd: dict[tuple[str, ...], list[_Odd]] = defaultdict(list)
    split: list[_Odd] = []
    for (collector, name), by_node in values.items():
        breathe()
        counts = Counter(by_node.values())
        if len(counts) < 2:
            continue
        one = _odd(collector, name, counts, by_node, names)
        if counts[one.common] * 2 > len(by_node) and len(by_node) >= known.number("peers.least"):
            who = {node for _, others in one.others for node in others}
            odd[tuple(node for node in names if node in who)].append(one)
        else:
            split.append(one)
    for subjects, fields in odd.items():
        yield _differs(subjects, fields, len(names), known)
    for one in split:
        yield _split(one, known)
    if not odd and not split:
        yield from _same(names, values, known)


def _same(names: Sequence[str], values: Values, known: Knowledge) -> Iterator[Finding]:
    """Good news of the nodes that could be compared in everything their peers showed; the others are named with what is missing."""
    shared = {key: by_node for key, by_node in values.items() if len(by_node) > 1}
    if not shared:
        return
    holes: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node in names:
        holes[tuple(name for (_, name), by_node in shared.items() if node not in by_node)].append(node)
    whole = holes.pop((), [])
    details = [(fold(whole), f"{len(shared)} facts are the same")] if whole else []
    details += [(fold(nodes), f"not compared: {_some(missing)}") for missing, nodes in holes.items()]
    if len(whole) > 1:
        level, title, subjects = Level.PASS, "the nodes agree in every fact compared", whole
    else:
        level, title, subjects = (
            Level.INFO,
            "what could be compared is the same; much was not read",
            list(names),
        )
    yield _finding("peers.same", level, title, tuple(subjects), tuple(details), (), 0.95, known)


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")


def _values(names: Sequence[str], facts: dict[str, dict[str, object]]) -> Values:
    values: Values = defaultdict(dict)
    for collector in COLLECTORS:
        if collector.fields is None:
            continue
        for node in names:
            read = facts.get(node, {}).get(collector.id)
            if read is None or isinstance(read, Unread):
                continue
            for name, value in collector.fields(read).items():
                if value is not None:
                    values[collector.id, name][node] = value
    return values


def _odd(
    collector: str, name: str, counts: Counter[str], by_node: dict[str, str], names: Sequence[str]
) -> _Odd:
    common = max(counts, key=lambda value: (counts[value], value))
    others: dict[str, list[str]] = defaultdict(list)
    for node, value in by_node.items():
        if value != common:
            others[value].append(node)
    return _Odd(
        collector,
        name,
        common,
        tuple(node for node, value in by_node.items() if value == common),
        tuple((value, tuple(nodes)) for value, nodes in others.items()),
        tuple(node for node in names if node not in by_node),
    )


def _differs(who: tuple[str, ...], fields: list[_Odd], total: int, known: Knowledge) -> Finding:
    told = set(known.word("peers.expected").split(","))
    level = Level.INFO if all(one.name in told for one in fields) else Level.WARN
    listed = _some(list(dict.fromkeys(one.name for one in fields)))
    plural = "a node differs" if len(who) == 1 else "nodes differ"
    share = len(who) / total
    # Two collectors may read one fact; told alike it is told once.
    details = dict.fromkeys(
        (fold(nodes), f"{one.name} {value}; {_rest(one)}") for one in fields for value, nodes in one.others
    )
    evidence = tuple(
        Evidence(f"{nodes[0]}: {one.collector}", f"{one.name}: {value}")
        for one in fields
        for value, nodes in one.others
    )
    title = f"{plural} from {'its' if len(who) == 1 else 'their'} peers in {listed}"
    return _finding(
        "peers.differs", level, title, who, tuple(details), evidence, 0.95 if share <= 0.25 else 0.7, known
    )


def _rest(one: _Odd) -> str:
    many = len(one.same)
    unread = f"; not compared: {fold(one.unread)}" if one.unread else ""
    return f"{many} other{'s' if many != 1 else ''} {one.common}{unread}"


def _split(one: _Odd, known: Knowledge) -> Finding:
    camps = [(one.common, one.same), *one.others]
    details = tuple((fold(nodes), f"{one.name} {value}") for value, nodes in camps)
    subjects = tuple(node for _, nodes in camps for node in nodes)
    evidence = tuple(
        Evidence(f"{nodes[0]}: {one.collector}", f"{one.name}: {value}") for value, nodes in camps
    )
    title = f"the nodes show {len(camps)} values of {one.name}, none of them a clear majority"
    return _finding("peers.split", Level.INFO, title, subjects, details, evidence, 0.9, known)


def _doubles(
    nodes: Sequence[Node], facts: dict[str, dict[str, object]], known: Knowledge
) -> Iterator[Finding]:
    """Names that turn out to be one machine (one boot id), and machines that share a host name."""
    boots: dict[tuple[str, str], list[str]] = defaultdict(list)
    hosts: dict[str, dict[str, str]] = defaultdict(dict)
    for node in nodes:
        read = facts.get(node.id, {}).get(identity.COLLECTOR.id)
        # Without a boot id it is not known whether two names are one machine or two: neither is claimed.
        if isinstance(read, identity.Identity) and read.boot_id and read.hostname:
            boots[read.boot_id, read.hostname].append(node.id)
            hosts[read.hostname].setdefault(read.boot_id, node.id)
    for (boot, host), names in boots.items():
        if len(names) > 1:
            evidence = tuple(
                Evidence(f"{name}: identity", f"boot id {boot}, host name {host}") for name in names[:2]
            )
            yield _finding(
                "peers.same-machine",
                Level.WARN,
                f"{len(names)} names lead to one machine",
                tuple(names),
                ((fold(names), host),),
                evidence,
                0.95,
                known,
            )
    for host, by_boot in hosts.items():
        if len(by_boot) > 1:
            names = list(by_boot.values())
            evidence = tuple(Evidence(f"{name}: identity", f"hostname {host}") for name in names[:2])
            yield _finding(
                "peers.same-hostname",
                Level.WARN,
                f"{len(names)} machines have one host name",
                tuple(names),
                ((fold(names), host),),
                evidence,
                0.9,
                known,
            )


def _finding(
    name: str,
    level: Level,
    title: str,
    subjects: tuple[str, ...],
    details: tuple[tuple[str, str], ...],
    evidence: tuple[Evidence, ...],
    confidence: float,
    known: Knowledge,
) -> Finding:
    kind = known.findings[name]
    return Finding(
        id=name,
        level=level,
        priority=kind.priority if level.is_fault else None,
        title=title,
        subjects=subjects,
        details=details,
        evidence=evidence,
        confidence=confidence,
        why=kind.why,
        false_alarm=kind.false_alarm,
        next_step=kind.next_step,
        reference=f"remedies/{kind.section}",
        route=kind.route,
        rule=ID,
    )
