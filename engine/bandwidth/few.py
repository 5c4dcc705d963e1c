"""How much values can say: a handful, while the spread of such runs is only known from it, and any in a fleet that is often disturbed.

Three values that lie close together by chance make any fourth look far off. So the gap between the slow and the other pairs
is set against a spread of which both groups and what is usual of such runs are witnesses, with the heavy tails of Student's
distribution instead of the normal one's.
"""

from __future__ import annotations

import math

import numpy as np

from straggler.engine.bandwidth.noise import Floats

USUAL = 0.025
"""What runs of one pair usually differ by (natural logarithm) on a network that is shared."""

WITNESSES = 5
"""How many values `USUAL` counts as."""

MANY = 200
"""From so many values on their own spread is known well enough."""

FAR = 4.0
"""Values further off than so many spreads are disturbed runs; they count as that far."""

OFTEN = 0.03
"""Share of disturbed runs from which it counts how they can meet."""


def most_gain(slow: Floats, fine: Floats, spread: float) -> float:
    """The most (nats) that "these are slower" can be likelier than "all alike"; infinite where there are many values.

    Without a pair that is fine there is nothing to be slower than.
    """
    if len(slow) + len(fine) >= MANY:
        return math.inf
    if not len(slow) or not len(fine):
        return 0.0
    gap = float(np.median(fine) - np.median(slow))
    if gap <= 0:
        return 0.0
    far = FAR * max(spread, USUAL)
    off = sum(float(np.sum(np.clip(one - np.median(one), -far, far) ** 2)) for one in (slow, fine))
    free = WITNESSES + len(slow) + len(fine) - 2
    variance = (WITNESSES * USUAL**2 + off) / free
    square = gap * gap / (variance * (1 / len(slow) + 1 / len(fine)))
    return free / 2 * math.log1p(square / free)


def most_by_share(low: int, of: int, others_low: int, others: int, usual: float) -> float:
    """The most (nats) that `low` of `of` pairs can speak for a cause where `others_low` of `others` are as low without it.

    Where every fifth run is disturbed, two disturbed ones meet in some node of any fleet. `usual`: the share of the others that
    their spread alone puts there; as long as no more are, nothing is disturbed and the result is infinite.
    """
    share = (others_low + 0.5) / (others + 1)
    if not others or others_low < 2 or share < OFTEN + usual:
        return math.inf
    own = low / of
    if own <= share:
        return 0.0
    rest = (1 - own) * math.log((1 - own) / (1 - share)) if own < 1 else 0.0
    return of * (own * math.log(own / share) + rest)
