"""A cluster made of text: nodes that answer with raw tool output, for the demo and for measuring."""

from __future__ import annotations

from collections.abc import Mapping

from straggler.engine.simcluster import (
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
from straggler.engine.simcluster.base import HOME_AZ, Reply, Say, SimNode

SAYS: Mapping[str, Say] = {
    "identity": identity.say,
    "governor": governor.say,
    "gpu": gpu.say,
    "kernel-log": kernel_log.say,
    "efa": efa.say,
    "libfabric": libfabric.say,
    "versions": versions.say,
    "cpu-load": cpu_load.say,
    "filesystems": filesystems.say,
}
"""What each collector's snippet would print; a test holds it to the list of collectors."""

__all__ = ["HOME_AZ", "SAYS", "Reply", "Say", "SimNode"]
