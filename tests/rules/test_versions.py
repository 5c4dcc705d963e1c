"""The host's stack is shown, never accused: what it lacks the job's container may bring."""

from __future__ import annotations

from straggler.engine.model import Level
from straggler.engine.rules import versions
from straggler.engine.simcluster import SAYS, SimNode
from tests.support.judging import judged, only

KEYS = (
    "driver",
    "cuda",
    "efa_installer",
    "libfabric",
    "ofi",
    "efa_module",
    "nccl",
    "container_toolkit",
    "os",
)


def shown(text: str) -> str:
    finding = only(judged(versions.RULE, {"versions": text}), "versions.stack")
    assert finding.level is Level.INFO
    [(_, detail)] = finding.details
    return detail


def test_what_was_found_is_listed() -> None:
    text = shown(SAYS["versions"](SimNode("w-1", 1)).text)
    assert "NVIDIA driver 570.172.08" in text
    assert "EFA installer 1.43.2" in text


def test_a_host_without_any_of_it_is_no_fault() -> None:
    assert shown("".join(f"{key} -\n" for key in KEYS) + "end .\n") == "none of it was found"


def test_what_would_not_show_is_named() -> None:
    text = shown("".join(f"{key} {'?' if key == 'cuda' else '-'}\n" for key in KEYS) + "end .\n")
    assert text == "not readable: CUDA"


def test_a_reply_that_is_not_whole_is_unknown() -> None:
    report = judged(versions.RULE, {"versions": "driver 570\n"})
    assert only(report, "versions.stack").level is Level.UNKNOWN
