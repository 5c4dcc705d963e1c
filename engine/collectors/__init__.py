"""What is read on a node. `COLLECTORS` is the closed list: a snippet that is not in it cannot be sent anywhere."""

from __future__ import annotations

from straggler.engine.collectors import (
    cpu_load,
    efa,
    filesystems,
    governor,
    gpu,
    identity,
    kernel_log,
    libfabric,
    versions,
)
from straggler.engine.collectors.base import AnyCollector

COLLECTORS: tuple[AnyCollector, ...] = (
    identity.COLLECTOR,
    gpu.COLLECTOR,
    kernel_log.COLLECTOR,
    efa.COLLECTOR,
    libfabric.COLLECTOR,
    versions.COLLECTOR,
    governor.COLLECTOR,
    filesystems.COLLECTOR,
    cpu_load.COLLECTOR,
)
"""Every collector there is, in the order they are shown."""

BY_ID = {one.id: one for one in COLLECTORS}
