"""What real nccl-tests printed, and the right reading of it: facts, findings, and the run that a matrix gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from straggler.engine.bandwidth.model import RunState
from straggler.engine.bandwidth.readers import nccl_fast, read_runs, read_text
from straggler.engine.bandwidth.readers.lines import clean
from straggler.engine.inspect import nccl_tests
from tests.support.cases import Case, cases

CASES = cases("nccl-tests")
NOT_FACTS = {"kind", "findings", "not"}

STATES = {
    "alltoall-inplace-na-headless": RunState.TRUNCATED,
    "broadcast-root-no-redop": RunState.TRUNCATED,
    "efa-two-workers-destroy-lines": RunState.OK,
    "h100-fleet-cuda-failure": RunState.FAILED,
    "many-single-rank-tables-interleaved": RunState.FAILED,
    "mpi-tagged-two-ranks-one-gpu": RunState.OK,
    "p5-go-test-indented": RunState.TRUNCATED,
    "shm-system-error-no-rows": RunState.FAILED,
    "wrong-values-scientific": RunState.FAILED,
}


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_fact_is_read_as_it_stands(case: Case) -> None:
    [part, *_] = nccl_tests.read(clean(case.text.encode()), "case.txt")
    facts: dict[str, Any] = json.loads(json.dumps(part.facts))
    for name, right in case.expected.items():
        if name not in NOT_FACTS:
            assert facts[name] == right, name


@pytest.mark.parametrize("case", CASES, ids=named)
def test_what_must_be_found_is_found_and_nothing_that_must_not(case: Case) -> None:
    parts = nccl_tests.read(clean(case.text.encode()), "case.txt")
    found = {said.verdict.id for part in parts for said in part.said}
    assert set(case.expected["findings"]) <= found
    assert not found & set(case.expected["not"])
    assert found <= set(nccl_tests.FINDS)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_run_is_fine_only_when_the_tool_said_so_to_the_end(case: Case) -> None:
    [run] = read_runs(case.text.encode(), "a__b.txt")
    assert run.state is STATES[case.name]
    assert run.why or run.state is RunState.OK


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_fast_reader_leaves_or_agrees(case: Case) -> None:
    fast = nccl_fast.read(case.text.encode(), "a__b.txt")
    assert fast is None or [fast] == read_text(clean(case.text.encode()), "a__b.txt")


def test_hosts_that_only_a_failure_names_take_part_too_so_that_an_excerpt_of_a_fleet_is_no_pair() -> None:
    [case] = [one for one in CASES if one.name == "h100-fleet-cuda-failure"]
    [run] = read_runs(case.text.encode(), "fleet.log")
    assert run.hosts == ("GPN-47", "GPN-2", "GPN-143", "GPN-121", "GPN-119")
