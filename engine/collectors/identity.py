"""Who the node is: its names, kernel, clock, boot, instance type and zone; and what accelerator it carries, by PCI vendor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

# IMDSv2 needs curl; without it (or off AWS) DMI says the type on Nitro. Vendor 0x10de is NVIDIA, 0x1d0f with a Neuron class
# device is Trainium/Inferentia: read from /sys, so a dead driver does not make a GPU node look like a CPU node.
SNIPPET = r"""
echo "hostname $(hostname 2>/dev/null || cat /proc/sys/kernel/hostname)"
read -r k </proc/sys/kernel/osrelease && echo "kernel $k"
read -r b </proc/sys/kernel/random/boot_id && echo "boot_id $b"
read -r u r </proc/uptime && echo "uptime ${u%%.*}"
echo "clock $(date +%s)"
n=0 m=0
for d in /sys/bus/pci/devices/*; do
  v= c=
  { read -r v <"$d/vendor"; } 2>/dev/null
  { read -r c <"$d/class"; } 2>/dev/null
  case "$v $c" in "0x10de 0x0302"*|"0x10de 0x0300"*) n=$((n + 1)) ;; "0x1d0f 0x0880"*|"0x1d0f 0x1200"*) m=$((m + 1)) ;; esac
done
if [ -d /sys/bus/pci/devices ]; then echo "pci_gpus $n"; echo "pci_neuron $m"; else echo "pci_gpus -"; echo "pci_neuron -"; fi
t= z=
if have curl; then
  k=$(curl -s -f -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token 2>/dev/null)
  case $k in '' | *[!A-Za-z0-9+/=_-]*) ;; *)
    t=$(curl -s -f -m 2 -H "X-aws-ec2-metadata-token: $k" http://169.254.169.254/latest/meta-data/instance-type 2>/dev/null)
    z=$(curl -s -f -m 2 -H "X-aws-ec2-metadata-token: $k" http://169.254.169.254/latest/meta-data/placement/availability-zone 2>/dev/null)
  ;; esac
fi
if [ -z "$t" ] && [ -r /sys/class/dmi/id/product_name ]; then read -r t </sys/class/dmi/id/product_name; fi
echo "instance_type ${t:--}"
echo "az ${z:--}"
echo end
"""

_TYPE = re.compile(r"(?:ml\.)?[a-z][a-z0-9-]*\.[a-z0-9-]+")
_KEYS = ("hostname", "kernel", "boot_id", "uptime", "clock", "pci_gpus", "pci_neuron", "instance_type", "az")


@dataclass(frozen=True, slots=True)
class Identity:
    """`uptime` and `clock` in seconds. None: the node did not say."""

    hostname: str
    kernel: str
    boot_id: str | None
    uptime: int
    clock: int
    pci_gpus: int | None
    pci_neuron: int | None
    instance_type: str | None
    az: str | None


def parse(text: str) -> Identity | Unread:
    lines = text.splitlines()
    if not lines or lines[-1] != "end":
        return garbled("the reply does not reach its end")
    said = dict(line.split(" ", 1) for line in lines[:-1] if " " in line)
    if len(lines) != len(said) + 1 or not {"hostname", "kernel", "uptime", "clock"} <= said.keys() <= set(
        _KEYS
    ):
        return garbled("the reply is not the list of identity fields")
    kind = said.get("instance_type", "-")
    return Identity(
        hostname=said["hostname"],
        kernel=said["kernel"],
        boot_id=said.get("boot_id"),
        uptime=int(said["uptime"]),
        clock=int(said["clock"]),
        pci_gpus=_number(said.get("pci_gpus", "-")),
        pci_neuron=_number(said.get("pci_neuron", "-")),
        instance_type=kind.removeprefix("ml.") if _TYPE.fullmatch(kind) else None,
        az=None if said.get("az", "-") == "-" else said["az"],
    )


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def fields(facts: Identity) -> Mapping[str, str | None]:
    return {
        "kernel": facts.kernel,
        "instance type": facts.instance_type,
        "availability zone": facts.az,
        "GPUs on the PCI bus": None if facts.pci_gpus is None else str(facts.pci_gpus),
    }


COLLECTOR = Collector(
    id="identity",
    what="who the node is: names, kernel, clock, instance type, and the accelerators on its PCI bus",
    snippet=SNIPPET,
    parse=parse,
    commands=("hostname", "cat", "date", "curl"),
    fields=fields,
)
