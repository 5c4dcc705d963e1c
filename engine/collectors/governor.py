"""The frequency governor of every CPU of a node, not of cpu0 alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import Collector, garbled
from straggler.engine.model import Unread

LINE = re.compile(r"(cpu[0-9]+) ([a-z_]+|-|\?)")

SNIPPET = r"""
cd /sys/devices/system/cpu || absent "this kernel shows no CPUs in /sys"
for c in cpu[0-9]*; do
  g=- f=$c/cpufreq/scaling_governor
  if [ -e "$f" ]; then read -r g <"$f" || g='?'; fi
  echo "$c $g"
done
echo end
"""


@dataclass(frozen=True, slots=True)
class Governors:
    """Governor by CPU; `-`: the kernel offers none, `?`: there is one and it would not show it."""

    by_cpu: Mapping[str, str]


def parse(text: str) -> Governors | Unread:
    """All lines are ours and whole, or the reply is unread: a banner, half a line or silence is no shorter list."""
    *said, end = text.splitlines() or [""]
    lines = [LINE.fullmatch(line) for line in said]
    by_cpu = {line[1]: line[2] for line in lines if line}
    if end != "end" or not said or len(by_cpu) != len(said):
        return garbled("the reply is not a whole list of CPUs")
    return Governors(by_cpu)


def fields(facts: Governors) -> Mapping[str, str | None]:
    shown = sorted(set(facts.by_cpu.values()))
    return {"CPUs": str(len(facts.by_cpu)), "CPU governor": None if "?" in shown else "/".join(shown)}


COLLECTOR = Collector(
    id="governor",
    what="the frequency governor of every CPU: CPUs that clock down feed their GPUs late",
    snippet=SNIPPET,
    parse=parse,
    commands=(),
    fields=fields,
)
