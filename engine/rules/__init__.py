"""What the readings mean. `RULES` is every question there is; each is a pure function over one node's facts."""

from __future__ import annotations

from straggler.engine.rules import (
    governor,
    gpu_ecc,
    gpu_heat,
    gpu_inventory,
    gpu_pcie,
    reachability,
    row_remap,
    xid,
)
from straggler.engine.rules.base import Rule

RULES: tuple[Rule, ...] = (
    reachability.RULE,
    gpu_inventory.RULE,
    xid.RULE,
    gpu_ecc.RULE,
    row_remap.RULE,
    gpu_heat.RULE,
    gpu_pcie.RULE,
    governor.RULE,
)
"""Every rule, in the order its findings are asked for."""

BY_ID = {one.id: one for one in RULES}
