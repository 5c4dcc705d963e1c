"""The software stack as the host has it: driver, CUDA, EFA installer, libfabric, OFI plugin, NCCL, container toolkit, OS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

# Files and names only: no tool has to work for its version to be known.
SNIPPET = r"""
say() { printf '%s %s\n' "$1" "$2"; }
first() {
  l='?'
  { read -r l <"$2"; } 2>/dev/null || : "${l:=?}"
  say "$1" "$l"
}
if [ -e /proc/driver/nvidia/version ]; then first driver /proc/driver/nvidia/version; else say driver -; fi
if [ -e /usr/local/cuda/version.json ]; then
  say cuda "$(grep -A2 '"cuda"' /usr/local/cuda/version.json | grep -m1 version || echo '?')"
elif [ -e /usr/local/cuda/version.txt ]; then first cuda /usr/local/cuda/version.txt
else say cuda -; fi
m=/opt/amazon/efa_installed_packages
if [ -r "$m" ]; then
  first efa_installer "$m"
  say libfabric "$(grep -m1 -o 'libfabric[a-z0-9-]*-aws[-_][0-9][^ ]*' "$m" || echo -)"
  say ofi "$(grep -m1 -o -E '(libnccl-ofi|aws-ofi-nccl)[a-z-]*[-_][0-9][^ ]*' "$m" || echo -)"
else
  v=-; if [ -e "$m" ]; then v='?'; fi
  say efa_installer "$v"; say libfabric "$v"; say ofi "$v"
fi
if [ -e /sys/module/efa/version ]; then first efa_module /sys/module/efa/version; else say efa_module -; fi
n=-
for f in /usr/lib/x86_64-linux-gnu/libnccl.so.2.* /usr/lib64/libnccl.so.2.* /usr/lib/aarch64-linux-gnu/libnccl.so.2.* \
  /usr/local/cuda/lib64/libnccl.so.2.* /usr/local/lib/libnccl.so.2.* /opt/nccl/build/lib/libnccl.so.2.*; do
  if [ -e "$f" ]; then n=${f##*/}; break; fi
done
say nccl "$n"
t='?'
if have dpkg-query; then t=$(dpkg-query -W -f '${Version} ' nvidia-container-toolkit 2>/dev/null) || t=-
elif have rpm; then t=$(rpm -q --qf '%{VERSION} ' nvidia-container-toolkit 2>/dev/null) || t=-; fi
say container_toolkit "${t:--}"
o='?'
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
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})+(?:amzn[0-9.]{1,12})?")
_DRIVER = re.compile(r"\s([0-9]{3}\.[0-9]{1,6}(?:\.[0-9]{1,6})?)\s")
_LONGEST = 300
"""Characters that are looked at of what should be one version."""

HIDDEN, ABSENT = "?", "-"


@dataclass(frozen=True, slots=True)
class Versions:
    """Each as found; "" where the host has none (the job's container may bring its own), None where it would not show.

    `open_module`: whether the loaded NVIDIA kernel module is the open one; None without a driver.
    """

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
    value = {words[0]: words[1].strip()[:_LONGEST] if len(words) > 1 else "" for words in said}
    driver = _found(value["driver"], _DRIVER)
    return Versions(
        driver=driver,
        open_module="Open Kernel Module" in value["driver"] if driver else None,
        cuda=_found(value["cuda"]),
        efa_installer=_found(value["efa_installer"]),
        libfabric=_found(value["libfabric"]),
        ofi_plugin=_found(value["ofi"]),
        efa_module=_plain(value["efa_module"]),
        nccl=_found(value["nccl"].removeprefix("libnccl.so.")),
        container_toolkit=_found(value["container_toolkit"]),
        os=_plain(value["os"].strip('"')),
    )


def _found(text: str, pattern: re.Pattern[str] = _VERSION) -> str | None:
    """The version in a line; a line without one was not understood, which is not the same as none being there."""
    if text == ABSENT:
        return ""
    found = pattern.search(f" {text} ")
    return found[found.re.groups] if found else None


def _plain(text: str) -> str | None:
    return "" if text == ABSENT else None if text in (HIDDEN, "") else text


def fields(facts: Versions) -> Mapping[str, str | None]:
    module = {True: "open", False: "proprietary", None: None if facts.driver is None else ""}[
        facts.open_module
    ]
    shown = {
        "NVIDIA driver": facts.driver,
        "NVIDIA kernel module": module,
        "CUDA": facts.cuda,
        "EFA installer": facts.efa_installer,
        "libfabric": facts.libfabric,
        "OFI NCCL plugin": facts.ofi_plugin,
        "NCCL on the host": facts.nccl,
        "container toolkit": facts.container_toolkit,
        "operating system": facts.os,
    }
    return {name: "none" if value == "" else value for name, value in shown.items()}


COLLECTOR = Collector(
    id="versions",
    what="versions of driver, CUDA, EFA, libfabric, OFI plugin and NCCL on the host: one node that differs slows or breaks all",
    snippet=SNIPPET,
    parse=parse,
    commands=("grep", "dpkg-query", "rpm"),
    fields=fields,
)
