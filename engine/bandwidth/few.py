"""How much a handful of values can say while the spread of such runs is only known from that same handful.

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
