"""What nvidia-smi and the PCI bus say becomes facts, or a reason why not; a value that is not there is never 0."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from straggler.engine.collectors import gpu
from straggler.engine.collectors.gpu import Gpus
from straggler.engine.model import Status, Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import Case, cases
from tests.support.fake_tools import FakeTools, Said

BUS = "bus read\npci 0000:53:00.0 nvidia nvidia\n"
COLUMNS = {
    "temperature.gpu": "temperature",
    "index": "index",
    "name": "name",
    "pstate": "pstate",
    "driver_version": "driver",
    "ecc.errors.uncorrected.volatile.total": "uncorrected",
    "gpu_recovery_action": "recovery",
}


def reply(table: str, rows: str = "", code: int = 0, bus: str = BUS) -> str:
    rows = rows or "gpu_bus_id, remapped_rows.pending, remapped_rows.failure\n00000000:53:00.0, 0, 0\n"
    return f"{bus}asked gpus\n{table}code {code}\nasked rows\n{rows}code {code}\nend\n"


def read(text: str) -> Gpus:
    facts = gpu.COLLECTOR.read(text)
    assert isinstance(facts, Gpus), facts
    return facts


@pytest.mark.parametrize(
    "case", [one for one in cases("nvidia-smi-csv") if "noheader" not in one.name], ids=lambda one: one.name
)
def test_a_recorded_query_is_read_as_a_careful_reader_does(case: Case) -> None:
    facts = read(reply(case.text, case.text))
    for row, one, remap in zip(case.expected["rows"], facts.gpus, facts.rows, strict=True):
        for column, field in COLUMNS.items():
            assert getattr(one, field) == row[column]
        assert one.mig is (row["mig.mode.current"] == "Enabled")
        assert (remap.pending, remap.failed) == (
            bool(row["remapped_rows.pending"]),
            bool(row["remapped_rows.failure"]),
        )
        assert one.words["utilization.gpu"] == "N/A"


def test_a_gpu_that_requires_a_reset_has_no_temperature_rather_than_zero() -> None:
    [case] = [one for one in cases("nvidia-smi-csv") if "noheader" in one.name]
    facts = read(reply("index, name, temperature.gpu, power.draw, clocks.sm\n" + case.text))
    assert [one.temperature for one in facts.gpus] == [row["2"] for row in case.expected["rows"]]
    assert [one.said(gpu.RESET) for one in facts.gpus] == [False, True, False]


def test_gpus_without_a_handle_are_evidence_with_their_addresses_in_both_spellings() -> None:
    [case] = cases("nvidia-smi")
    facts = read(reply(case.text, case.text, code=255))
    assert list(facts.handles) == [one["bus_id"].lower()[:-2] for one in case.expected["unreachable"]]
    assert facts.gpus == ()


@pytest.mark.parametrize(
    "word",
    ["[N/A]", "[Unknown Error]", "[GPU is lost]", "[GPU requires reset]", "ERR!", "", "[Not Supported]"],
)
def test_a_word_in_place_of_a_count_is_kept_as_a_word_and_is_no_count(word: str) -> None:
    head = "index, pci.bus_id, ecc.errors.uncorrected.volatile.total, clocks_event_reasons.hw_slowdown\n"
    [one] = read(reply(f"{head}0, 00000000:53:00.0, {word}, {word}\n")).gpus
    assert one.uncorrected is None
    assert one.reasons == {"hw_slowdown": None}
    assert one.words.get("ecc.errors.uncorrected.volatile.total", "") == word.strip("[]")


@pytest.mark.parametrize(
    ("word", "flag"), [("Yes", True), ("1", True), ("No", False), ("0", False), ("[N/A]", None)]
)
def test_a_pending_row_is_seen_whether_the_driver_says_yes_or_one(word: str, flag: bool | None) -> None:
    rows = f"gpu_bus_id, remapped_rows.pending, remapped_rows.failure\n00000000:53:00.0, {word}, {word}\n"
    [remap] = read(reply("index, name\n0, NVIDIA H100\n", rows)).rows
    assert (remap.pending, remap.failed) == (flag, flag)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "end\n",
        "bus read\n",
        BUS + "asked gpus\nindex, name\n0, H100\n",
        BUS + "asked gpus\nindex, name\n0, H100\ncode 0\nend\n",
        "Last login: Mon\n" + BUS + "end\n",
        BUS + "pci what is this\nend\n",
        (BUS + "end\n")[:-1],
    ],
)
def test_a_reply_that_is_not_whole_is_unread(text: str) -> None:
    assert isinstance(gpu.COLLECTOR.read(text), Unread)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_gives_facts_or_a_reason_never_an_exception(text: str) -> None:
    for whole in (text, reply(text), BUS + text + "end\n"):
        facts = gpu.COLLECTOR.read(whole)
        assert isinstance(facts, Gpus | Unread)


@given(st.integers(1, 4000))
def test_a_cut_anywhere_never_loses_a_gpu_silently(at: int) -> None:
    text = SAYS["gpu"](SimNode("w-1", 1)).text
    facts = gpu.COLLECTOR.read(text[:at])
    assert isinstance(facts, Unread) or text[:at] == text


HEALTHY = SAYS["gpu"](SimNode("w-1", 1)).text.split("asked gpus\n")[1]
TABLE, _, ROWS = HEALTHY.removesuffix("code 0\nend\n").partition("code 0\nasked rows\n")
FULL = (
    "index,name,pci.bus_id,driver_version,pstate,temperature.gpu,temperature.memory,mig.mode.current,ecc.mode.current,"
    "pcie.link.width.current,pcie.link.width.max,clocks.sm,clocks.max.sm,ecc.errors.corrected.volatile.total,"
    "ecc.errors.uncorrected.volatile.total,ecc.errors.corrected.aggregate.total,ecc.errors.uncorrected.aggregate.total"
)
REASONS = "hw_slowdown,hw_thermal_slowdown,sw_thermal_slowdown,hw_power_brake_slowdown,sw_power_cap"
CSV = "--format=csv,nounits"


def ask(prefix: str, *more: str) -> tuple[str, str]:
    reasons = [f"{prefix}.{one}" for one in REASONS.split(",")]
    return f"--query-gpu={','.join([FULL, *reasons, *more])}", CSV


REMAPPED = (
    "--query-remapped-rows=gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows.failure",
    CSV,
)


def invalid(field: str) -> Said:
    return Said(f'Field "{field}" is not a valid field to query.\n\n', code=2)


def test_the_newest_driver_answers_the_first_question(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    tools.tool("nvidia-smi", {ask("clocks_event_reasons", "gpu_recovery_action"): TABLE, REMAPPED: ROWS})
    block = tools.run(gpu.COLLECTOR)
    assert (block.status, block.errors) == (Status.OK, "")
    assert "asked gpus\n" + HEALTHY in block.text
    assert len(read(block.text).gpus) == 8


def test_an_old_driver_that_refuses_unknown_fields_is_asked_again_with_the_names_it_knows(
    tmp_path: Path,
) -> None:
    tools = FakeTools(tmp_path)
    old = (
        TABLE.replace("clocks_event_reasons", "clocks_throttle_reasons")
        .replace(", gpu_recovery_action", "")
        .replace(", None\n", "\n")
    )
    tools.tool(
        "nvidia-smi",
        {
            ask("clocks_event_reasons", "gpu_recovery_action"): invalid("gpu_recovery_action"),
            ask("clocks_event_reasons"): invalid("clocks_event_reasons.hw_slowdown"),
            ask("clocks_throttle_reasons"): old,
            REMAPPED: ROWS,
        },
    )
    facts = read(tools.run(gpu.COLLECTOR).text)
    assert len(facts.gpus) == 8
    assert facts.gpus[0].reasons["hw_thermal_slowdown"] is False


def test_a_driver_that_is_not_loaded_is_told_in_its_own_words(tmp_path: Path) -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    tools = FakeTools(tmp_path)
    tools.tool("nvidia-smi", {("*",): Said(said, code=9)})
    facts = read(tools.run(gpu.COLLECTOR).text)
    assert facts.smi
    assert facts.trouble == said.strip()


def test_a_node_without_nvidia_smi_still_tells_its_pci_bus(tmp_path: Path) -> None:
    facts = read(FakeTools(tmp_path).run(gpu.COLLECTOR, hide=["nvidia-smi"]).text)
    assert not facts.smi
    assert facts.bus is not None


def test_a_tool_that_fails_in_a_way_nobody_recorded_is_not_read_as_a_gpu(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    tools.tool("nvidia-smi", {("--version",): "x"})
    facts = read(tools.run(gpu.COLLECTOR).text)
    assert facts.gpus == ()
    assert "not recorded" in facts.trouble


def test_the_snippet_runs_under_busybox_too(tmp_path: Path) -> None:
    if not Path("/bin/busybox").exists():
        pytest.skip("no busybox on this machine")
    tools = FakeTools(tmp_path)
    tools.tool("nvidia-smi", {ask("clocks_event_reasons", "gpu_recovery_action"): TABLE, REMAPPED: ROWS})
    assert len(read(tools.run(gpu.COLLECTOR, shell="/bin/busybox sh").text).gpus) == 8


@pytest.mark.parametrize("word", ["-1", "1.5", "nan", "1e9", "99999999999999999999", "+1", "0x1"])
def test_what_is_no_count_is_neither_a_fault_nor_a_zero(word: str) -> None:
    [row] = read(reply(f"pci.bus_id, ecc.errors.uncorrected.volatile.total\n00000000:53:00.0, {word}\n")).gpus
    assert row.uncorrected is None
