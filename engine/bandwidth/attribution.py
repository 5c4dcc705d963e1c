"""Who is to blame: nodes, links, boundaries, the whole cluster, several at once, or nobody; each with how sure and why.

The order: what ended without a value; what caps many pairs (explain.py); single pairs (links.py); nodes slow by themselves; the
whole fleet against the expectation of its type. Whatever is low without proof is a doubt: to be run again, alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from straggler.engine.bandwidth import places, words
from straggler.engine.bandwidth.boundaries import boundaries
from straggler.engine.bandwidth.explain import ENOUGH, Cause, Groups, by_node, capped, cleared, explain
from straggler.engine.bandwidth.failures import Failures, attribute_failures
from straggler.engine.bandwidth.limits import Limits, shipped
from straggler.engine.bandwidth.links import LowPair, low_pairs
from straggler.engine.bandwidth.matrix import Matrix
from straggler.engine.bandwidth.model import Attribution, Blame, Doubt, Kind, Standing
from straggler.engine.bandwidth.noise import Floats, Ints, Noise, envelope, lower_side, measure, upper_clique
from straggler.engine.bandwidth.partners import Partners
from straggler.engine.model import Placement

TRIALS = 16
"""Suspects that are looked at in a noise measured without them."""

LEAST_TO_COMPARE = 3
"""Pairs of which one can be told from the others."""

LEFT = 0.1
"""Share of low pairs that may be left over where boundaries are held to explain why most are low."""

NOBODY: Mapping[str, Placement] = {}


def attribute(
    matrix: Matrix,
    placement: Mapping[str, Placement] = NOBODY,
    expected: tuple[float, float] | None = None,
    limits: Limits | None = None,
) -> Attribution:
    """Judge one matrix. `expected`: low and high of what the type reaches at the matrix's size, in its unit; None: not known."""
    return _Judgement(matrix, placement, expected, limits or shipped()).spoken()


