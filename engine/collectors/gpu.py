"""The NVIDIA GPUs of a node: those on the PCI bus, those the driver still reaches, and what nvidia-smi says of each.

An unknown field makes nvidia-smi refuse the whole query, so the newest list of fields is tried first and shorter ones after
it. What a GPU would not say is None, with its own word kept in `words`: it is never 0.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from straggler.engine import pci
from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

# The bus is read from /sys, so that a GPU without a driver is seen. 0x10de: NVIDIA, 0x1d0f: Amazon (Trainium, Inferentia).
SNIPPET = r"""
if [ -d /sys/bus/pci/devices ]; then echo "bus read"; else echo "bus hidden"; fi
for d in /sys/bus/pci/devices/*; do
  v= c= w=-
  { read -r v <"$d/vendor"; } 2>/dev/null
  { read -r c <"$d/class"; } 2>/dev/null
  case "$v $c" in
  "0x10de 0x0302"* | "0x10de 0x0300"*) k=nvidia ;;
  "0x1d0f 0x0880"* | "0x1d0f 0x1200"*) k=neuron ;;
  *) continue ;;
  esac
  if [ -e "/sys/bus/pci/drivers/nvidia/${d##*/}" ]; then w=nvidia; elif [ -e "$d/driver" ]; then w=other; fi
  echo "pci ${d##*/} $k $w"
done
if have nvidia-smi; then
  b=index,name,pci.bus_id,driver_version,pstate,temperature.gpu
  m=temperature.memory,mig.mode.current,ecc.mode.current,pcie.link.width.current,pcie.link.width.max,clocks.sm,clocks.max.sm
  e=ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total,ecc.errors.corrected.aggregate.total,ecc.errors.uncorrected.aggregate.total
  t() { echo "$1.hw_slowdown,$1.hw_thermal_slowdown,$1.sw_thermal_slowdown,$1.hw_power_brake_slowdown,$1.sw_power_cap"; }
  n="$b,$m,$e,$(t clocks_event_reasons)"
  for q in "$n,gpu_recovery_action" "$n" "$b,$m,$e,$(t clocks_throttle_reasons)" "$b,ecc.errors.uncorrected.volatile.total"; do
    r=0
    o=$(nvidia-smi --query-gpu="$q" --format=csv,nounits 2>&1) || r=$?
    case $o in *"not a valid field"*) ;; *) break ;; esac
  done
  echo "asked gpus"
  printf '%s\n' "$o"
  echo "code $r"
  q=gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows.failure
  r=0
  o=$(nvidia-smi --query-remapped-rows="$q" --format=csv,nounits 2>&1) || r=$?
  echo "asked rows"
  printf '%s\n' "$o"
  echo "code $r"
