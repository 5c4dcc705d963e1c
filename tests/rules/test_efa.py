"""EFA is judged by what the type should have: a missing one is a fault where it belongs, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.judge import Report
from straggler.engine.model import Level, Vantage
from straggler.engine.rules import efa_devices, efa_ports, efa_provider
from straggler.engine.rules.base import Rule
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import Case, cases
from tests.support.judging import ids, judged, only

P5 = SAYS["efa"](SimNode("w-1", 1)).text
FABRIC = SAYS["libfabric"](SimNode("w-1", 1)).text


def without(text: str, count: int) -> str:
    """The listing with its first devices gone."""
    lines = text.splitlines(keepends=True)
    return "".join([lines[0], *lines[1 + 2 * count :]])


def levels(report: Report) -> set[tuple[str, Level]]:
    return {(one.id, one.level) for one in report.findings}


def devices(text: str, kind: str | None = "p5.48xlarge", vantage: Vantage = Vantage.HOST_ROOT) -> Report:
    return judged(efa_devices.RULE, {"efa": text}, instance_type=kind, vantage=vantage)


@pytest.mark.parametrize(
    "kind", ["p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "trn1.32xlarge"]
)
def test_a_whole_node_of_a_type_with_efa_passes(kind: str) -> None:
    node = SimNode("w-1", 1, kind)
    replies = {name: SAYS[name](node).text for name in ("efa", "libfabric")}
    for rule in (efa_devices.RULE, efa_ports.RULE, efa_provider.RULE):
        assert {level for _, level in levels(judged(rule, replies, instance_type=kind))} == {Level.PASS}


@pytest.mark.parametrize("kind", ["m5.xlarge", "c5.4xlarge", "t3.large", "inf2.48xlarge"])
def test_a_node_whose_type_has_no_efa_is_not_accused(kind: str) -> None:
    text = SAYS["efa"](SimNode("w-1", 1, kind)).text
    for rule in (efa_devices.RULE, efa_ports.RULE, efa_provider.RULE):
        assert {level for _, level in levels(judged(rule, {"efa": text}, instance_type=kind))} == {Level.INFO}


def test_an_efa_type_with_neither_driver_nor_device_fails() -> None:
    finding = only(devices("module none\nend\n"), "efa.module-missing")
    assert (finding.level, finding.also) == (Level.FAIL, ("rdma.not-found",))


def test_one_missing_device_fails_with_both_numbers() -> None:
    [(_, detail)] = only(devices(without(P5, 1)), "efa.devices").details
    assert detail == "31 of 32 EFA devices on p5.48xlarge"


def test_mlx5_devices_do_not_stand_in_for_missing_efa_ones() -> None:
    text = without(P5, 1).replace(
        "end\n", "device mlx5_0 mlx5_core 1\nport mlx5_0 1 4: ACTIVE / 5: LinkUp\nend\n"
    )
    assert only(devices(text), "efa.devices").level is Level.FAIL


@pytest.mark.parametrize(
    ("text", "kind", "vantage"),
    [
        (without(P5, 1), "p5.48xlarge", Vantage.CONTAINER),
        (P5.replace("module efa 2.13.2g", "module ?"), "p5.48xlarge", Vantage.HOST_ROOT),
        (P5.replace(" efa 0.0.0.0", " ? 0.0.0.0", 1), "p5.48xlarge", Vantage.HOST_ROOT),
    ],
    ids=["a-container-sees-a-part", "no-sys-module", "a-driver-that-does-not-show"],
)
def test_what_may_be_hidden_is_unknown(text: str, kind: str, vantage: Vantage) -> None:
    assert levels(devices(text, kind, vantage)) == {("efa.devices", Level.UNKNOWN)}


@pytest.mark.parametrize("kind", [None, "x9.made-up"])
def test_an_unknown_type_is_told_and_not_judged(kind: str | None) -> None:
    assert levels(devices(P5, kind)) == {("efa.devices", Level.INFO)}


# Ports

STATES = {"ACTIVE": "4: ACTIVE", "DOWN": "1: DOWN", "INIT": "2: INIT"}


def ports(*states: str) -> Report:
    lines = [f"device d{at} efa -\nport d{at} 1 {state} / 5: LinkUp" for at, state in enumerate(states)]
    return judged(efa_ports.RULE, {"efa": "\n".join(["module efa 1", *lines, "end\n"])})


@pytest.mark.parametrize("at", range(4))
def test_a_port_that_is_down_is_found_wherever_it_stands(at: int) -> None:
    states = ["4: ACTIVE"] * 4
    states[at] = "1: DOWN"
    finding = only(ports(*states), "rdma.port-down")
    assert (finding.level, finding.values["device"]) == (Level.FAIL, f"d{at}")


@pytest.mark.parametrize(
    ("states", "levels_"),
    [
        (("4: ACTIVE", "?"), {Level.UNKNOWN}),
        (("1: DOWN", "?"), {Level.FAIL, Level.UNKNOWN}),
        (("2: INIT",), {Level.FAIL}),
    ],
    ids=["one-hidden", "one-down-one-hidden", "not-yet-up"],
)
def test_every_port_counts(states: tuple[str, ...], levels_: set[Level]) -> None:
    assert {level for _, level in levels(ports(*states))} == levels_


def test_a_device_without_a_port_is_unknown() -> None:
    assert levels(judged(efa_ports.RULE, {"efa": "module efa 1\ndevice d0 efa -\nend\n"})) == {
        ("efa.ports", Level.UNKNOWN)
    }


@pytest.mark.parametrize("case", cases("rdma"), ids=lambda one: one.name)
def test_the_states_of_recorded_devices_lead_to_the_recorded_findings(case: Case) -> None:
    found = case.expected["devices"]
    lines = [
        f"device {one['name']} efa 0.0.0.0\nport {one['name']} {one['port']} {state(one)}" for one in found
    ]
    text = "\n".join(["module efa 1" if found else "module none", *lines, "end\n"])
    said: set[str] = set()
    for rule in (efa_ports.RULE, efa_devices.RULE):
        said |= ids(judged(rule, {"efa": text}, instance_type="p5.48xlarge"))
    assert set(case.expected["findings"]) <= said
    assert not said & set(case.expected["not"])


def state(one: dict[str, Any]) -> str:
    return f"{STATES[one['state']]} / 5: {one['phys_state']}"


# libfabric


def provider(fabric: str | None, text: str = P5) -> Report:
    return judged(efa_provider.RULE, {"efa": text} | ({} if fabric is None else {"libfabric": fabric}))


def fi_info(said: str, code: int = 0) -> str:
    return f"fi_info begin\n{said.rstrip()}\nfi_info end {code}\n"


def test_a_device_that_libfabric_does_not_offer_is_a_warning() -> None:
    lost = P5.splitlines()[1].split()[1]
    lines = FABRIC.split("provider: efa\n")
    report = provider("provider: efa\n".join(one for one in lines if f" {lost}-" not in one))
    assert levels(report) == {("efa.not-found", Level.WARN)}


@pytest.mark.parametrize("case", cases("fi-info"), ids=lambda one: one.name)
def test_a_recorded_fi_info_leads_to_the_recorded_finding(case: Case) -> None:
    names = case.expected["devices"] or ["rdmap0s0"]
    lines = [f"device {name} efa -\nport {name} 1 4: ACTIVE / 5: LinkUp" for name in names]
    report = provider(fi_info(case.text), "\n".join(["module efa 1", *lines, "end\n"]))
    assert [one.id for one in report.findings] == case.expected["findings"]


@pytest.mark.parametrize(
    "fabric",
    [
        None,
        fi_info("fi_info: error while loading shared libraries: libfabric.so.1", 127),
        fi_info("Segmentation fault", 139),
        fi_info("Welcome to the cluster"),
    ],
    ids=["not-asked", "does-not-start", "crashes", "a-banner"],
)
def test_a_fi_info_that_says_nothing_of_efa_accuses_nobody_and_passes_nobody(fabric: str | None) -> None:
    assert levels(provider(fabric)) == {("efa.provider", Level.UNKNOWN)}


def test_a_node_without_devices_is_one_finding_and_not_two() -> None:
    assert levels(provider(fi_info("fi_getinfo: -61", 61), "module none\nend\n")) == {
        ("efa.provider", Level.INFO)
    }


@pytest.mark.parametrize(
    "rule", [efa_devices.RULE, efa_ports.RULE, efa_provider.RULE], ids=lambda one: one.id
)
@given(text=st.text())
def test_no_text_but_a_whole_listing_passes(rule: Rule, text: str) -> None:
    report = judged(rule, {"efa": text, "libfabric": text})
    assert Level.PASS not in {one.level for one in report.findings}


@pytest.mark.parametrize("word", ["Unknown", "nan", "ACTIV", "4: LinkUp"])
def test_a_port_state_that_is_none_of_the_kernels_words_is_unknown_not_down(word: str) -> None:
    text = f"module efa 2.10.0\ndevice rdmap79s0 efa -\nport rdmap79s0 1 {word} / 5: LinkUp\nend\n"
    report = judged(efa_ports.RULE, {"efa": text})
    assert levels(report) == {("efa.ports", Level.UNKNOWN)}
