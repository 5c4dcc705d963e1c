"""The numbers attribution works with, out of `references/thresholds.toml`, handed to pure functions as one value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from straggler.engine import knowledge
from straggler.engine.knowledge import Knowledge


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares are 0..1. `effect`: the smallest slow-down that is one. `accuse`: the probability from which a verdict is spoken,
    `suspect`: from which the node is run again. `clear`: how many times likelier "as the others" must be than "slow by
    `effect`". `dip`: share of runs that are disturbed for no lasting reason, before the data says otherwise. `node`, `link`,
    `boundary`: how probable each is before anything was measured. `spread`: the least run-to-run spread that is believed.
    `common_size`: share of the runs that must have the size compared. `below_mean`: the rule of others, shown beside.
    `settle`: pairs after which a node that is neither cleared nor accused is left as it is.
    """

    effect: float
    accuse: float
    suspect: float
    clear: float
    dip: float
    node: float
    link: float
    boundary: float
    spread: float
    common_size: float
    below_mean: float
    settle: int


def limits(known: Knowledge) -> Limits:
    """The limits as the knowledge (and the user's own thresholds) has them."""

    def share(name: str) -> float:
        return known.number(name) / 100

    return Limits(
        effect=share("bandwidth.effect"),
        accuse=share("bandwidth.accuse"),
        suspect=share("bandwidth.suspect"),
        clear=known.number("bandwidth.clear"),
        dip=share("bandwidth.dip"),
        node=share("bandwidth.prior-node"),
        link=share("bandwidth.prior-link"),
        boundary=share("bandwidth.prior-boundary"),
        spread=share("bandwidth.spread"),
        common_size=share("bandwidth.common-size"),
        below_mean=share("bandwidth.below-mean"),
        settle=int(known.number("bandwidth.settle")),
    )


@cache
def shipped() -> Limits:
    """The limits without anything of the user's."""
    return limits(knowledge.load())
