"""The real program, a cluster of the tests' AWS, and its nodes behind Session Manager: from --cluster to what a node printed."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from straggler.engine.aws.errors import AwsError
from tests.aws import hyperpod
from tests.aws.fake import ApiError, Call, FakeAws
from tests.aws.program import straggler
from tests.nodeshell import eventually
from tests.ssm.fake_service import CANARY, FakeService, running
from tests.ssm.faults import Faults

OPERATIONS = (
    ("ssm", "StartSession"),
    ("ssm", "ResumeSession"),
    ("ssm", "TerminateSession"),
    ("kms", "GenerateDataKey"),
)


class Behind:
    """The fake service in a thread of its own, answering what arrives at the fake AWS over HTTP."""

    def __init__(self, aws: FakeAws, service: FakeService) -> None:
        self.service = service
        self._loop = asyncio.new_event_loop()
        self._ready, self._over = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="fake session manager")
        aws.handle(dict.fromkeys(OPERATIONS, self._answer))

    def __enter__(self) -> FakeService:
        self._thread.start()
        self._ready.wait(10)
        return self.service

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)
        self._loop.close()

    def _run(self) -> None:
        async def main() -> None:
            async with running(self.service):
                self._ready.set()
                await self._over.wait()

        self._loop.run_until_complete(main())

    def _answer(self, call: Call) -> Mapping[str, Any]:
        made = self.service.call(call.service, call.operation, **call.params)
        try:
            told = asyncio.run_coroutine_threadsafe(made, self._loop).result(20)
        except AwsError as error:
            raise ApiError(error.code, error.said) from error
        # In JSON, bytes are base64.
        return {
            key: base64.b64encode(one).decode() if isinstance(one, bytes) else one
            for key, one in told.items()
        }


@pytest.fixture
def service(aws: FakeAws) -> Iterator[FakeService]:
    hyperpod.serve(aws, [hyperpod.cluster("train", 3)])
    with Behind(aws, FakeService()) as service:
        yield service


def printed(home: Path) -> str:
    """Everything the program left in its home: the journal above all."""
    files = [one for one in home.rglob("*") if one.is_file()]
    assert files
    return "\n".join(one.read_bytes().decode("utf-8", "replace") for one in files)


@pytest.mark.parametrize("kms", [False, True], ids=["plain", "encrypted"])
def test_a_cluster_is_read_through_one_session_each(
    aws: FakeAws, service: FakeService, tmp_path: Path, kms: bool
) -> None:
    service.plans = {"": Faults(kms=kms, double=frozenset({3}), hold=frozenset({5}))}
    done = straggler(tmp_path, aws, "check", "--cluster", "train", "--format", "json")
    report = json.loads(done.out)
    assert len(service.started) == 3
    assert service.left == set()
    targets = {one.target for one in service.sessions.values()}
    assert targets == {f"sagemaker-cluster:abc123def456_workers-i-0000000000000000{at}" for at in range(3)}
    assert "unreachable" not in done.out
    assert report
    assert CANARY not in done.out + done.errors + printed(tmp_path)


def test_a_node_that_is_gone_is_told_and_the_others_are_read(
    aws: FakeAws, service: FakeService, tmp_path: Path
) -> None:
    fault = aws.fail("ssm", "StartSession", "TargetNotConnected", message="not connected", times=1)
    done = straggler(tmp_path, aws, "check", "--cluster", "train")
    assert fault.times == 0
    assert "not connected to Session Manager" in done.out
    assert len(service.started) == 2
    assert service.left == set()


def test_the_operator_hears_of_a_second_choice_and_of_what_stayed_open(
    aws: FakeAws, service: FakeService, tmp_path: Path
) -> None:
    service.allowed -= {"AWS-StartNonInteractiveCommand", "AmazonEKS-ExecuteNonInteractiveCommand"}
    aws.deny("ssm", "TerminateSession")
    done = straggler(tmp_path, aws, "check", "--cluster", "train")
    assert "3 of 3 nodes read" in done.out
    assert "AWS-StartNonInteractiveCommand could not be used, AWS-StartInteractiveCommand was" in done.errors
    assert "3 sessions could not be ended" in done.errors


def test_ctrl_c_ends_every_session(aws: FakeAws, service: FakeService, tmp_path: Path) -> None:
    service.plans = {"": Faults(silent=True)}
    env = {
        **aws.environment(),
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    words = [sys.executable, "-m", "straggler.tui", "check", "--cluster", "train"]
    with subprocess.Popen(
        words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert eventually(lambda: len([one for one in service.sessions.values() if one.opened]) == 3)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert service.left == set()
    assert "Traceback" not in out + errors
    assert CANARY not in out + errors
