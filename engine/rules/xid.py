"""What the driver's Xid lines ask for, by NVIDIA's catalogue, by recurrence on the node, and by the driver's own word (Xid 154).

Every Xid is one finding with its causes and consequences folded in: what a line names as its cause, Xid 45 of the programs
that were thrown off, and Xid 154's recovery action. Lines before the window are context: they make a recurrence, no accusation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from straggler.engine import kernel_lines
from straggler.engine.collectors import identity, kernel_log
from straggler.engine.collectors.kernel_log import KernelLog
from straggler.engine.kernel_lines import XidEvent
from straggler.engine.knowledge import FindingKind, Knowledge
from straggler.engine.model import Level, Verdict
from straggler.engine.rules import log_time
from straggler.engine.rules.base import NodeView, Rule

RECOVERY, SYMPATHETIC = 154, 45
"""Two codes that speak of others: one names the action for the GPU, the other follows whatever ended its program."""

OWN = tuple(f"xid.{code}" for code in (45, 48, 63, 64, 74, 79, 94, 95, 119, 120, *range(144, 151), 154))
"""Codes with an entry of their own in findings.toml; every other one has that of its action."""

BY_ACTION = tuple(
    f"xid:{action}"
    for action in (
        *(
            "NONE",
            "IGNORE",
            "RESTART_APP",
            "RESET_GPU",
            "DRAIN_P2P",
            "DRAIN_AND_RESET",
            "RESTART_BM",
            "RESTART_VM",
        ),
        *("WORKFLOW_XID_45", "WORKFLOW_XID_48", "WORKFLOW_NVLINK", "WORKFLOW_NVLINK5", "XID_154"),
        *("CHECK_MECHANICALS", "CONTACT_SUPPORT", "UPDATE_SWFW", "CHECK_UVM", "UNUSED", "UNLISTED"),
    )
)
"""The entries an `xid.N` may fall back to (knowledge.finding_kind)."""


@dataclass(frozen=True, slots=True)
class Group:
    """All lines of one Xid in the window on one node.

    `before`: on how many occasions it came as far back as a recurrence counts. `follows`: Xid 45 lines of the same GPUs,
    `caused`: lines that name this Xid as their cause, `recovery`: what Xid 154 asks for on the same GPUs.
    """

    xid: int
    events: tuple[XidEvent, ...]
    before: int
    follows: tuple[XidEvent, ...] = ()
    caused: tuple[XidEvent, ...] = ()
    recovery: str | None = None


def judge(view: NodeView) -> Iterable[Verdict]:
    log = view.read(kernel_log.COLLECTOR)
    events = list(kernel_lines.xids(log.lines))
    inside = [event for event in events if log_time.inside(view, log, event.line)]
    outside = [event for event in events if not log_time.inside(view, log, event.line)]
    groups = list(_groups(view, log, inside, outside))
    for group in groups:
        yield _verdict(view, log, group)
    yield from _words(view, log, inside)
    if outside:
        yield _context(view, log, outside)
    if not groups:
        yield from _quiet(view, log)


def _groups(
    view: NodeView, log: KernelLog, inside: Sequence[XidEvent], outside: Sequence[XidEvent]
) -> Iterator[Group]:
    by_code: dict[int, list[XidEvent]] = defaultdict(list)
    caused: dict[int, list[XidEvent]] = defaultdict(list)
    for event in inside:
        by_code[event.xid].append(event)
        if event.cause is not None:
            caused[event.cause].append(event)
    primaries = (by_code.keys() | caused.keys()) - {SYMPATHETIC, RECOVERY}
    left = [event for event in by_code[SYMPATHETIC] if event.cause is None]
    spoken = list(by_code[RECOVERY])
    for code in sorted(primaries):
        at = {event.pci for event in (*by_code[code], *caused[code])}
        follows = [event for event in left if event.pci in at]
        words = [event for event in spoken if event.pci in at]
        left = [event for event in left if event not in follows]
        spoken = [event for event in spoken if event not in words] if not _application(view, code) else spoken
        yield Group(
            code,
            tuple(by_code[code]),
            _occasions(view, log, [*inside, *outside], code),
            tuple(follows),
            tuple(caused[code]),
            words[-1].recovery if words and not _application(view, code) else None,
        )
    if left:
        yield Group(SYMPATHETIC, tuple(left), 1)
    if spoken:
        yield Group(RECOVERY, tuple(spoken), 1, recovery=spoken[-1].recovery)


def _application(view: NodeView, code: int) -> bool:
    xid = view.known.xids.get(code)
    return xid is not None and xid.application


def _occasions(view: NodeView, log: KernelLog, events: Iterable[XidEvent], code: int) -> int:
    """How often the Xid came on this node: lines close together are one occasion, however many channels report it."""
    burst, reach = view.known.number("xid.burst"), view.known.number("xid.recurrence-reach")
    ages = sorted(
        seconds
        for event in events
        if event.xid == code
        and (seconds := log_time.age(view, log, event.line)) is not None
        and seconds <= reach
    )
    return 1 + sum(later - sooner > burst for sooner, later in pairwise(ages))


def _verdict(view: NodeView, log: KernelLog, group: Group) -> Verdict:
    known, code = view.known, group.xid
    xid, name = known.xids.get(code), f"xid.{code}"
    kind = _kind(view, group)
    again = group.before >= known.number("xid.recurrence") and (
        kind.level is Level.FAIL or _restart(known, kind)
    )
    level = kind.level or Level.WARN
    if again and level is Level.INFO:
        level = Level.WARN
    meaning = xid.meaning if xid else "This code is not in the catalogue."
    title = f"Xid {code}: {meaning[0].lower() + meaning[1:].rstrip('.')}"
    if xid and xid.theirs:
        title += " (judged by your own xid.toml)"
    if again:
        title += ", and not for the first time on the node"
    lines = [*group.events, *group.caused, *group.follows]
    return Verdict(
        name,
        level,
        title,
        _detail(view, log, group, kind),
        evidence=tuple(dict.fromkeys(event.line.text for event in lines))[:4],
        confidence=0.95 if group.events and xid else 0.7,
        priority=kind.priority,
        values={"pci": f"{lines[0].pci}.0", "xid": str(code)},
        also=_also(group, xid.also if xid else ()),
    )


def _kind(view: NodeView, group: Group) -> FindingKind:
    """How bad: the driver's own word first (Xid 154), then the generation's action, then the code's."""
    known = view.known
    xid = known.xids.get(group.xid)
    if group.recovery is not None and not (xid and xid.theirs):
        word = f"xid.recovery.{group.recovery.lower().replace(' ', '-')}"
        if word in known.thresholds:
            return known.findings[f"xid:{known.word(word)}"]
    generation = view.instance.generation if view.instance else ""
    if xid and generation in xid.by_generation:
        return known.findings[f"xid:{xid.by_generation[generation]}"]
    kind = known.finding_kind(f"xid.{group.xid}")
    if kind.level is None and xid:
        kind = known.findings[f"xid:{xid.action}"]
    return kind


