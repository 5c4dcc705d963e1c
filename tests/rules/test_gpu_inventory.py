"""Seven of eight is a fault, a dead driver is no CPU node, and a CPU or Trainium node is no fault."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine.judge import Report
from straggler.engine.model import Level, Vantage
from straggler.engine.rules import gpu_ecc, gpu_heat, gpu_inventory, gpu_pcie, row_remap
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.judging import ids, judged, only

HEALTHY = SAYS["gpu"](SimNode("w-1", 1)).text
FELL = frozenset({"xid-79"})
DEVICE = "pci 0000:53:00.0 nvidia nvidia\n"


def inventory(text: str, instance_type: str | None = "p5.48xlarge", **more: str) -> Report:
    return judged(gpu_inventory.RULE, {"gpu": text, **more}, instance_type=instance_type)


def without_rows(*numbers: int) -> str:
    lines = HEALTHY.splitlines()
    at = lines.index("asked gpus") + 2
    return "\n".join(line for number, line in enumerate(lines) if number - at not in numbers) + "\n"


def test_all_eight_pass() -> None:
    assert only(inventory(HEALTHY), "gpu.count").level is Level.PASS


def test_seven_of_eight_is_a_failure_though_nvidia_smi_is_content() -> None:
    found = only(inventory(without_rows(3)), "gpu.count")
    assert found.level is Level.FAIL
    assert found.details[0][1] == "7 of the 8 GPUs of a p5.48xlarge, 8 on the PCI bus"


def test_a_type_nobody_knows_is_held_to_its_pci_bus() -> None:
    assert only(inventory(without_rows(3), "x9.unheard"), "gpu.count").level is Level.FAIL
    assert only(inventory(HEALTHY, "x9.unheard"), "gpu.count").level is Level.PASS


def test_a_job_step_that_sees_two_gpus_misses_none() -> None:
    report = judged(gpu_inventory.RULE, {"gpu": without_rows(*range(6))}, vantage=Vantage.JOB_STEP)
    assert only(report, "gpu.count").level is Level.INFO


def test_a_lost_gpu_is_named_and_counted_once() -> None:
    text = SAYS["gpu"](SimNode("w-1", 1, faults=FELL)).text
    report = inventory(text)
    assert ids(report) == {"gpu.lost", "gpu.handle-unknown-error"}
    assert only(report, "gpu.lost").level is Level.FAIL
    assert "7 others answer" in only(report, "gpu.lost").details[0][1]


def test_a_gpu_whose_fall_the_kernel_log_tells_is_left_to_the_xid() -> None:
    node = SimNode("w-1", 1, faults=FELL)
    report = inventory(SAYS["gpu"](node).text, **{"kernel-log": SAYS["kernel-log"](node).text})
    assert not [one for one in report.findings if one.level is Level.FAIL]


def test_a_second_missing_gpu_is_not_hidden_behind_the_fallen_one() -> None:
    node = SimNode("w-1", 1, faults=FELL)
    lines = SAYS["gpu"](node).text.splitlines()
    at = lines.index("asked gpus") + 2
    text = "\n".join([*lines[:at], *lines[at + 1 :]]) + "\n"
    report = inventory(text, **{"kernel-log": SAYS["kernel-log"](node).text})
    assert only(report, "gpu.count").level is Level.FAIL


def test_a_second_missing_gpu_is_not_hidden_behind_one_without_a_handle() -> None:
    lines = SAYS["gpu"](SimNode("w-1", 1, faults=FELL)).text.splitlines()
    at = lines.index("asked gpus") + 2
    assert {"gpu.lost", "gpu.count"} <= ids(inventory("\n".join([*lines[:at], *lines[at + 1 :]]) + "\n"))


@pytest.mark.parametrize(
    ("said", "finding"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "gpu.driver-dead"),
        ("No devices were found", "gpu.driver-dead"),
        ("Failed to initialize NVML: Driver/library version mismatch", "nvml.driver-mismatch"),
        ("", "gpu.driver-dead"),
    ],
)
def test_a_dead_driver_on_a_gpu_node_is_a_failure(said: str, finding: str) -> None:
    table = f"{said}\n" if said else ""
    text = f"bus read\n{DEVICE * 1}asked gpus\n{table}code 9\nasked rows\n{table}code 9\nend\n"
    assert only(inventory(text), finding).level is Level.FAIL


def test_gpus_without_any_driver_installed_are_a_failure_not_a_cpu_node() -> None:
    assert only(inventory(f"bus read\n{DEVICE}end\n"), "gpu.driver-dead").level is Level.FAIL


@pytest.mark.parametrize("kind", ["c7i.4xlarge", None])
def test_a_node_without_accelerators_is_told_apart_not_failed(kind: str | None) -> None:
    [found] = inventory("bus read\nend\n", kind).findings
    assert (found.id, found.level) == ("gpu.none", Level.INFO)


def test_a_trainium_node_is_told_apart_not_failed() -> None:
    [found] = inventory("bus read\npci 0000:10:1c.0 neuron other\nend\n", "trn1.32xlarge").findings
    assert (found.id, found.level) == ("gpu.neuron", Level.INFO)


def test_a_gpu_type_with_nothing_on_its_bus_is_a_failure() -> None:
    assert only(inventory("bus read\nend\n"), "gpu.count").level is Level.FAIL


def test_a_hidden_bus_and_no_tool_is_unknown() -> None:
    assert only(inventory("bus hidden\nend\n", None), "gpu.count").level is Level.UNKNOWN


@pytest.mark.parametrize(
    ("word", "finding", "level"),
    [
        ("[GPU requires reset]", "gpu.requires-reset", Level.FAIL),
        ("[GPU is lost]", "gpu.lost", Level.FAIL),
        ("[Unknown Error]", "gpu.unknown-error-fields", Level.WARN),
        ("ERR!", "gpu.unknown-error-fields", Level.WARN),
    ],
)
def test_a_gpu_that_answers_with_such_a_word_is_named(word: str, finding: str, level: Level) -> None:
    lines = HEALTHY.splitlines()
    at = lines.index("asked gpus") + 3
    cells = lines[at].split(", ")
    lines[at] = ", ".join([*cells[:5], *[word] * (len(cells) - 5)])
    found = only(inventory("\n".join(lines) + "\n"), finding)
    assert found.level is level
    assert "GPU 1 (0000:64:00)" in found.details[0][1]


def test_models_that_differ_and_mig_are_told() -> None:
    assert "gpu.mixed-models" in ids(inventory(HEALTHY.replace("H100 80GB HBM3", "H100 NVL", 1)))
    assert only(inventory(HEALTHY.replace("Disabled", "Enabled")), "gpu.mig-enabled").level is Level.INFO


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_no_text_from_a_node_makes_any_gpu_check_pass(text: str) -> None:
    for rule in (gpu_inventory.RULE, gpu_heat.RULE, gpu_ecc.RULE, row_remap.RULE, gpu_pcie.RULE):
        whole = f"bus read\n{DEVICE}asked gpus\n{text}\ncode 0\nasked rows\n{text}\ncode 0\nend\n"
        for one in (text, whole):
            assert all(found.level is not Level.PASS for found in judged(rule, {"gpu": one}).findings)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("", 137),
        ("", 1),
        ("Failed to initialize NVML: Insufficient Permissions", 4),
        ("sh: nvidia-smi: Permission denied", 126),
        ('Field "clocks_event_reasons.hw_slowdown" is not a valid field to query.', 2),
        ("nvidia-smi: error while loading shared libraries: libdl.so.2: cannot open shared object file", 127),
        ("Index; Bezeichnung; Treiber", 0),
    ],
)
def test_a_tool_that_says_nothing_of_the_driver_accuses_no_driver(said: str, code: int) -> None:
    table = f"{said}\n" if said else ""
    text = f"bus read\n{DEVICE}asked gpus\n{table}code {code}\nasked rows\n{table}code {code}\nend\n"
    report = inventory(text)
    assert not [one for one in report.findings if one.level is not Level.UNKNOWN]
    assert f"ended with {code}" in only(report, "gpu.count").details[0][1]


def test_gpus_that_no_bus_shows_are_not_counted_as_all_of_it() -> None:
    text = "".join(line for line in HEALTHY.splitlines(keepends=True) if not line.startswith("pci "))
    assert only(inventory(text, None), "gpu.count").level is Level.UNKNOWN


def test_a_row_that_is_torn_is_no_missing_gpu_and_one_that_is_not_there_is() -> None:
    lines = HEALTHY.splitlines()
    at = lines.index("asked gpus") + 3
    torn = "\n".join([*lines[:at], lines[at][: len(lines[at]) // 2], *lines[at + 1 :]]) + "\n"
    assert only(inventory(torn), "gpu.count").level is Level.UNKNOWN
    gone = "\n".join([*lines[:at], *lines[at + 1 :]]) + "\n"
    assert only(inventory(gone), "gpu.count").level is Level.FAIL
