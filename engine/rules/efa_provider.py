"""Whether libfabric on the host offers the efa provider; without it NCCL's plugin has nothing and jobs fall back to TCP."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import efa, identity, libfabric
from straggler.engine.collectors.libfabric import Libfabric
from straggler.engine.model import Level, Status, Unread, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    """A node without an EFA device is the device rule's business: one cause, one finding."""
    devices = view.read(efa.COLLECTOR).devices
    offered = view.get(libfabric.COLLECTOR)
    if not devices:
        yield Verdict("efa.provider", Level.INFO, "no EFA device, so no efa provider is expected")
    elif isinstance(offered, Unread):
        why = offered.why
        if offered.status is Status.TOOL_MISSING:
            why = "fi_info is not on the host; the job's container may bring its own libfabric"
        yield Verdict("efa.provider", Level.UNKNOWN, "whether libfabric offers efa was not seen", why)
    else:
        yield _offer(devices, offered)


def _offer(devices: tuple[str, ...], offered: Libfabric) -> Verdict:
    """Only libfabric's own words accuse it: a fi_info that cannot start or prints what is not its own says nothing."""
    missing = [name for name in devices if name not in offered.devices]
    if offered.error is not None and not offered.devices:
        detail = f"fi_info -p efa says fi_getinfo {offered.error} though {len(devices)} EFA devices are there"
        return Verdict(
            "efa.not-found", Level.FAIL, "libfabric does not find the efa provider", detail, offered.said
        )
    if not offered.devices:
        detail = f"fi_info ended with {offered.exit} and listed nothing"
        return Verdict("efa.provider", Level.UNKNOWN, "fi_info could not be understood", detail, offered.said)
    if missing:
        count = len(devices) - len(missing)
        detail = f"libfabric lists {count} of {len(devices)} devices; not {', '.join(missing[:4])}"
        return Verdict("efa.not-found", Level.WARN, "libfabric does not offer every EFA device", detail)
    return Verdict("efa.present", Level.PASS, "libfabric offers efa on every device")


RULE = Rule(
    id="efa-provider",
    reads=(efa.COLLECTOR,),
    uses=(libfabric.COLLECTOR, identity.COLLECTOR),
    judge=judge,
    finds=("efa.present", "efa.not-found", "efa.provider"),
    unknown="efa.provider",
    spec=("A4", "node.efa-provider", "node.libfabric"),
)
