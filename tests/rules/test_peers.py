"""The comparison of peers: who differs is named, who could not be read is named, and nobody is accused without a majority."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from straggler.engine import knowledge
from straggler.engine.collectors import BY_ID, identity
from straggler.engine.collectors.identity import Identity
from straggler.engine.model import Finding, Level, Node, Status, Unread
from straggler.engine.rules.peers import peer_findings
from straggler.engine.simcluster import SAYS
from straggler.engine.simcluster.scenarios import build

KNOWN = knowledge.load()
UNREAD = Unread(Status.TIMED_OUT, "it hung")


def host(at: int, kernel: str = "6.1", **other: str | None) -> Identity:
    said = {
        "hostname": f"h-{at}",
        "boot_id": f"boot-{at}",
        "instance_type": "p5.48xlarge",
        "az": "use1-az1",
    } | other
    return Identity(
        hostname=said["hostname"] or "",
        kernel=kernel,
        boot_id=said["boot_id"],
        uptime=1,
        clock=1,
        pci_gpus=8,
        pci_neuron=0,
        instance_type=said["instance_type"],
        az=said["az"],
    )


def found(*read: object, group: str = "workers") -> list[Finding]:
    """Findings over nodes w-001, w-002, ... that showed these facts as their identity."""
    nodes = [Node(f"w-{at:03}", group=group) for at in range(1, len(read) + 1)]
    facts = {node.id: {identity.COLLECTOR.id: one} for node, one in zip(nodes, read, strict=True)}
    return peer_findings(nodes, facts, KNOWN)


def test_the_one_node_that_differs_is_named_and_the_rest_is_counted() -> None:
    [one] = found(*[host(at) for at in range(1, 121)], host(121, kernel="5.15"))
    assert (one.id, one.level, one.subjects) == ("peers.differs", Level.WARN, ("w-121",))
    assert one.details == (("w-121", "kernel 5.15; 120 others 6.1"),)


def test_a_node_that_differs_in_many_facts_is_one_finding() -> None:
    odd = Identity("h-9", "5.15", "boot-9", 1, 1, 7, 0, "p5.48xlarge", "use1-az2")
    [one] = found(*[host(at) for at in range(1, 5)], odd)
    assert one.subjects == ("w-005",)
    assert [detail.split(" ")[0] for _, detail in one.details] == ["kernel", "availability", "GPUs"]


def test_half_and_half_names_both_camps_and_accuses_nobody() -> None:
    [one] = found(*[host(at, kernel="6.1" if at % 2 else "5.15") for at in range(1, 9)])
    assert (one.id, one.level) == ("peers.split", Level.INFO)
    assert {detail for _, detail in one.details} == {"kernel 6.1", "kernel 5.15"}
    assert len(one.subjects) == 8


def test_of_two_nodes_that_differ_neither_is_the_odd_one() -> None:
    [one] = found(host(1), host(2, kernel="5.15"))
    assert (one.id, one.level) == ("peers.split", Level.INFO)


def test_two_that_were_read_out_of_many_make_no_majority() -> None:
    [one] = found(host(1), host(2, kernel="5.15"), UNREAD, UNREAD, UNREAD)
    assert one.id == "peers.split"


def test_a_node_that_hides_a_fact_is_named_as_not_compared_never_as_same() -> None:
    [one] = found(host(1), host(2), host(3), host(4, az=None))
    assert (one.id, one.level, one.subjects) == ("peers.same", Level.PASS, ("w-001", "w-002", "w-003"))
    assert ("w-004", "not compared: availability zone") in one.details


def test_a_node_that_hides_a_fact_is_not_counted_with_the_majority() -> None:
    [one] = found(host(1), host(2), host(3), host(4, az=None), host(5, az="use1-az6"))
    assert one.subjects == ("w-005",)
    assert one.details[0][1].endswith("3 others use1-az1; not compared: w-004")


def test_where_no_two_nodes_were_read_whole_it_is_no_good_news() -> None:
    [one] = found(host(1), host(2, az=None), host(3, instance_type=None))
    assert (one.id, one.level) == ("peers.same", Level.INFO)


def test_another_zone_alone_is_told_and_not_warned_of() -> None:
    [one] = found(host(1), host(2), host(3), host(4, az="use1-az2"))
    assert (one.id, one.level) == ("peers.differs", Level.INFO)


def test_types_are_compared_with_their_own_kind() -> None:
    small = [host(at, kernel="5.15", instance_type="t3.large") for at in (5, 6, 7)]
    assert {one.id for one in found(*[host(at) for at in (1, 2, 3)], *small)} == {"peers.same"}


def test_a_node_that_does_not_say_its_type_is_still_compared_with_its_group() -> None:
    [one] = found(host(1), host(2), host(3), host(4, kernel="5.15", instance_type=None))
    assert (one.id, one.subjects) == ("peers.differs", ("w-004",))


def test_groups_are_not_compared_with_each_other() -> None:
    nodes = [Node(f"w-{at}", group="a" if at < 4 else "b") for at in range(1, 7)]
    facts: dict[str, dict[str, object]] = {
        node.id: {"identity": host(at, kernel="6.1" if at < 4 else "5.15")}
        for at, node in enumerate(nodes, 1)
    }
    assert {one.id for one in peer_findings(nodes, facts, KNOWN)} == {"peers.same"}


def test_one_machine_under_two_names_is_told() -> None:
    same = host(1)
    assert ("peers.same-machine", ("w-001", "w-002")) in [
        (one.id, one.subjects) for one in found(same, same, host(3))
    ]


def test_two_machines_with_one_host_name_are_told() -> None:
    twins = [host(1, hostname="gpu"), host(2, hostname="gpu"), host(3)]
    assert ("peers.same-hostname", ("w-001", "w-002")) in [(one.id, one.subjects) for one in found(*twins)]


def test_nodes_of_which_nothing_was_read_are_left_to_the_reachability_rule() -> None:
    assert found(UNREAD, UNREAD, UNREAD) == []


def test_of_a_thousand_nodes_the_odd_one_is_found() -> None:
    [one] = found(*[host(at, kernel="5.15" if at == 7 else "6.1") for at in range(1, 1025)])
    assert one.subjects == ("w-007",)
    assert one.details == (("w-007", "kernel 5.15; 1023 others 6.1"),)


def test_the_same_odd_nodes_are_one_finding_whatever_they_show_in_each_fact() -> None:
    fine = [host(at) for at in range(1, 8)]
    odd = [
        host(8, kernel="5.15", az="use1-az2"),
        host(9, kernel="5.10", az="use1-az2"),
        host(10, kernel="5.15", az="use1-az2"),
    ]
    [one] = found(*fine, *odd)
    assert one.subjects == ("w-008", "w-009", "w-010")
    assert ("w-[008,010]", "kernel 5.15; 7 others 6.1") in one.details
    assert ("w-009", "kernel 5.10; 7 others 6.1") in one.details


def test_without_a_boot_id_one_host_name_is_not_called_two_machines() -> None:
    assert {one.id for one in found(host(1), host(2), host(3, hostname="h-1", boot_id=None))} == {
        "peers.same"
    }


SHOWN = st.builds(
    host,
    st.integers(0, 3),
    kernel=st.sampled_from(["6.1", "5.15", "", "[1-9]", "\x1b[31m"]),
    az=st.sampled_from([None, "use1-az1", "use1-az2"]),
    instance_type=st.sampled_from([None, "p5.48xlarge"]),
    hostname=st.text(max_size=3),
    boot_id=st.none() | st.text(max_size=3),
)


@given(st.lists(SHOWN | st.just(UNREAD), max_size=12))
def test_whatever_nodes_show_nobody_with_the_majoritys_value_is_called_odd(
    read: list[Identity | Unread],
) -> None:
    shown = {f"w-{at:03}": one for at, one in enumerate(read, 1) if isinstance(one, Identity)}
    for one in found(*read):
        assert one.subjects
        assert set(one.subjects) <= shown.keys() or one.id == "peers.same"
        if one.id != "peers.differs":
            continue
        kernels = Counter(node.kernel for node in shown.values())
        zones = Counter(node.az for node in shown.values() if node.az is not None)
        for name in one.subjects:
            kernel, zone = shown[name].kernel, shown[name].az
            odd_zone = zone is not None and zones[zone] * 2 < zones.total()
            assert kernels[kernel] * 2 < kernels.total() or odd_zone


def test_a_fact_that_two_collectors_read_is_told_once() -> None:
    sims = build("healthy", 4, 0).values()
    facts = {
        sim.id: {name: BY_ID[name].read(SAYS[name](sim).text) for name in ("gpu", "versions")} for sim in sims
    }
    said = {
        name: SAYS[name](next(iter(sims))).text.replace("570.172.08", "535.12")
        for name in ("gpu", "versions")
    }
    facts["worker-001"] = {name: BY_ID[name].read(text) for name, text in said.items()}
    [one] = peer_findings([Node(sim.id) for sim in sims], facts, KNOWN)
    assert [detail for _, detail in one.details] == ["NVIDIA driver 535.12; 3 others 570.172.08"]
    assert one.title == "a node differs from its peers in NVIDIA driver"
