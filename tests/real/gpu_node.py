"""Recorded tools that make a host look like a GPU node: nvidia-smi, the kernel log, instance metadata, the PCI bus.

The GPU table is what the simulated node would print; the kernel log is written here, for it counts from the host's real boot.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from straggler.engine.simcluster import SAYS, SimNode
from tests.support.fake_tools import UNRECORDED, FakeTools

BROKEN = frozenset({"xid-79"})
KERNEL = (
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 240",
)
FALLEN = (
    "NVRM: GPU at PCI:{gpu}: GPU-c62fa587-4f1c-9b1e-52d1-1c7fe0a43b5e",
    "NVRM: Xid (PCI:{gpu}): 79, pid=38980, name=python3, GPU has fallen off the bus.",
)
"""What the kernel says of the GPU that nvidia-smi finds no handle for."""

MOUNTS = "\n".join(
    f"mount -t overlay overlay -o lowerdir={{home}}/bin/pci/{part}:/sys/bus/pci/{part} /sys/bus/pci/{part}"
    for part in ("devices", "drivers")
)
"""Puts the GPUs on the host's PCI bus."""


def gpu_node(faults: frozenset[str] = frozenset()) -> Callable[[FakeTools], None]:
    """The tools of a p5.48xlarge with these faults."""

    def record(tools: FakeTools) -> None:
        text = SAYS["gpu"](SimNode("real", 1, faults=faults)).text
        bus, _, asked = text.partition("asked gpus\n")
        gpus, _, rows = asked.partition("asked rows\n")
        _nvidia_smi(tools, gpus, rows)
        _pci(tools, [line.split()[1] for line in bus.splitlines() if line.startswith("pci ")])
        lost = re.search(r"device handle for GPU([0-9A-F:]+)\.0", gpus)
        _kernel_log(tools, KERNEL + tuple(line.format(gpu=lost[1]) for line in FALLEN if lost))
        _metadata(tools)

    return record


def _nvidia_smi(tools: FakeTools, gpus: str, rows: str) -> None:
    cases = []
    for query, said in (("gpu", gpus), ("remapped-rows", rows)):
        table, _, code = said.partition("code ")
        recorded = tools.home / f"nvidia-smi.{query}"
        recorded.write_text(table)
        cases.append(f'--query-{query}=*" --format=csv,nounits") cat {recorded}; exit {code.split()[0]} ;;')
    body = "\n".join(cases)
    tools.script("nvidia-smi", f'case "$*" in\n{body}\n{_loud("nvidia-smi")}\nesac')


def _loud(name: str) -> str:
    return f'*) echo "{name}: not recorded: $*" >&2; exit {UNRECORDED} ;;'


def _pci(tools: FakeTools, devices: list[str]) -> None:
    for address in devices:
        device = tools.home / "pci" / "devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
        (device / "driver").mkdir()
        (tools.home / "pci" / "drivers" / "nvidia" / address).mkdir(parents=True)


def _kernel_log(tools: FakeTools, lines: tuple[str, ...]) -> None:
    """Both logs from the same lines, the last ones ten minutes old at most: the host may have booted a moment ago."""
    tools.script(
        "dmesg",
        f'[ $# = 0 ] || {{ echo "dmesg: not recorded: $*" >&2; exit {UNRECORDED}; }}\n'
        "read -r up rest </proc/uptime; up=${up%%.*}; at=$((up > 600 ? up - 600 : 1))\n"
        "printf '[    0.000000] Linux version 6.1.112 (build@host)\\n'\n"
        + "".join(f"printf '[%5d.000000] %s\\n' $at '{line}'\n" for line in lines),
    )
    tools.script(
        "journalctl",
        'case "$*" in\n"-k -b 0 -o short-unix --no-pager -q") ;;\n'
        '"-k -b -1 -o short-unix --no-pager -q") echo "Data from the specified boot (-1) is not available" >&2; exit 1 ;;\n'
        f"{_loud('journalctl')}\nesac\n"
        "read -r up rest </proc/uptime; up=${up%%.*}; at=$((up > 600 ? 600 : up - 1)); now=$(date +%s)\n"
        "printf '%d.000000 host kernel: Linux version 6.1.112 (build@host)\\n' $((now - up))\n"
        + "".join(f"printf '%d.000000 host kernel: %s\\n' $((now - at)) '{line}'\n" for line in lines),
    )


def _metadata(tools: FakeTools) -> None:
    tools.script(
        "curl",
        'case "$*" in\n*"/latest/api/token") echo dG9rZW4= ;;\n*"/meta-data/instance-type") echo p5.48xlarge ;;\n'
        f'*"/placement/availability-zone") echo us-west-2b ;;\n{_loud("curl")}\nesac',
    )
