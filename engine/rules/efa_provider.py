"""Whether libfabric on the host offers the efa provider; without it NCCL's plugin has nothing and jobs fall back to TCP."""

from __future__ import annotations

from collections.abc import Iterable

from straggler.engine.collectors import efa, identity
from straggler.engine.model import Level, Verdict
from straggler.engine.rules.base import NodeView, Rule


def judge(view: NodeView) -> Iterable[Verdict]:
    facts = view.read(efa.COLLECTOR)
    want = view.instance
    if not facts.devices and (want is None or want.efa == 0):
        yield Verdict("efa.provider", Level.INFO, "no EFA device, so no efa provider is expected")
    elif facts.provider is None:
        detail = "fi_info is not installed on the host; the job's container may bring its own libfabric"
        yield Verdict("efa.provider", Level.UNKNOWN, "whether libfabric offers efa was not seen", detail)
    elif facts.provider == 0 and facts.fabric:
        missing = sorted(set(facts.devices) - set(facts.fabric))
        if missing:
            detail = f"libfabric lists {len(facts.fabric)} of {len(facts.devices)} devices; not {', '.join(missing[:4])}"
            yield Verdict(
                "efa.not-found",
                Level.WARN,
                "libfabric does not offer every EFA device",
                detail,
                values={"device": missing[0]},
            )
        else:
            yield Verdict("efa.present", Level.PASS, "libfabric offers efa on every device")
    else:
        said = tuple(facts.provider_text.strip().splitlines()[-3:])
        detail = (
            f"fi_info -p efa ended with {facts.provider} though {len(facts.devices)} EFA devices are there"
        )
        yield Verdict("efa.not-found", Level.FAIL, "libfabric does not find the efa provider", detail, said)


RULE = Rule(
    id="efa-provider",
    reads=(efa.COLLECTOR,),
    uses=(identity.COLLECTOR,),
    judge=judge,
    finds=("efa.present", "efa.not-found", "efa.provider"),
    unknown="efa.provider",
    spec=("A4", "node.efa-provider", "node.libfabric"),
)