def _restart(known: Knowledge, kind: FindingKind) -> bool:
    return (
        kind is known.findings["xid:RESTART_APP"] or kind.section == known.findings["xid:RESTART_APP"].section
    )


def _detail(view: NodeView, log: KernelLog, group: Group, kind: FindingKind) -> str:
    lines = group.events or group.caused
    count = Counter(event.pci for event in lines)
    devices = ", ".join(f"{pci} ({many} lines)" if many > 1 else pci for pci, many in count.items())
    ages = [seconds for event in lines if (seconds := log_time.age(view, log, event.line)) is not None]
    parts = [f"on {devices}"]
    if ages:
        parts.append(f"last {log_time.gone(min(ages))} ago")
    else:
        parts.append("time not known")
    if group.before > 1:
        parts.append(f"{group.before} times in what the log holds")
    if not group.events:
        parts.append(
            f"only named as a cause by Xid {', '.join(sorted({str(event.xid) for event in group.caused}))}"
        )
    if group.recovery:
        parts.append(f"the driver asks for: {group.recovery}")
    return "; ".join(parts)


def _also(group: Group, known: Sequence[str]) -> tuple[str, ...]:
    names = [*known, *(f"xid.{event.xid}" for event in (*group.follows, *group.caused))]
    names += [f"xid.caused-by.{group.xid}"] if group.caused else []
    names += [f"xid.{RECOVERY}"] if group.recovery and group.xid != RECOVERY else []
    return tuple(dict.fromkeys(names))


def _words(view: NodeView, log: KernelLog, inside: Sequence[XidEvent]) -> Iterator[Verdict]:
    """What the driver says in words alone: a GPU off the bus, or a silent GSP, for which no Xid was printed."""
    lines = [line for line in log.lines if log_time.inside(view, log, line)]
    codes = {event.xid for event in inside} | {event.cause for event in inside}
    fell = list(kernel_lines.fallen(lines))
    if fell and 79 not in codes:
        named = [one.pci for one in fell if one.pci]
        yield Verdict(
            "gpu.fallen-off-bus",
            Level.FAIL,
            "the driver says that a GPU has fallen off the bus",
            f"on {', '.join(dict.fromkeys(named))}" if named else "",
            evidence=tuple(one.line.text for one in fell[:3]),
            values={"pci": f"{named[0]}.0"} if named else {},
            also=("gpu.probe-failed",) if any(kernel_lines.probe_failures(lines)) else (),
        )
    silent = list(kernel_lines.gsp_timeouts(lines))
    if silent and not codes & {119, 120}:
        yield Verdict(
            "gsp.timeout",
            Level.FAIL,
            "the driver says that a GPU's system processor does not answer",
            evidence=tuple(line.text for line in silent[:3]),
        )


def _context(view: NodeView, log: KernelLog, outside: Sequence[XidEvent]) -> Verdict:
    """Older lines, counted and dated: a reader's context, not this incident."""
    count = Counter(event.xid for event in outside)
    ages = [seconds for event in outside if (seconds := log_time.age(view, log, event.line)) is not None]
    codes = ", ".join(
        f"Xid {code}" + (f" {many} lines" if many > 1 else "") for code, many in sorted(count.items())
    )
    newest = f"; the newest {log_time.gone(abs(min(ages)))} away from it" if ages else ""
    return Verdict(
        "xid.outside",
        Level.INFO,
        "Xid lines outside the window",
        codes + newest,
        evidence=tuple(event.line.text for event in outside[-2:]),
    )


def _quiet(view: NodeView, log: KernelLog) -> Iterator[Verdict]:
    """No Xid in the window: fine only where the log reaches back to its beginning."""
    reach = log_time.ours(view, log, log.since)
    if reach > view.window.since:
        late = log_time.gone(reach - view.window.since)
        detail = f"the first {late} of the window are missing: the node booted in it, or the log no longer holds them"
        yield Verdict(
            "xid.none", Level.UNKNOWN, "no Xid line, but the kernel log does not cover the window", detail
        )
    else:
        yield Verdict("xid.none", Level.PASS, "no Xid line in the window")


RULE = Rule(
    id="xid",
    reads=(kernel_log.COLLECTOR,),
    uses=(identity.COLLECTOR,),
    judge=judge,
    finds=("xid.none", "xid.outside", "gpu.fallen-off-bus", "gsp.timeout", *OWN, *BY_ACTION),
    unknown="xid.none",
    spec=("G7", "node.gpu-xid"),
)
