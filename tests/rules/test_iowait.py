"""iowait and steal over a sample, against the recorded readings of iostat; one waiting CPU among many is told, not accused."""

from __future__ import annotations

import pytest

from straggler.engine.judge import Report
from straggler.engine.model import Level
from straggler.engine.rules import iowait
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import Case, cases
from tests.support.judging import ids, judged


def sample(*cpus: tuple[float, float]) -> str:
    """(iowait, steal) in percent of each CPU over 10,000 ticks, idle for the rest."""
    rows = [(0, 0, 0, 10_000 - int(100 * (w + s)), int(100 * w), 0, 0, int(100 * s)) for w, s in cpus]
    table = [
        ("cpu", tuple(map(sum, zip(*rows, strict=True)))),
        *((f"cpu{at}", row) for at, row in enumerate(rows)),
    ]
    zero = "".join(f"{name} 0 0 0 0 0 0 0 0\n" for name, _ in table)
    return (
        f"first\n{zero}second\n"
        + "".join(f"{name} {' '.join(map(str, row))}\n" for name, row in table)
        + "end\n"
    )


def said(*cpus: tuple[float, float]) -> Report:
    return judged(iowait.RULE, {"cpu-load": sample(*cpus)})


@pytest.mark.parametrize(
    ("cpus", "found"),
    [
        ([(19.9, 0)], set()),
        ([(20, 0)], {"cpu.iowait-high"}),
        ([(0, 4.9)], set()),
        ([(0, 5)], {"cpu.steal-high"}),
        ([(46, 9)], {"cpu.iowait-high", "cpu.steal-high"}),
        ([(0, 0)] * 191 + [(98, 0)], {"cpu.iowait-one"}),
    ],
    ids=["below", "at-the-limit", "little-steal", "steal", "both", "one-stuck-reader-of-192"],
)
def test_a_sample_is_judged_by_its_shares(cpus: list[tuple[float, float]], found: set[str]) -> None:
    assert ids(said(*cpus)) == found


def test_a_single_waiting_cpu_is_information() -> None:
    report = said(*[(0, 0)] * 191, (98, 0))
    assert {one.level for one in report.findings} == {Level.INFO}


@pytest.mark.parametrize(
    "case", [one for one in cases("iostat") if one.expected["last_cpu"]], ids=lambda one: one.name
)
def test_the_recorded_shares_lead_to_the_recorded_findings(case: Case) -> None:
    cpu = case.expected["last_cpu"]
    found = ids(said((cpu["iowait"], cpu["steal"])))
    assert {one for one in case.expected["findings"] if one.startswith("cpu.")} <= found
    assert not found & set(case.expected["not"])


def test_a_healthy_simulated_node_passes() -> None:
    assert ids(judged(iowait.RULE, {"cpu-load": SAYS["cpu-load"](SimNode("w-1", 1)).text})) == set()
