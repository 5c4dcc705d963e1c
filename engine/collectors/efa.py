"""The EFA side of a node's kernel: the driver module, and every device and port below /sys/class/infiniband."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

# The driver's name stands in the device's uevent file: no process per device. P6 hosts also have mlx5 devices.
SNIPPET = r"""
if [ -d /sys/module/efa ]; then
  v=-
  if [ -e /sys/module/efa/version ]; then { read -r v </sys/module/efa/version; } 2>/dev/null || v='?'; fi
  echo "module efa $v"
elif [ -d /sys/module ]; then echo "module none"
else echo "module ?"; fi
for d in /sys/class/infiniband/*; do
  if [ ! -d "$d" ]; then continue; fi
  n=${d##*/} r='?' f=-
  if [ -e "$d/device/uevent" ]; then
    while IFS='=' read -r k w; do if [ "$k" = DRIVER ]; then r=$w; fi; done 2>/dev/null <"$d/device/uevent"
  fi
  if [ -e "$d/fw_ver" ]; then { read -r f <"$d/fw_ver"; } 2>/dev/null || f='?'; fi
  echo "device $n $r ${f:--}"
  for p in "$d"/ports/*; do
    if [ ! -d "$p" ]; then continue; fi
    s='?' h='?'
    { read -r s <"$p/state"; } 2>/dev/null || s='?'
    { read -r h <"$p/phys_state"; } 2>/dev/null || h='?'
    echo "port $n ${p##*/} ${s:-?} / ${h:-?}"
  done
done
echo end
"""

_MODULE = re.compile(r"module (?:efa (\S+)|none|\?)")
_DEVICE = re.compile(r"device (\S+) (\S+) (\S+)")
_PORT = re.compile(r"port (\S+) ([0-9]{1,9}) (.+) / (.+)")
_STATE = re.compile(r"(?:[0-9]+: *)?(NOP|DOWN|INIT|ARMED|ACTIVE|ACTIVE_DEFER)")
"""The kernel's words (drivers/infiniband/core/sysfs.c): any other is not understood, which accuses nobody."""


@dataclass(frozen=True, slots=True)
class Port:
    """`state` as the kernel says it (ACTIVE, DOWN, INIT, ARMED); None: it would not say, or another word. `line`: as read."""

    device: str
    number: int
    state: str | None
    line: str


@dataclass(frozen=True, slots=True)
class Efa:
    """`module`: version of the loaded driver, "" loaded and without one, None not loaded; `module_seen` False: /sys is hidden.

    `drivers` maps a verbs device to its driver, None where that was not readable; `firmware` to its version, if it has one.
    """

    module: str | None
    module_seen: bool
    drivers: Mapping[str, str | None]
    firmware: Mapping[str, str | None]
    ports: tuple[Port, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices of the efa driver only."""
        return tuple(name for name, driver in self.drivers.items() if driver == "efa")

    @property
    def efa_ports(self) -> tuple[Port, ...]:
        return tuple(port for port in self.ports if self.drivers.get(port.device) == "efa")


def parse(text: str) -> Efa | Unread:
    """Line by line; a line that is not ours, or no end, makes the whole reply unread."""
    lines = text.splitlines()
    module = _MODULE.fullmatch(lines[0]) if lines else None
    if module is None or lines[-1] != "end" or not text.endswith("\n"):
        return garbled("the reply is not a whole EFA listing")
    drivers: dict[str, str | None] = {}
    firmware: dict[str, str | None] = {}
    ports: list[Port] = []
    for line in lines[1:-1]:
        if (found := _DEVICE.fullmatch(line)) and found[1] not in drivers:
            drivers[found[1]] = None if found[2] == "?" else found[2]
            firmware[found[1]] = None if found[3] in ("-", "?") else found[3]
        elif (found := _PORT.fullmatch(line)) and found[1] in drivers:
            state = _STATE.fullmatch(found[3])
            ports.append(Port(found[1], int(found[2]), state[1] if state else None, line[5:]))
        else:
            return garbled("a line is neither a device nor a port of one")
    loaded = module[1]
    return Efa(
        module="" if loaded in ("-", "?") else loaded,
        module_seen=module[0] != "module ?",
        drivers=drivers,
        firmware=firmware,
        ports=tuple(ports),
    )


def fields(facts: Efa) -> Mapping[str, str | None]:
    firmware = sorted({facts.firmware[name] or "none" for name in facts.devices})
    module = "not loaded" if facts.module is None else facts.module or "loaded, without a version"
    return {
        "EFA driver": module if facts.module_seen else None,
        "EFA devices": str(len(facts.devices)) if None not in facts.drivers.values() else None,
        "EFA firmware": "/".join(firmware) or "none",
        "other RDMA devices": str(sum(driver not in ("efa", None) for driver in facts.drivers.values())),
    }


COLLECTOR = Collector(
    id="efa",
    what="EFA: the driver, and the state of every device and every port: NCCL's traffic is spread over all of them",
    snippet=SNIPPET,
    parse=parse,
    commands=(),
    fields=fields,
)
