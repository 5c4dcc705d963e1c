"""The software stack as the host has it: driver, CUDA, EFA installer, libfabric, OFI plugin, NCCL, container toolkit, OS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

# Files and names only: no tool has to work for its version to be known. Lines are cut to what can be a version.
SNIPPET = r"""
say() { printf '%s %s\n' "$1" "$2"; }
if [ -r /proc/driver/nvidia/version ]; then
  { read -r l; } </proc/driver/nvidia/version && say driver "$l"
else say driver -; fi
if [ -r /usr/local/cuda/version.json ]; then
  say cuda "$(grep -A2 '"cuda"' /usr/local/cuda/version.json | grep -m1 version | cut -c1-80)"
elif [ -r /usr/local/cuda/version.txt ]; then { read -r l; } </usr/local/cuda/version.txt && say cuda "$l"
else say cuda -; fi
if [ -r /opt/amazon/efa_installed_packages ]; then
  { read -r l; } </opt/amazon/efa_installed_packages && say efa_installer "$l"
  say libfabric "$(grep -m1 -o 'libfabric[a-z0-9-]*-aws[-_][0-9][^ ]*' /opt/amazon/efa_installed_packages || echo -)"
  say ofi "$(grep -m1 -o 'libnccl-ofi[a-z-]*[-_][0-9][^ ]*' /opt/amazon/efa_installed_packages || echo -)"
else say efa_installer -; say libfabric -; say ofi -; fi
v=-; if [ -r /sys/module/efa/version ]; then read -r v </sys/module/efa/version; fi; say efa_module "$v"
n=-
for f in /usr/lib/x86_64-linux-gnu/libnccl.so.2.* /usr/lib64/libnccl.so.2.* /usr/lib/aarch64-linux-gnu/libnccl.so.2.* \
  /usr/local/cuda/lib64/libnccl.so.2.* /usr/local/lib/libnccl.so.2.* /opt/nccl/build/lib/libnccl.so.2.*; do
  if [ -e "$f" ]; then n=${f##*/}; break; fi
done
say nccl "$n"
t=-
if have dpkg-query; then t=$(dpkg-query -W -f '${Version}' nvidia-container-toolkit 2>/dev/null || echo -)
elif have rpm; then t=$(rpm -q --qf '%{VERSION}' nvidia-container-toolkit 2>/dev/null || echo -); fi
say container_toolkit "${t:--}"
o=-
if [ -r /etc/os-release ]; then while IFS='=' read -r k w; do if [ "$k" = PRETTY_NAME ]; then o=$w; fi; done </etc/os-release; fi
say os "$o"
say end .
"""

_KEYS = (
    "driver",
    "cuda",
    "efa_installer",
    "libfabric",
    "ofi",
    "efa_module",
    "nccl",
    "container_toolkit",
    "os",
    "end",
)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+[0-9A-Za-z.+~-]*")
_DRIVER = re.compile(r"\s([0-9]{3}\.[0-9]+(?:\.[0-9]+)?)\s")


@dataclass(frozen=True, slots=True)
class Versions:
    """Each as found on the host, None where the host has none: the job's container may bring its own."""

    driver: str | None
    open_module: bool | None
    cuda: str | None
    efa_installer: str | None
    libfabric: str | None
    ofi_plugin: str | None
    efa_module: str | None
    nccl: str | None
    container_toolkit: str | None
    os: str | None


def parse(text: str) -> Versions | Unread:
    said = [line.split(" ", 1) for line in text.splitlines()]
    if tuple(words[0] for words in said) != _KEYS or not text.endswith("\n"):
        return garbled("the reply is not the whole list of versions")
    value = {words[0]: words[1].strip() if len(words) > 1 else "" for words in said}
    driver = _DRIVER.search(f" {value['driver']} ")
    return Versions(
        driver=driver[1] if driver else None,
        open_module="Open Kernel Module" in value["driver"] if driver else None,
        cuda=_version(value["cuda"]),
        efa_installer=_version(value["efa_installer"]),
        libfabric=_version(value["libfabric"]),
        ofi_plugin=_version(value["ofi"]),
        efa_module=None if value["efa_module"] in ("-", "") else value["efa_module"],
        nccl=_version(value["nccl"].removeprefix("libnccl.so.")),
        container_toolkit=_version(value["container_toolkit"]),
        os=value["os"].strip('"') if value["os"] not in ("-", "") else None,
    )


def _version(text: str) -> str | None:
    found = _VERSION.search(text)
    return found[0] if found else None


def fields(facts: Versions) -> Mapping[str, str | None]:
    module = {True: "open", False: "proprietary", None: None}[facts.open_module]
    return {
        "NVIDIA driver": facts.driver or "none",
        "NVIDIA kernel module": module or "none",
        "CUDA": facts.cuda or "none",
        "EFA installer": facts.efa_installer or "none",
        "libfabric": facts.libfabric or "none",
        "OFI NCCL plugin": facts.ofi_plugin or "none",
        "NCCL on the host": facts.nccl or "none",
        "container toolkit": facts.container_toolkit or "none",
        "operating system": facts.os or "none",
    }


COLLECTOR = Collector(
    id="versions",
    what="versions of driver, CUDA, EFA, libfabric, OFI plugin and NCCL on the host: one node that differs slows or breaks all",
    snippet=SNIPPET,
    parse=parse,
    commands=("grep", "cut", "dpkg-query", "rpm"),
    fields=fields,
)