class _Judgement:
    """One matrix on its way to verdicts; every step adds to what the next ones need."""

    def __init__(
        self,
        matrix: Matrix,
        placement: Mapping[str, Placement],
        expected: tuple[float, float] | None,
        limits: Limits,
    ) -> None:
        self.matrix, self.limits, self.expected = matrix, limits, expected
        self.count = len(matrix.nodes)
        self.sign = -1.0 if matrix.metric.lower_is_better else 1.0
        every = np.stack([matrix.a, matrix.b], axis=1).astype(np.int64)
        self.has = np.isfinite(matrix.value) & (matrix.value > 0)
        self.pairs: Ints = np.flatnonzero(self.has)
        self.ends: Ints = every[self.has]
        self.log: Floats = self.sign * np.log(matrix.value[self.has])
        places = [placement.get(node, Placement()) for node in matrix.nodes]
        self.all_groups = Groups(by_node(every, self.count), boundaries(places, every))
        self.failures = attribute_failures(~self.has, every, self.all_groups)
        self.groups = (
            self.all_groups
            if self.has.all()
            else Groups(by_node(self.ends, self.count), boundaries(places, self.ends))
        )
        self.blames: list[Blame] = []
        self.doubts: list[Doubt] = []
        self.notes: list[str] = list(matrix.notes)
        self.standing = dict.fromkeys(matrix.nodes, Standing.UNDECIDED)
        self.usual: float | None = None

    def spoken(self) -> Attribution:
        matrix = self.matrix
        median = float(np.median(matrix.value[self.has])) if len(self.pairs) else None
        mean = float(np.mean(matrix.value[self.has])) if len(self.pairs) else None
        scores: dict[str, float | None] = dict.fromkeys(matrix.nodes)
        if len(self.pairs):
            scores = self._relative()
        self._alone()
        self._failed(self.failures)
        if not len(self.pairs) and len(matrix):
            self.notes.append(f"none of the {len(matrix)} pairs gave a value: nothing can be compared")
        order = {Kind.CLUSTER: 0, Kind.BOUNDARY: 1, Kind.NODE: 2, Kind.LINK: 3}
        self.blames.sort(key=lambda one: (order[one.kind], one.effect if one.effect is not None else -2.0))
        below = self._below_mean(mean)
        open_ = [one for one in self.standing.values() if one in (Standing.SUSPECT, Standing.UNDECIDED)]
        return Attribution(
            verdicts=tuple(self.blames),
            doubts=tuple(self.doubts),
            median=median,
            mean=mean,
            scores=scores,
            standings=dict(self.standing),
            below_mean=below,
            notes=tuple(self.notes),
            settled=bool(len(matrix)) and not open_ and not self.doubts,
            usual=self.usual,
        )

    # What caps many pairs.

    def _relative(self) -> dict[str, float | None]:
        limits = self.limits
        best = envelope(self.log, self.ends, self.count)
        noise = measure(self.log, best, limits.dip, limits.spread)
        step = -float(np.log1p(-limits.effect))
        # Where about half is slow, level and spread are those of a mixture: its lower side is not.
        middle, wide = lower_side(self.log, limits.spread)
        slow, wide = min(middle, noise.level), min(wide, noise.spread)
        upper = upper_clique(self.log, self.ends, self.count, slow, max(step, 3 * wide))
        if upper is not None:
            level, inside = upper
            noise = Noise(level, self._spread_at(level, noise.spread), limits.dip)
            few_good = 2 * int(inside.sum()) < int(np.isfinite(best).sum())
            if few_good and not self._is_a_boundary(noise):
                return self._mostly_slow(noise, inside, best)
        noise, causes, suspects, cap = self._explained(noise)
        for _ in range(TRIALS):
            trial = self._without_suspect(noise, causes, suspects)
            if trial is None:
                break
            noise, causes, suspects, cap = trial
        y = self.log - noise.level
        causes = self._node_by_node(causes, y)
        self.usual = float(np.exp(self.sign * noise.level))
        self._against_expectation(noise)
        lows = low_pairs(self.matrix, self.pairs.tolist(), y, cap, noise.level, noise, limits)
        self._nodes_and_boundaries(causes, suspects, y, cap, noise)
        self._links(lows, causes)
        top = best - noise.level
        return {
            node: None if np.isnan(top[at]) else float(np.exp(top[at]))
            for at, node in enumerate(self.matrix.nodes)
        }

    def _node_by_node(self, causes: Sequence[Cause], y: Floats) -> list[Cause]:
        """A place that is slow as a whole is said of each of its nodes."""
        found: list[Cause] = []
        for cause in causes:
            if cause.group.place:
                nodes = list(places.members(cause, self.groups, self.ends, y))
                found += nodes
                if nodes:
                    self.notes.append(places.together(cause, len(nodes)))
            else:
                found.append(cause)
        return found

    def _explained(self, noise: Noise) -> tuple[Noise, list[Cause], list[Cause], Floats]:
        """Causes under this noise, and the noise again by what they leave, until the two agree."""
        causes, suspects, cap = explain(self.log - noise.level, self.ends, self.groups, noise, self.limits)
        for _ in range(3):
            again = self._measured_again(cap, noise)
            near = abs(again.level - noise.level) < 1e-4 and abs(again.spread - noise.spread) < 1e-3
            noise = again
            if near:
                break
            causes, suspects, cap = explain(
                self.log - noise.level, self.ends, self.groups, noise, self.limits
            )
        return noise, causes, suspects, cap

    def _is_a_boundary(self, noise: Noise) -> bool:
        """Whether boundaries and a few nodes explain nearly all that is low, so that the good part is one side of a boundary."""
        _, causes, _, cap = self._explained(noise)
        step = float(np.log1p(-self.limits.effect))
        left = np.count_nonzero((cap == 0) & (self.log - noise.level < step))
        nodes = sum(len(one.group.place) or one.group.node >= 0 for one in causes)
        crossed = any(one.group.sides or one.group.labels for one in causes if not one.group.place)
        return bool(crossed and 2 * nodes < self.count and left < LEFT * len(self.log))

    def _without_suspect(
        self, noise: Noise, causes: list[Cause], suspects: list[Cause]
    ) -> tuple[Noise, list[Cause], list[Cause], Floats] | None:
        """In a small fleet one slow node widens the noise it hides in. Measured without the likeliest suspect, is it one?"""
        first = max(suspects, key=lambda one: one.odds, default=None)
        if first is None:
            return None
        cap = capped(len(self.log), [*causes, first])
        tried = self._explained(self._measured_again(cap, noise))
        named = {one.group.key for one in tried[1]}
        old = {one.group.key for one in causes}
        return tried if first.group.key in named and old <= named else None

    def _spread_at(self, level: float, wide: float) -> float:
        near = np.abs(self.log - level)
        near = near[near < max(wide, -float(np.log1p(-self.limits.effect)))]
        return max(self.limits.spread, 1.4826 * float(np.median(near))) if len(near) else wide

    def _measured_again(self, cap: Floats, noise: Noise) -> Noise:
        """Level, spread and share of disturbed runs by the pairs that nothing was found to cap."""
        free = self.log[cap == 0]
        if len(free) < 3:
            return noise
        again = measure(free, np.array([noise.level]), self.limits.dip, self.limits.spread)
        return Noise(again.level, again.spread, self._disturbed(cap, again))

    def _disturbed(self, cap: Floats, noise: Noise) -> float:
        """Share of disturbed runs, by the pairs of nodes that both have a good one: what is low there is no node's fault."""
        good = self.log > noise.level - 2 * noise.spread
        works = np.zeros(self.count, dtype=bool)
        works[self.ends[good].reshape(-1)] = True
        tells = works[self.ends].all(axis=1) & (cap == 0)
        low = int(np.count_nonzero(tells & (self.log < noise.level - max(5 * noise.spread, 0.05))))
        return min((low + 100 * self.limits.dip) / (int(tells.sum()) + 100), 0.1)

    def _nodes_and_boundaries(
        self, causes: Sequence[Cause], suspects: Sequence[Cause], y: Floats, cap: Floats, noise: Noise
    ) -> None:
        matrix = self.matrix
        fine = cleared(y, self.ends, cap, noise, self.limits, self.count)
        # A pair or two are as the others whatever they reach: only an expectation says whether that is well.
        if len(self.pairs) < LEAST_TO_COMPARE and not self._as_expected(noise):
            fine[:] = False
        for at in np.flatnonzero(fine):
            self.standing[matrix.nodes[at]] = Standing.CLEARED
        done = np.bincount(self.ends.reshape(-1), minlength=self.count)
        for at in np.flatnonzero((done >= self.limits.settle) & ~fine):
            # More of the same would not tell either: a fleet this uneven is said to be so by its spread.
            self.standing[matrix.nodes[at]] = Standing.CLEARED
        for cause in causes:
            if cause.group.node >= 0:
                self.standing[matrix.nodes[cause.group.node]] = Standing.CULPRIT
        for cause in suspects:
            if cause.group.node >= 0:
                self.standing[matrix.nodes[cause.group.node]] = Standing.SUSPECT
        partners = Partners(matrix, self.standing)
        for cause in causes:
            blame = words.of_cause(cause, matrix, partners, self.sign)
            self.blames.append(places.doubted(blame, cause.group, self.ends, y, cause.cap, matrix))
            if cause.group.node >= 0 and cause.of < ENOUGH and self.blames[-1].next_pair is not None:
                self.doubts.append(words.of_few_runs(self.blames[-1]))
        for cause in suspects:
            self.doubts.append(words.of_suspect(cause, matrix, partners, self.sign))
        self._untold(y, partners)

    def _untold(self, y: Floats, partners: Partners) -> None:
        """Nodes that were low with everybody, but only with nodes that are slow themselves: one run with a good one tells."""
        step = float(np.log1p(-self.limits.effect))
        told = {one.pair[0] for one in self.doubts}
        for at, node in enumerate(self.matrix.nodes):
            own = self.groups.by_node[at]
            open_ = self.standing[node] is Standing.UNDECIDED and node not in told
            if open_ and len(own) and float(np.max(y[own])) < step:
                partner = partners.for_node(at)
                if partner is not None:
                    self.doubts.append(words.of_untold(at, partner, self.matrix))

    def _mostly_slow(self, noise: Noise, inside: NDArray[np.bool_], best: Floats) -> dict[str, float | None]:
        """The better part is the smaller one: the fleet is slow, and its few good nodes are named."""
        matrix = self.matrix
        self.usual = float(np.exp(self.sign * noise.level))
        top = best - noise.level
        for at, node in enumerate(matrix.nodes):
            if inside[at]:
                self.standing[node] = Standing.CLEARED
            elif not np.isnan(top[at]):
                self.standing[node] = Standing.CULPRIT
        others = top[~inside & np.isfinite(top)]
        good = [node for at, node in enumerate(matrix.nodes) if inside[at]]
        self.blames.append(words.of_majority(float(np.expm1(np.median(others))), len(others), good, matrix))
        self._against_expectation(Noise(float(np.nanmedian(best)), noise.spread, noise.dip))
        return {
            node: None if np.isnan(top[at]) else float(np.exp(top[at]))
            for at, node in enumerate(matrix.nodes)
        }

    def _as_expected(self, noise: Noise) -> bool:
        level = float(np.exp(self.sign * noise.level))
        return self.expected is not None and (
            level >= self.expected[0] if self.sign > 0 else level <= self.expected[1]
        )

    def _against_expectation(self, noise: Noise) -> None:
        """The unaffected level against what the type is known to reach: the only way to see a fleet slow as a whole."""
        if self.expected is None:
            return
        level = float(np.exp(self.sign * noise.level))
        low, high = self.expected
        short = level < low if self.sign > 0 else level > high
        if not short or any(one.kind is Kind.CLUSTER for one in self.blames):
            return
        blame = words.of_cluster(level, low, high, len(self.pairs), self.matrix, noise.spread)
        often = np.bincount(self.ends.reshape(-1), minlength=self.count)
        # One run per node may have crossed the one bad boundary of all: it takes a second one.
        told = float(np.median(often[often > 0])) >= 2 or int(self.matrix.runs.sum()) >= 2 * len(self.matrix)
        if told and blame.confidence >= self.limits.accuse:
            self.blames.append(blame)
            self.usual = (low + high) / 2
        else:
            self.notes.append(f"{blame.why}; too few runs, or too near, to say so for sure")

    # Single pairs, nodes alone, failures.

    def _links(self, lows: Sequence[LowPair], causes: Sequence[Cause]) -> None:
        told = self._wavering(lows)
        for low in lows:
            if low.at in told:
                continue
            if low.runs >= 2 and low.probability >= self.limits.accuse:
                self.blames.append(words.of_link(low, self.matrix))
            else:
                self.doubts.append(words.of_low_pair(low, self.matrix))

    def _wavering(self, lows: Sequence[LowPair]) -> set[int]:
        """Nodes that many low pairs share though others of theirs are fine: one doubt each. Gives the pairs it speaks for."""
        matrix, once = self.matrix, {low.at: low for low in lows if low.runs < 2}
        told: set[int] = set()
        partners = Partners(matrix, self.standing)
        shared = Counter(node for at in once for node in (int(matrix.a[at]), int(matrix.b[at])))
        for node, many in shared.most_common():
            of = len(self.groups.by_node[node])
            least = max(LEAST_TO_COMPARE, of / 3)
            if many < least or self.standing[matrix.nodes[node]] is Standing.CULPRIT:
                continue
            own = [at for at in once if at not in told and node in (matrix.a[at], matrix.b[at])]
            partner = partners.for_node(node) if len(own) >= least else None
            if partner is None:
                continue
            told.update(own)
            effect = float(np.median([once[at].effect for at in own]))
            self.doubts.append(words.of_wavering(node, partner, effect, len(own), of, matrix))
            if of < self.limits.settle:
                self.standing[matrix.nodes[node]] = Standing.SUSPECT
        return told

    def _alone(self) -> None:
        """Each node by itself: low twice is the node's own fault, low once is to be run again."""
        matrix, limits = self.matrix, self.limits
        ran = np.isfinite(matrix.alone) & (matrix.alone > 0)
        if int(ran.sum()) >= 3:
            log = self.sign * np.log(np.where(ran, matrix.alone, 1.0))
            level = float(np.median(log[ran]))
            spread = max(limits.spread, 1.4826 * float(np.median(np.abs(log[ran] - level))))
            bar = max(-float(np.log1p(-limits.effect)), 4 * spread)
            for at in np.flatnonzero(ran & (log < level - bar)):
                self._slow_alone(int(at), float(np.expm1(log[at] - level)), float(np.exp(self.sign * level)))
        for at in np.flatnonzero((matrix.alone_runs > 0) & ~np.isfinite(matrix.alone)):
            self.doubts.append(words.of_failed_alone(int(at), matrix))

    def _slow_alone(self, at: int, effect: float, usual: float) -> None:
        node = self.matrix.nodes[at]
        blamed = next((one for one in self.blames if one.kind is Kind.NODE and one.subjects == (node,)), None)
        if blamed is not None:
            self.blames[self.blames.index(blamed)] = words.alone_too(blamed, effect, self.matrix, at, usual)
        elif int(self.matrix.alone_runs[at]) >= 2:
            self.blames.append(words.of_slow_alone(at, effect, self.matrix, usual))
            self.standing[node] = Standing.CULPRIT
        else:
            self.doubts.append(words.of_doubt_alone(at, effect, self.matrix, usual))

    def _failed(self, failures: Failures) -> None:
        matrix = self.matrix
        for at in failures.boundaries:
            self.blames.append(words.of_closed_boundary(self.all_groups.boundaries[at], matrix))
        for node, runs in failures.nodes:
            self.standing[matrix.nodes[node]] = Standing.CULPRIT
            self.blames.append(words.of_failed_node(node, runs, matrix, Partners(matrix, self.standing)))
        for at in failures.left:
            self.doubts.append(words.of_failed_pair(int(at), matrix))

    def _below_mean(self, mean: float | None) -> tuple[tuple[str, str], ...]:
        if mean is None:
            return ()
        share = self.limits.below_mean
        value = self.matrix.value[self.has]
        worse = value < mean * (1 - share) if self.sign > 0 else value > mean * (1 + share)
        names = self.matrix.nodes
        return tuple((names[one], names[other]) for one, other in self.ends[worse].tolist())
