"""The EFA side of a node: driver module, every device and port below /sys/class/infiniband, and libfabric's efa provider."""

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
if have fi_info; then
  echo "fi_info begin"
  fi_info -p efa 2>&1
  echo "fi_info end $?"
else
  echo "fi_info missing"
fi
echo end
"""

_DEVICE = re.compile(r"device (\S+) (\S+) (\S+)")
_PORT = re.compile(r"port (\S+) ([0-9]+) (.+) / (.+)")
_STATE = re.compile(r"(?:[0-9]+: *)?([A-Za-z_]+)")


@dataclass(frozen=True, slots=True)
class Port:
    """`state` as the kernel says it (ACTIVE, DOWN, INIT, ARMED); None: it would not say. `line`: as it was read."""

    device: str
    number: int
    state: str | None
    line: str


@dataclass(frozen=True, slots=True)
class Efa:
    """`module`: version of the loaded driver, "" loaded without one, None not loaded; `module_seen` False: /sys is hidden.

    `drivers` maps a verbs device to its driver, None where that was not readable; `firmware` to its version, if it has one.
    `provider` is fi_info's exit status for `-p efa`, None without fi_info; `fabric` its devices, each once.
    """

    module: str | None
    module_seen: bool
    drivers: Mapping[str, str | None]
    firmware: Mapping[str, str | None]
    ports: tuple[Port, ...]
    provider: int | None
    provider_text: str
    fabric: tuple[str, ...]

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
    if not lines or lines[-1] != "end" or not lines[0].startswith("module "):
        return garbled("the reply is not a whole EFA listing")
    words = lines[0].split(" ")
    seen = words[1] != "?"
    module = (words[2] if words[2] not in ("-", "?") else "") if words[1] == "efa" else None
    drivers: dict[str, str | None] = {}
    firmware: dict[str, str | None] = {}
    ports: list[Port] = []
    at = 1
    while not lines[at].startswith("fi_info "):
        line = lines[at]
        if found := _DEVICE.fullmatch(line):
            drivers[found[1]] = None if found[2] == "?" else found[2]
            firmware[found[1]] = None if found[3] in ("-", "?") else found[3]
        elif found := _PORT.fullmatch(line):
            state = _STATE.fullmatch(found[3])
            ports.append(Port(found[1], int(found[2]), state[1].upper() if state else None, line[5:]))
        else:
            return garbled(f"line {at + 1} is not a device or a port")
        at += 1
    provider, said = _provider(lines[at:-1])
    if any(port.device not in drivers for port in ports):
        return garbled("a port belongs to no device")
    fabric = tuple(dict.fromkeys(re.findall(r"^\s*domain: (\S+?)(?:-rdm|-dgrm)?$", said, re.MULTILINE)))
    return Efa(module, seen, drivers, firmware, tuple(ports), provider, said, fabric)


def _provider(lines: list[str]) -> tuple[int | None, str]:
    if lines == ["fi_info missing"]:
        return None, ""
    if lines[0] != "fi_info begin" or not lines[-1].startswith("fi_info end "):
        raise ValueError("fi_info's output has no end")
    return int(lines[-1].removeprefix("fi_info end ")), "\n".join(lines[1:-1])


def fields(facts: Efa) -> Mapping[str, str | None]:
    firmware = {facts.firmware[name] or "none" for name in facts.devices}
    return {
        "EFA driver": facts.module if facts.module is not None or facts.module_seen else None,
        "EFA devices": str(len(facts.devices)),
        "EFA firmware": "/".join(sorted(firmware)) or None,
        "other RDMA devices": str(sum(driver not in ("efa", None) for driver in facts.drivers.values())),
    }


COLLECTOR = Collector(
    id="efa",
    what="EFA: the driver, every device and port, and whether libfabric can use them: NCCL falls back to TCP without",
    snippet=SNIPPET,
    parse=parse,
    commands=("fi_info",),
    fields=fields,
    seconds=20,
)