fi
echo end
"""

_PCI = re.compile(r"pci ([0-9a-fA-F:.]{7,16}) (nvidia|neuron) (nvidia|other|-)")
_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:GPU|gpu)[ 0-9]*?\s?((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]): *(.*)"
)
_REASONS = re.compile(r"clocks_(?:event|throttle)_reasons\.(.*)")
_NUMBER = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,6})?")
_COUNT = re.compile(r"[0-9]{1,12}")

LOST, RESET, UNKNOWN = "GPU is lost", "GPU requires reset", "Unknown Error"
"""Words nvidia-smi puts in place of values when the GPU itself is the matter, as printed in brackets or without."""


@dataclass(frozen=True, slots=True)
class PciDevice:
    """An accelerator on the bus. `driver`: nvidia, other, or - for none bound."""

    pci: str
    kind: str
    driver: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """One row of nvidia-smi. Temperatures in degrees Celsius, widths in PCIe lanes; counts of ECC are errors.

    `reasons`: why the clock is held down, each True, False or None (not told). `words`: what stood where a value was asked.
    """

    pci: str | None
    index: int | None = None
    name: str | None = None
    driver: str | None = None
    pstate: str | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    mig: bool | None = None
    ecc: bool | None = None
    width: int | None = None
    width_max: int | None = None
    clock: int | None = None
    clock_max: int | None = None
    corrected: int | None = None
    uncorrected: int | None = None
    corrected_ever: int | None = None
    uncorrected_ever: int | None = None
    recovery: str | None = None
    reasons: Mapping[str, bool | None] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def said(self, word: str) -> bool:
        return any(word in one for one in self.words.values())


@dataclass(frozen=True, slots=True)
class Remap:
    """Remapped memory rows of one GPU: counts, and the two flags; None where not told."""

    pci: str | None
    correctable: int | None
    uncorrectable: int | None
    pending: bool | None
    failed: bool | None


@dataclass(frozen=True, slots=True)
class Gpus:
    """`bus` is None where /sys showed none at all. `smi`: whether the tool is there; `handles`: GPUs it could not open.

    `trouble`: what nvidia-smi said instead of rows, and `rows_trouble` the same for the remapped rows; empty: nothing.
    `code`: its exit code when it was asked for the rows. `torn`: lines among the rows that are no whole row.
    """

    bus: tuple[PciDevice, ...] | None
    smi: bool
    gpus: tuple[Gpu, ...] = ()
    handles: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    rows: tuple[Remap, ...] = ()
    rows_trouble: str = ""
    code: int = 0
    torn: int = 0

    def on_bus(self, kind: str) -> tuple[PciDevice, ...]:
        return tuple(one for one in self.bus or () if one.kind == kind)


def parse(text: str) -> Gpus | Unread:
    lines = text.splitlines()
    if (
        len(lines) < 2
        or lines[0] not in ("bus read", "bus hidden")
        or lines[-1] != "end"
        or not text.endswith("\n")
    ):
        return garbled("the reply does not reach from the bus to its end")
    body = lines[1:-1]
    at = next((at for at, line in enumerate(body) if not line.startswith("pci ")), len(body))
    devices = [_device(line) for line in body[:at]]
    if None in devices:
        return garbled("a line of the PCI bus is not understood")
    bus = tuple(one for one in devices if one) if lines[0] == "bus read" else None
    if not body[at:]:
        return Gpus(bus, smi=False)
    sections = _sections(body[at:])
    if sections is None:
        return garbled("nvidia-smi's reply does not reach its end")
    (answer, code), (rows, rows_code) = sections
    table, handles, unread = _table(answer, code)
    remaps, _, rows_unread = _table(rows, rows_code)
    return Gpus(
        bus,
        smi=True,
        gpus=tuple(_gpu(row) for row in table),
        handles=handles,
        trouble=_shortly(unread),
        rows=tuple(_remap(row) for row in remaps),
        rows_trouble=_shortly(rows_unread),
        code=code,
        torn=sum("," in line for line in unread),
    )


def _device(line: str) -> PciDevice | None:
    found = _PCI.fullmatch(line)
    address = pci.device(found[1]) if found else None
    return PciDevice(address, found[2], found[3]) if found and address else None


def _sections(lines: Sequence[str]) -> list[tuple[list[str], int]] | None:
    """The two replies and their exit codes, or None when one of them is not closed."""
    found: list[tuple[list[str], int]] = []
    held: list[str] | None = None
    for line in lines:
        if held is None:
            if line != f"asked {('gpus', 'rows')[len(found)] if len(found) < 2 else ''}":
                return None
            held = []
        elif re.fullmatch(r"code [0-9]{1,3}", line):
            found.append((held, int(line.split()[1])))
            held = None
        else:
            held.append(line)
    return found if held is None and len(found) == 2 else None


def _cells(line: str) -> list[str]:
    """The cells of one CSV line; none where csv does not take it (a NUL, on Python 3.10)."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]
    except csv.Error:
        return []


def _table(lines: Sequence[str], code: int) -> tuple[list[dict[str, str]], Mapping[str, str], list[str]]:
    """Rows by column name, GPUs without a handle with the reason, and what was said that is neither."""
    head: list[str] = []
    rows, handles, trouble = [], {}, []
    for line in lines:
        if lost := _HANDLE.search(line):
            handles[pci.device(lost[1]) or lost[1]] = lost[2].strip() or UNKNOWN
            continue
        cells = _cells(line)
        if not head and len(cells) > 1 and all(re.fullmatch(r"[a-z_.]+(?: \[.*\])?", cell) for cell in cells):
            head = [cell.split(" ")[0] for cell in cells]
        elif head and len(cells) == len(head) and any(cells):
            rows.append(dict(zip(head, cells, strict=True)))
        elif line.strip():
            trouble.append(line.strip())
    if not rows and not handles and not trouble:
        trouble.append("nvidia-smi printed nothing")
    if code and not trouble and not handles:
        trouble.append(f"nvidia-smi ended with exit code {code}")
    return rows, handles, trouble


