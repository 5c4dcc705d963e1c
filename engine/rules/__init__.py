"""What the readings mean. `RULES` is every question there is; each is a pure function over one node's facts."""

from __future__ import annotations

from straggler.engine.rules import (
    disk,
    efa_devices,
    efa_ports,
    efa_provider,
    governor,
    gpu_ecc,
    gpu_heat,
    gpu_inventory,
    gpu_pcie,
    iowait,
    mounts,
    reachability,
    row_remap,
    shm,
    versions,
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
    efa_devices.RULE,
    efa_ports.RULE,
    efa_provider.RULE,
    versions.RULE,
    governor.RULE,
    iowait.RULE,
    disk.RULE,
    shm.RULE,
    mounts.RULE,
)
"""Every rule, in the order its findings are asked for."""

BY_ID = {one.id: one for one in RULES}
