"""Calls, pages, retries and credentials that run out: what AWS does, and what the operator reads of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from werkzeug import Response

from straggler.engine.aws import clients as module
from straggler.engine.aws import errors, reading
from straggler.engine.aws.clients import Clients, open_clients
from straggler.engine.aws.credentials import guarded_session, local_programs
from straggler.engine.errors import UsageError
from straggler.engine.model import Status
from tests.aws import hyperpod, protocol
from tests.aws.fake import FakeAws
from tests.aws.program import straggler


@pytest.fixture
def served(aws: FakeAws) -> FakeAws:
    hyperpod.serve(aws, [hyperpod.cluster("train", 4)])
    return aws


async def describe(clients: Clients) -> Mapping[str, Any]:
    return await clients.call("sagemaker", "DescribeCluster", ClusterName="train")


@pytest.mark.parametrize(
    ("code", "http", "kind", "status", "line"),
    [
        (
            "AccessDeniedException",
            400,
            errors.Denied,
            Status.DENIED,
            "sagemaker:DescribeCluster is not allowed: straggler iam-policy",
        ),
        (
            "ResourceNotFound",
            400,
            errors.NotFound,
            Status.NOT_VISIBLE,
            "sagemaker:DescribeCluster: not found in us-east-1",
        ),
        (
            "UnrecognizedClientException",
            403,
            errors.NoCredentials,
            Status.DENIED,
            "AWS does not know these credentials",
        ),
        (
            "InvalidSignatureException",
            403,
            errors.NoCredentials,
            Status.DENIED,
            "AWS does not know these credentials",
        ),
        ("RequestTimeTooSkewed", 403, errors.NoCredentials, Status.DENIED, "this machine's clock is off"),
        (
            "ValidationException",
            400,
            errors.Refused,
            Status.FAILED,
            "sagemaker:DescribeCluster: ValidationException",
        ),
        (
            "InternalFailure",
            500,
            errors.ServiceFault,
            Status.FAILED,
            "failed on AWS's side (InternalFailure)",
        ),
    ],
)
async def test_an_error_is_said_in_one_line_with_the_way_out(
    served: FakeAws, code: str, http: int, kind: type[errors.AwsError], status: Status, line: str
) -> None:
    served.fail("sagemaker", "DescribeCluster", code, http=http)
    with pytest.raises(kind) as met:
        await describe(open_clients())
    assert line in met.value.why
    assert "\n" not in met.value.why
    assert met.value.status is status
    assert met.value.code == code


async def test_a_denial_by_a_policy_says_that_a_grant_will_not_help(served: FakeAws) -> None:
    message = "User: x is not authorized to perform: y with an explicit deny in a service control policy"
    served.fail("sagemaker", "DescribeCluster", "AccessDeniedException", message=message)
    with pytest.raises(errors.Denied, match="an explicit deny") as met:
        await describe(open_clients())
    assert met.value.by_policy
    assert "iam-policy" not in met.value.why


async def test_a_hostile_message_is_made_harmless(served: FakeAws) -> None:
    served.fail(
        "sagemaker", "DescribeCluster", "ValidationException", message="\x1b]0;x\x07bad\u202ename\n" * 200
    )
    with pytest.raises(errors.Refused) as met:
        await describe(open_clients())
    assert met.value.why.isprintable()
    assert len(met.value.why) < 600


async def test_throttling_is_waited_out(served: FakeAws) -> None:
    served.throttle("sagemaker", "DescribeCluster", times=3)
    assert (await describe(open_clients()))["ClusterName"] == "train"
    assert len(served.asked("DescribeCluster")) == 4


async def test_throttling_without_an_end_is_an_answer_of_its_own(
    served: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "THROTTLED_AGAIN", 0)
    served.throttle("sagemaker", "DescribeCluster")
    with pytest.raises(errors.Throttled, match="throttled by AWS even after retries"):
        await describe(open_clients())
    assert len(served.asked("DescribeCluster")) == module.ATTEMPTS


async def test_sessions_are_asked_for_once_so_that_their_bucket_sees_the_throttling(served: FakeAws) -> None:
    served.throttle("ssm", "StartSession")
    with pytest.raises(errors.Throttled):
        await open_clients().call("ssm", "StartSession", Target="sagemaker-cluster:a_b-i-0")
    assert len(served.asked("StartSession")) == 1


async def test_pages_go_on_where_a_page_is_slow_or_fails_once(served: FakeAws) -> None:
    hyperpod.serve(served, [hyperpod.cluster("train", 350)])
    served.fail("sagemaker", "ListClusterNodes", seconds=0.3, times=1)
    served.fail("sagemaker", "ListClusterNodes", "ServiceUnavailable", http=503, times=1)
    assert len(await reading.members(open_clients(), "train")) == 350


async def test_a_listing_that_gives_the_same_page_again_is_no_list(served: FakeAws) -> None:
    served.handle(
        {("sagemaker", "ListClusterNodes"): lambda _: {"ClusterNodeSummaries": [], "NextToken": "again"}}
    )
    with pytest.raises(errors.AwsError, match="keeps giving pages without an end"):
        await reading.members(open_clients(), "train")


async def test_an_endpoint_that_is_not_there_is_said_in_words(
    served: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(errors.Unreachable, match="look at --region, DNS and AWS_ENDPOINT_URL"):
        await describe(open_clients())


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_a_page_of_a_proxy_is_not_an_empty_list(
    served: FakeAws, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(protocol, "answer", lambda *_: Response("<html>Please sign in", 200, mimetype=kind))
    with pytest.raises(errors.ServiceFault, match="what answered is not the service: look for a proxy"):
        await reading.members(open_clients(), "train")


def test_quitting_does_not_wait_for_an_endpoint_that_does_not_answer(served: FakeAws, tmp_path: Path) -> None:
    served.fail("sagemaker", "DescribeCluster", seconds=8)
    code = (
        "import asyncio\n"
        "from straggler.engine.aws.clients import open_clients\n"
        "async def go():\n"
        "    clients = open_clients()\n"
        "    call = asyncio.ensure_future(clients.call('sagemaker', 'DescribeCluster', ClusterName='train'))\n"
        "    await asyncio.sleep(2)\n"
        "    call.cancel()\n"
        "asyncio.run(go())\n"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 7


async def test_sixteen_calls_run_at_once_and_no_more(served: FakeAws) -> None:
    at_once, most, lock = 0, 0, threading.Lock()
    whole = served.handlers["sagemaker", "DescribeCluster"]

    def counted(call: hyperpod.Call) -> Mapping[str, Any]:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)
        with lock:
            at_once -= 1
        return whole(call)

    served.handle({("sagemaker", "DescribeCluster"): counted})
    clients = open_clients()
    await asyncio.gather(*(describe(clients) for _ in range(50)))
    assert 2 <= most <= module.THREADS


# Credentials.


def test_no_credentials_is_one_line_and_asks_nobody(aws: FakeAws, tmp_path: Path) -> None:
    done = straggler(
        tmp_path, aws, "check", "--cluster", "train", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY=""
    )
    assert done.status == 1
    assert done.errors == (
        "straggler: no AWS credentials found: sign in (aws login), or name a profile with --profile\n"
    )
    assert aws.calls == []


def test_a_profile_that_is_not_there_is_named(aws: FakeAws, tmp_path: Path) -> None:
    done = straggler(tmp_path, aws, "check", "--cluster", "train", "--profile", "prod")
    assert (done.status, done.line) == (
        1,
        "straggler: there is no AWS profile 'prod' (aws configure list-profiles lists them)",
    )


def test_an_expired_sign_in_says_the_command_that_renews_it(aws: FakeAws, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "[profile prod]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = ops\n"
        "[sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-1\n"
    )
    env = {"AWS_CONFIG_FILE": str(config), "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = straggler(tmp_path, aws, "check", "--cluster", "train", "--profile", "prod", **env)
    assert (done.status, done.errors) == (
        1,
        "straggler: the AWS sign-in has expired: aws sso login --profile prod\n",
    )


def test_a_program_that_gives_credentials_is_shown_and_its_failure_told(aws: FakeAws, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[profile prod]\ncredential_process = /bin/false --account 1\n")
    env = {"AWS_CONFIG_FILE": str(config), "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = straggler(tmp_path, aws, "check", "--cluster", "train", "--profile", "prod", **env)
    assert done.status == 1
    assert "the AWS credentials of profile prod could not be obtained" in done.line


def test_programs_of_a_chain_of_profiles_are_found(
    tmp_path: Path, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(
        "[profile ops]\nrole_arn = arn:aws:iam::123456789012:role/ops\nsource_profile = base\n"
        "[profile base]\ncredential_process = vault-helper get\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert local_programs(guarded_session("ops")) == ("vault-helper get",)


def test_without_a_region_nothing_is_asked(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(UsageError, match="no AWS region: add --region"):
        open_clients()


def test_the_region_of_the_newer_tools_counts_too(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert open_clients().region == "eu-north-1"


def shared_keys(home: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    (home / "credentials").write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(home / "credentials"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)


def patient(heard: list[str], seconds: float = 60.0) -> Clients:
    """Clients as a session has them."""
    clients = open_clients()
    clients.patience, clients.on_trouble = seconds, heard.append
    return clients


async def test_credentials_that_expire_mid_run_pause_it_until_they_are_renewed(
    served: FakeAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEWAL_SECONDS", 0.05)
    shared_keys(tmp_path, monkeypatch, "AKIAOLD")
    heard: list[str] = []
    clients = patient(heard)
    await describe(clients)
    served.expired.add("AKIAOLD")
    waiting = [asyncio.ensure_future(describe(clients)) for _ in range(5)]
    while not heard:
        await asyncio.sleep(0.01)
    assert heard == [
        "waiting: the AWS credentials have expired: aws login, or set fresh ones; this goes on by itself afterwards"
    ]
    assert not any(one.done() for one in waiting)
    shared_keys(tmp_path, monkeypatch, "AKIANEW")
    answers = await asyncio.wait_for(asyncio.gather(*waiting), 30)
    assert [one["ClusterName"] for one in answers] == ["train"] * 5
    assert heard[1:] == ["the AWS credentials are good again: going on"]
    assert served.calls[-1].key == "AKIANEW"


async def test_nobody_waits_for_ever(
    served: FakeAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEWAL_SECONDS", 0.05)
    shared_keys(tmp_path, monkeypatch, "AKIAOLD")
    clients = patient([], 0.2)
    served.expired.add("AKIAOLD")
    answers = await asyncio.wait_for(
        asyncio.gather(describe(clients), describe(clients), return_exceptions=True), 30
    )
    assert all(isinstance(one, errors.CredentialsExpired) for one in answers)


async def test_keys_of_the_environment_are_not_waited_for(served: FakeAws) -> None:
    heard: list[str] = []
    clients = patient(heard)
    served.expired.add("AKIATEST")
    with pytest.raises(errors.CredentialsExpired, match="export fresh ones and run again"):
        await describe(clients)
    assert heard == []


def test_nothing_of_aws_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys\n"
        "from straggler.engine.aws import arns, clients, errors, guard, hyperpod, lookup, operations, policy, preflight, reading\n"
        "from straggler.engine.targets import hyperpod\n"
        "print(sorted(one for one in sys.modules if one.partition('.')[0] in ('boto3', 'botocore', 'urllib3')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
