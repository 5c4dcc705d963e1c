"""What the kernel and libfabric show of EFA becomes facts: every device by its driver, every port, and never a guess."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.collectors import efa, libfabric
from straggler.engine.collectors.efa import Efa
from straggler.engine.collectors.libfabric import Libfabric
from straggler.engine.model import Status, Unread
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.cases import Case, cases
from tests.support.fake_tools import FakeTools, Said
from tests.support.own_root import own_root

SHELLS = ["/usr/bin/dash", "/bin/busybox sh"]
P6 = """module efa 2.13.2g
device mlx5_0 mlx5_core 28.39.1002
port mlx5_0 1 1: DOWN / 3: Disabled
device rdmap79s0 efa 0.0.0.0
port rdmap79s0 1 4: ACTIVE / 5: LinkUp
end
"""


def read(text: str) -> Efa:
    facts = efa.COLLECTOR.read(text)
    assert isinstance(facts, Efa), facts
    return facts


def offered(text: str, code: int = 0) -> Libfabric:
    facts = libfabric.COLLECTOR.read(f"fi_info begin\n{text.rstrip()}\nfi_info end {code}\n")
    assert isinstance(facts, Libfabric), facts
    return facts


def test_devices_of_other_drivers_are_not_counted_as_efa() -> None:
    facts = read(P6)
    assert facts.devices == ("rdmap79s0",)
    assert [port.device for port in facts.efa_ports] == ["rdmap79s0"]
    assert efa.fields(facts)["other RDMA devices"] == "1"


def test_a_state_that_could_not_be_read_is_no_state() -> None:
    [port] = read("module none\ndevice a efa -\nport a 1 ? / ?\nend\n").ports
    assert port.state is None


def test_a_driver_without_a_version_is_loaded_all_the_same() -> None:
    facts = read("module efa -\nend\n")
    assert (facts.module, efa.fields(facts)["EFA driver"]) == ("", "loaded, without a version")
    assert efa.fields(read("module none\nend\n"))["EFA driver"] == "not loaded"
    assert efa.fields(read("module ?\nend\n"))["EFA driver"] is None


@given(st.text())
def test_any_text_is_facts_or_a_reason_and_never_trips(text: str) -> None:
    for one in (efa.COLLECTOR, libfabric.COLLECTOR):
        one.read(text)
        one.read(f"module efa 1\n{text}\nend\n")
        one.read(f"fi_info begin\n{text}\nfi_info end 0\n")


@given(st.text(st.characters(blacklist_categories=("Cs",)), min_size=1).filter(lambda one: one.strip()))
def test_a_banner_between_the_lines_makes_the_reply_unread(banner: str) -> None:
    assert isinstance(efa.COLLECTOR.read(P6.replace("\ndevice mlx", f"\n{banner}\ndevice mlx")), Unread)


@pytest.mark.parametrize("one", ["efa", "libfabric"])
def test_a_reply_cut_anywhere_is_unread(one: str) -> None:
    text = SAYS[one](SimNode("w-1", 1, "p4d.24xlarge")).text
    collector = {"efa": efa.COLLECTOR, "libfabric": libfabric.COLLECTOR}[one]
    assert all(isinstance(collector.read(text[:at]), Unread) for at in range(len(text)))


@pytest.mark.parametrize("filler", ["\n", " ", "1", "domain: ", "fi_getinfo: ", "said / | "])
def test_a_hostile_flood_is_read_in_no_time(filler: str) -> None:
    flood = filler * (250_000 // len(filler))
    begun = time.process_time()
    efa.COLLECTOR.read(f"module efa 1\n{flood}\nend\n")
    libfabric.COLLECTOR.read(f"fi_info begin\nprovider: efa\n{flood}\nfi_info end 0\n")
    assert time.process_time() - begun < 3


@pytest.mark.parametrize("case", cases("fi-info"), ids=lambda one: one.name)
def test_a_recorded_fi_info_is_read_as_a_careful_reader_does(case: Case) -> None:
    facts, right = offered(case.text), case.expected
    assert facts.entries == right["entries"]
    assert list(facts.devices) == right["devices"]
    assert list(facts.fabrics) == right["fabrics"]
    assert list(facts.versions) == right["versions"]
    assert facts.error == right["error"]


def test_endpoints_of_another_provider_are_not_efas() -> None:
    facts = offered("provider: tcp\n    domain: eth0\nprovider: efa\n    domain: rdmap0s1-rdm\n")
    assert (facts.entries, facts.devices) == (1, ("rdmap0s1",))


def sysfs(driver: str = "efa", states: tuple[str, ...] = ("4: ACTIVE\n",)) -> dict[str, str]:
    files = {"/sys/module/efa/version": "2.13.2g\n"}
    for at, state in enumerate(states):
        base = f"/sys/class/infiniband/rdmap{at}s0"
        files |= {
            f"{base}/device/uevent": f"DRIVER={driver}\nPCI_CLASS=20000\n",
            f"{base}/fw_ver": "0.0.0.0\n",
            f"{base}/ports/1/state": state,
            f"{base}/ports/1/phys_state": "5: LinkUp\n",
        }
    return files


@pytest.mark.real
@pytest.mark.parametrize("shell", SHELLS)
def test_the_real_snippet_reads_every_device_and_port(tmp_path: Path, shell: str) -> None:
    node = own_root(tmp_path, sysfs(states=("4: ACTIVE\n", "1: DOWN\n")), shell=shell)
    block = FakeTools(tmp_path / "bin").run(efa.COLLECTOR, shell=node)
    assert block.status is Status.OK, (block.why, block.errors)
    facts = read(block.text)
    assert (facts.module, facts.devices) == ("2.13.2g", ("rdmap0s0", "rdmap1s0"))
    assert [port.state for port in facts.efa_ports] == ["ACTIVE", "DOWN"]
    assert facts.firmware["rdmap0s0"] == "0.0.0.0"


@pytest.mark.real
@pytest.mark.parametrize("shell", SHELLS)
def test_the_real_snippet_takes_an_empty_state_for_unread(tmp_path: Path, shell: str) -> None:
    node = own_root(tmp_path, sysfs(states=("",)), shell=shell)
    [port] = read(FakeTools(tmp_path / "bin").run(efa.COLLECTOR, shell=node).text).efa_ports
    assert port.state is None


@pytest.mark.parametrize("shell", ["dash", "busybox"])
def test_the_real_snippet_says_what_a_machine_without_efa_has(tmp_path: Path, shell: str) -> None:
    shell = "/bin/busybox sh" if shell == "busybox" else shell
    facts = read(FakeTools(tmp_path / "bin").run(efa.COLLECTOR, shell=shell).text)
    assert (facts.devices, facts.module) == ((), None)


@pytest.mark.parametrize("shell", ["dash", "/bin/busybox sh"])
def test_the_real_fi_info_snippet_keeps_the_answer_the_error_and_the_exit_status(
    tmp_path: Path, shell: str
) -> None:
    tools = FakeTools(tmp_path / "bin")
    tools.tool("fi_info", {("-p", "efa"): Said(err="fi_getinfo: -61 (No data available)\n", code=61)})
    facts = libfabric.COLLECTOR.read(tools.run(libfabric.COLLECTOR, shell=shell).text)
    assert isinstance(facts, Libfabric)
    assert (facts.error, facts.exit, facts.devices) == (-61, 61, ())


def test_a_host_without_fi_info_says_so(tmp_path: Path) -> None:
    block = FakeTools(tmp_path / "bin").run(libfabric.COLLECTOR, hide=("fi_info",))
    assert block.status is Status.TOOL_MISSING
