"""The numbers attribution works with, out of `references/thresholds.toml`, handed to pure functions as one value."""

from __future__ import annotations

from dataclasses import dataclass

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

    effect: float = 0.06
    accuse: float = 0.9
    suspect: float = 0.1
    clear: float = 20.0
    dip: float = 0.01
    node: float = 0.03
    link: float = 1e-4
    boundary: float = 0.03
    spread: float = 0.005
    common_size: float = 0.9
    below_mean: float = 0.05
    settle: int = 12


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
