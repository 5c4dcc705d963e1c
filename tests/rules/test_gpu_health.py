"""Heat by the driver's own reasons, memory errors since the driver came up, rows that wait to be replaced, PCIe width."""

from __future__ import annotations

import pytest

from straggler.engine.judge import Report
from straggler.engine.model import Level
from straggler.engine.rules import gpu_ecc, gpu_heat, gpu_pcie, row_remap
from straggler.engine.rules.base import Rule
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.judging import ids, judged, only

HEALTHY = SAYS["gpu"](SimNode("w-1", 1)).text
COLUMNS = HEALTHY.split("asked gpus\n")[1].splitlines()[0].split(", ")
RULES = (gpu_heat.RULE, gpu_ecc.RULE, row_remap.RULE, gpu_pcie.RULE)


def with_cell(column: str, value: str, gpu: int = 2) -> str:
    """The healthy node with one value of one GPU replaced; a column of the remapped rows is found there."""
    lines = HEALTHY.splitlines()
    head = next(at for at, line in enumerate(lines) if column in line.replace(" [MHz]", "").split(", "))
    cells = lines[head + 1 + gpu].split(", ")
    cells[lines[head].replace(" [MHz]", "").split(", ").index(column)] = value
    lines[head + 1 + gpu] = ", ".join(cells)
    return "\n".join(lines) + "\n"


def judge(rule: Rule, text: str, instance_type: str = "p5.48xlarge") -> Report:
    return judged(rule, {"gpu": text}, instance_type=instance_type)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_healthy_node_passes(rule: Rule) -> None:
    levels = {one.level for one in judge(rule, HEALTHY).findings}
    assert Level.PASS in levels
    assert levels <= {Level.PASS, Level.INFO}


FAULTS = [
    (gpu_heat.RULE, "clocks_event_reasons.hw_thermal_slowdown", "Active", "gpu.thermal-slowdown", Level.WARN),
    (gpu_heat.RULE, "clocks_event_reasons.sw_thermal_slowdown", "Active", "gpu.thermal-slowdown", Level.WARN),
    (gpu_heat.RULE, "clocks_event_reasons.hw_power_brake_slowdown", "Active", "gpu.power-brake", Level.WARN),
    (gpu_heat.RULE, "clocks_event_reasons.hw_slowdown", "Active", "gpu.hw-slowdown", Level.WARN),
    (gpu_heat.RULE, "clocks_event_reasons.sw_power_cap", "Active", "gpu.power-cap", Level.INFO),
    (gpu_heat.RULE, "temperature.gpu", "88", "gpu.hot", Level.WARN),
    (gpu_ecc.RULE, "ecc.errors.uncorrected.volatile.total", "1", "ecc.uncorrectable", Level.FAIL),
    (gpu_ecc.RULE, "ecc.errors.uncorrected.aggregate.total", "7", "ecc.history", Level.INFO),
    (gpu_ecc.RULE, "ecc.mode.current", "Disabled", "ecc.off", Level.WARN),
    (row_remap.RULE, "remapped_rows.pending", "Yes", "row-remap.pending", Level.FAIL),
    (row_remap.RULE, "remapped_rows.pending", "1", "row-remap.pending", Level.FAIL),
    (row_remap.RULE, "remapped_rows.failure", "1", "row-remap.failed", Level.FAIL),
    (gpu_pcie.RULE, "pcie.link.width.current", "8", "gpu.pcie-width", Level.WARN),
]


@pytest.mark.parametrize(("rule", "column", "value", "finding", "level"), FAULTS)
def test_one_bad_value_of_one_gpu_is_found_and_named(
    rule: Rule, column: str, value: str, finding: str, level: Level
) -> None:
    found = only(judge(rule, with_cell(column, value)), finding)
    assert found.level is level
    if level.is_fault:
        assert "0000:75:00" in found.details[0][1]
        assert found.evidence


@pytest.mark.parametrize(
    ("rule", "column"),
    [
        (gpu_heat.RULE, "clocks_event_reasons.hw_thermal_slowdown"),
        (gpu_ecc.RULE, "ecc.errors.uncorrected.volatile.total"),
        (row_remap.RULE, "remapped_rows.pending"),
        (row_remap.RULE, "remapped_rows.failure"),
        (gpu_pcie.RULE, "pcie.link.width.current"),
    ],
)
@pytest.mark.parametrize("word", ["[N/A]", "[Unknown Error]", "[GPU requires reset]", "ERR!"])
def test_one_gpu_that_does_not_tell_is_unknown_not_a_pass(rule: Rule, column: str, word: str) -> None:
    found = judge(rule, with_cell(column, word)).findings
    assert Level.UNKNOWN in {one.level for one in found}
    assert Level.PASS not in {one.level for one in found}


def test_corrected_errors_are_not_judged() -> None:
    assert not ids(judge(gpu_ecc.RULE, with_cell("ecc.errors.corrected.volatile.total", "5000")))


def test_degrees_are_judged_only_where_the_type_has_a_published_limit() -> None:
    assert "gpu.hot" not in ids(judge(gpu_heat.RULE, with_cell("temperature.gpu", "95"), "x9.unheard"))


def test_heat_is_one_finding_even_where_the_collective_flag_and_the_degrees_say_it_too() -> None:
    text = with_cell("clocks_event_reasons.hw_thermal_slowdown", "Active")
    text = text.replace("Not Active, Active, Not Active", "Active, Active, Not Active", 1)
    assert ids(judge(gpu_heat.RULE, text)) - {"gpu.power-cap"} == {"gpu.thermal-slowdown"}


def test_a_rows_query_that_failed_is_unknown_for_every_gpu() -> None:
    head, _ = HEALTHY.split("asked rows\n")
    text = head + "asked rows\nnvidia-smi: unrecognized option\ncode 2\nend\n"
    found = only(judge(row_remap.RULE, text), "row-remap.pending")
    assert found.level is Level.UNKNOWN


def test_a_gpu_that_is_missing_from_the_rows_query_is_unknown_by_its_address() -> None:
    head, rows = HEALTHY.split("asked rows\n")
    kept = [line for line in rows.splitlines() if "0000:75:00" not in line.lower()]
    found = only(judge(row_remap.RULE, f"{head}asked rows\n" + "\n".join(kept) + "\n"), "row-remap.pending")
    assert found.level is Level.UNKNOWN
    assert "0000:75:00" in found.details[0][1]


def test_a_node_without_gpus_gets_no_verdict_on_heat_or_memory() -> None:
    for rule in RULES:
        assert not judge(rule, "bus read\nend\n").findings
