"""The matrix as plain text: who is to blame and how sure, what is doubtful, what was not covered, then the digits."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from straggler.engine.bandwidth import telling
from straggler.engine.bandwidth.model import Blame, RunState, Standing
from straggler.engine.bandwidth.picture import SELF, Picture
from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.export.spelling import to_ascii
from straggler.engine.nodesets import fold
from straggler.engine.safetext import safe

WIDTH = 100
WIDEST = 120
"""Columns from which digits are no longer laid out whole: the rows that matter stand for them."""

WORST = 12
"""Rows that stand for a matrix that is too wide, and lines of one list; JSON has them all."""

FEW = 4
"""Pairs that are named where a list is only for information."""


def render(view: MatrixView, *, ascii_only: bool = False) -> str:
    """The whole report; nothing in it can act on a terminal."""
    from straggler.engine.bandwidth.picture import arranged

    picture = arranged(view)
    lines = [" · ".join(telling.title(view)), *_context(view), ""]
    for part in (
        _verdicts(view),
        _doubts(view),
        _uncovered(view),
        _groups(view),
        _information(view),
        _nodes(view),
        _cells(picture),
    ):
        found = list(part)
        lines += [*found, ""] if found else []
    text = "\n".join(line.rstrip() for line in lines[:-1]) + "\n"
    return to_ascii(text) if ascii_only else text


def _context(view: MatrixView) -> Iterator[str]:
    matrix = view.matrix
    parts = [telling.many(len(matrix.nodes), "node"), telling.many(int(matrix.runs.sum()), "pair run")]
    if matrix.collective:
        parts.append(safe(matrix.collective, limit=40))
    if int(matrix.alone_runs.sum()):
        parts.append(
            f"{telling.many(int((matrix.alone_runs > 0).sum()), 'node')} also run alone, at {telling.size(matrix.alone_size)}"
        )
    if matrix.groups:
        parts.append(telling.many(len(matrix.groups), "run over more than two nodes"))
    yield " · ".join(parts)
    if view.expected.source:
        yield from _wrapped("expectation from ", safe(view.expected.source, limit=600))


def _verdicts(view: MatrixView) -> Iterator[str]:
    for blame in view.attribution.verdicts:
        yield from _verdict(blame)
    if not view.attribution.verdicts:
        yield f"No verdict: {telling.nobody(view.attribution, view.matrix)}."


def _verdict(blame: Blame) -> Iterator[str]:
    yield from _wrapped("VERDICT  ", telling.verdict(blame))
    yield from _wrapped("  Why: ", safe(blame.why))
    for line in blame.evidence:
        yield f"  | {safe(line)}"
    if blame.next_pair is not None:
        yield from _wrapped("  To confirm it: ", f"run {telling.next_pair(blame.next_pair)}")


def _doubts(view: MatrixView) -> Iterator[str]:
    found = view.attribution.doubts
    if found:
        yield "In doubt (low or without a value, but nobody is accused by it):"
    for one in found[:WORST]:
        yield from _wrapped("  ", telling.doubt(one))
    if len(found) > WORST:
        yield f"  and {len(found) - WORST:,} more; --format json has them all"


def _uncovered(view: MatrixView) -> Iterator[str]:
    gaps = list(telling.uncovered(view.matrix))
    if gaps:
        yield "Not covered (nothing is known of these; it is not the same as fine):"
        yield from (f"  {gap}" for gap in gaps)
    notes = list(dict.fromkeys((*view.matrix.notes, *view.attribution.notes)))
    if notes:
        yield "Left out, and why:"
        for note in notes[:WORST]:
            yield from _wrapped("  ", safe(note))
        if len(notes) > WORST:
            yield f"  and {len(notes) - WORST:,} more; --format json has them all"


def _groups(view: MatrixView) -> Iterator[str]:
    runs = view.matrix.groups
    if runs:
        yield "Runs over more than two nodes (they say how a job would do, not who is to blame):"
    for one in runs[:WORST]:
        who = f"{telling.many(len(one.hosts), 'node')}, {safe(fold(one.hosts), limit=200)}"
        size = max(one.points, default=None)
        if size is None or one.state is not RunState.OK:
            said = telling.STATE_WORDS[one.state] if one.state is not RunState.OK else "no value"
            said += f": {safe(one.why, limit=200)}" if one.why else ""
        else:
            unit = one.metric.value.rpartition(" ")[2]
            said = f"{telling.number(one.points[size])} {unit} at {telling.size(size)}"
        yield from _wrapped("  ", f"{who}: {said} ({safe(one.source, limit=100)})")
    if len(runs) > WORST:
        yield f"  and {len(runs) - WORST:,} more; --format json has them all"


def _information(view: MatrixView) -> Iterator[str]:
    """The rule of others, beside ours."""
    found = view.attribution
    if found.mean is None:
        return
    worse = "above" if view.matrix.metric.lower_is_better else "below"
    pairs, share = telling.many(len(found.below_mean), "pair"), 100 * view.below_mean
    said = f"{pairs} more than {share:g} % {worse} the mean of {telling.number(found.mean)}"
    yield from _wrapped(
        "For information: ",
        f"{said}. No verdict rests on that: one slow node drags the mean and all its partners with it, "
        "and in a fleet that is slow as a whole no pair stands out.",
    )
    if found.below_mean:
        shown = ", ".join(telling.pair(*one) for one in found.below_mean[:FEW])
        more = len(found.below_mean) - FEW
        yield from _wrapped("  ", shown + (f" and {more:,} more" if more > 0 else ""))


def _nodes(view: MatrixView) -> Iterator[str]:
    standings = view.attribution.standings
    if view.matrix.nodes:
        yield "Nodes:"
    for standing in (Standing.CULPRIT, Standing.SUSPECT, Standing.UNDECIDED, Standing.CLEARED):
        mine = [name for name in view.matrix.nodes if standings.get(name, Standing.UNDECIDED) is standing]
        if mine:
            yield from _wrapped(f"  {standing.value:<9} {len(mine):>5}  ", safe(fold(mine)))


def _cells(picture: Picture) -> Iterator[str]:
    if not len(picture.matrix):
        return
    label = max(len(picture.label(at)) for at in range(len(picture)))
    bars = 2 * max(0, len(picture.sections) - 1)
    step = 2 if label + 2 + 2 * len(picture) + bars <= WIDEST else 1
    whole = label + 2 + step * len(picture) + bars <= WIDEST
    legend = f"9 = at {picture.norm_name}, each step a tenth slower, 0 = next to none; x failed, ! above what the wire carries, ~ cut off,"
    yield from _wrapped("", f"{legend} blank = not run, {SELF} = the node itself")
    if whole:
        yield from _grid(picture, range(len(picture)), label, step)
        return
    worst = worst_rows(picture)
    yield f"The matrix is too wide for text ({len(picture):,} nodes): how many pairs of a node stand at each digit, worst first"
    for place in worst:
        yield f"{picture.label(place):>{label}}  {_tally(picture, place)}"
    if len(worst) < len(picture):
        yield f"and {len(picture) - len(worst):,} more; --format svg draws all of them"


def _grid(picture: Picture, places: Iterable[int], label: int, step: int) -> Iterator[str]:
    bars = {one.start: ("║" if one.wider else "│").ljust(step) for one in picture.sections[1:]}
    if picture.sections:
        yield f"{'':>{label}}  {_names(picture, step)}".rstrip()
    for place in places:
        if place in bars:
            yield f"{'':>{label}}  {_rule(picture, step, bars[place][0] == '║')}"
        signs = picture.row(place)
        cells = "".join(bars.get(at, "") + sign.ljust(step) for at, sign in enumerate(signs))
        yield f"{picture.label(place):>{label}}  {cells}"


def _rule(picture: Picture, step: int, wider: bool) -> str:
    line, crossings = ("═", "╪╬") if wider else ("─", "┼╫")
    parts = [
        (crossings[one.wider].ljust(step, line) if one.start else "") + line * (step * (one.stop - one.start))
        for one in picture.sections
    ]
    return "".join(parts)


def _names(picture: Picture, step: int) -> str:
    """The sections' names over their columns, each cut to its room."""
    out = ""
    for one in picture.sections:
        room = step * (one.stop - one.start)
        shown = one.named(room - 1)
        out += (("║" if one.wider else "│").ljust(step) if one.start else "") + shown.ljust(room)
    return out


def worst_rows(picture: Picture) -> list[int]:
    """Accused and suspected nodes first, then the lowest scores."""
    found = picture.view.attribution
    rank = {Standing.CULPRIT: 0, Standing.SUSPECT: 1}

    def key(place: int) -> tuple[int, float, int]:
        node = picture.node(place)
        score = found.scores.get(node)
        standing = found.standings.get(node, Standing.UNDECIDED)
        return rank.get(standing, 2), 2.0 if score is None else score, place

    return sorted(range(len(picture)), key=key)[:WORST]


def _tally(picture: Picture, place: int) -> str:
    signs = picture.row(place)
    own = signs[place]
    counts = [(sign, signs.count(sign) - (sign == own)) for sign in "x!~?0123456789"]
    return "  ".join(f"{sign}: {count}" for sign, count in counts if count)


def _wrapped(lead: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * min(len(lead), 9),
        break_on_hyphens=False,
        break_long_words="://" not in text,
    ) or [lead]