def _shortly(trouble: Sequence[str]) -> str:
    return " / ".join(trouble[:3])[:400]


def _word(text: str | None) -> str | None:
    """The text of a value, or None where the cell holds no value: blank, bracketed, or an error word."""
    if not text or text.startswith("[") or text in ("N/A", "ERR!", UNKNOWN, LOST, RESET, "Not Supported"):
        return None
    return text


def _int(text: str | None) -> int | None:
    """A count; what is below zero or has a fraction is none."""
    value = _word(text)
    return int(value) if value is not None and _COUNT.fullmatch(value) else None


def _float(text: str | None) -> float | None:
    value = _word(text)
    return float(value) if value is not None and _NUMBER.fullmatch(value) else None


_FLAGS = {"Enabled": True, "Disabled": False, "Active": True, "Not Active": False, "Yes": True, "No": False}


def _flag(text: str | None) -> bool | None:
    """True or False only for the words and digits nvidia-smi uses: drivers print remap flags as Yes/No, others as 1/0."""
    if text in _FLAGS:
        return _FLAGS[text]
    number = _int(text)
    return None if number is None else number > 0


def _gpu(row: Mapping[str, str]) -> Gpu:
    get = row.get
    return Gpu(
        pci=pci.device(get("pci.bus_id", "")),
        index=_int(get("index")),
        name=_word(get("name")),
        driver=_word(get("driver_version")),
        pstate=_word(get("pstate")),
        temperature=_float(get("temperature.gpu")),
        memory_temperature=_float(get("temperature.memory")),
        mig=_flag(get("mig.mode.current")),
        ecc=_flag(get("ecc.mode.current")),
        width=_int(get("pcie.link.width.current")),
        width_max=_int(get("pcie.link.width.max")),
        clock=_int(get("clocks.sm") or get("clocks.current.sm")),
        clock_max=_int(get("clocks.max.sm")),
        corrected=_int(get("ecc.errors.corrected.volatile.total")),
        uncorrected=_int(get("ecc.errors.uncorrected.volatile.total")),
        corrected_ever=_int(get("ecc.errors.corrected.aggregate.total")),
        uncorrected_ever=_int(get("ecc.errors.uncorrected.aggregate.total")),
        recovery=_word(get("gpu_recovery_action")),
        reasons={found[1]: _flag(cell) for name, cell in row.items() if (found := _REASONS.fullmatch(name))},
        words={name: cell.strip("[]") for name, cell in row.items() if cell and _word(cell) is None},
    )


def _remap(row: Mapping[str, str]) -> Remap:
    return Remap(
        pci=pci.device(row.get("gpu_bus_id") or row.get("pci.bus_id", "")),
        correctable=_int(row.get("remapped_rows.correctable")),
        uncorrectable=_int(row.get("remapped_rows.uncorrectable")),
        pending=_flag(row.get("remapped_rows.pending")),
        failed=_flag(row.get("remapped_rows.failure")),
    )


def fields(facts: Gpus) -> Mapping[str, str | None]:
    """What is compared over the nodes of a group; a single GPU that does not tell makes the field unreadable."""
    return {
        "GPUs the driver knows": str(len(facts.gpus) + len(facts.handles))
        if facts.smi and not facts.trouble
        else None,
        "GPU model": _alike([gpu.name for gpu in facts.gpus]),
        "NVIDIA driver": _alike([gpu.driver for gpu in facts.gpus]),
        "GPU ECC": _alike([None if gpu.ecc is None else ("off", "on")[gpu.ecc] for gpu in facts.gpus]),
        "GPU MIG": _alike([None if gpu.mig is None else ("off", "on")[gpu.mig] for gpu in facts.gpus]),
    }


def _alike(values: Sequence[str | None]) -> str | None:
    shown = {value for value in values if value is not None}
    return None if not shown or None in values else "/".join(sorted(shown))


COLLECTOR = Collector(
    id="gpu",
    what="the GPUs on the PCI bus and what nvidia-smi says of each: heat, ECC, remapped rows, why a clock is held down",
    snippet=SNIPPET,
    parse=parse,
    commands=("nvidia-smi",),
    fields=fields,
    seconds=25,
)
