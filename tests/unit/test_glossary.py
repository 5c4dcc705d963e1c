"""The glossary behind the help: a term is found whatever its case, and a screen's terms come in the order they are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine import knowledge
from straggler.engine.glossary import lookup, terms_in

TERMS = knowledge.load().glossary


@pytest.mark.parametrize(
    ("asked", "entry"),
    [
        ("efa", "EFA"),
        ("XID", "Xid"),
        ("security group", "SG"),
        ("ROW REMAP", "row remap"),
        ("imdsv2", "IMDS"),
    ],
)
def test_a_term_is_found_by_any_of_its_names_in_any_case(asked: str, entry: str) -> None:
    found = lookup(asked, TERMS)
    assert found is not None
    assert found[0] == entry


def test_a_term_that_is_not_there_is_not_made_up() -> None:
    assert lookup("QXZ", TERMS) is None
    assert lookup("", TERMS) is None


def test_terms_come_in_the_order_they_are_read_each_once() -> None:
    text = "GPUs: a row remap waits (Xid 63); EFA's port is down, EFA again, then /dev/shm."
    assert [name for name, _ in terms_in(text, TERMS)] == ["GPU", "row remap", "Xid", "EFA", "shm"]


def test_a_term_inside_another_word_is_none() -> None:
    assert terms_in("prefabricated efafx drankest", TERMS) == []


@given(st.text(max_size=200))
def test_any_text_can_be_asked_about(text: str) -> None:
    assert {name for name, _ in terms_in(text, TERMS)} <= TERMS.keys()


TRADE = """
EFA NCCL Xid SXid ECC NVLink OFI libfabric RDMA busbw AZ SG SSM FSx MIG HBM PCIe GSP OST LNet NVMe tmpfs iowait IMDS DCGM
Trainium Neuron HyperPod UltraServer UNKNOWN IaC confidence rank cordon drain throttle governor vantage replay
"""


@pytest.mark.parametrize("term", TRADE.split())
def test_the_words_of_the_trade_are_all_explained(term: str) -> None:
    assert lookup(term, TERMS) is not None
