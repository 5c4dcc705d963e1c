"""The policy allows what the closed list needs, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from straggler.engine.aws.arns import cluster_arn
from straggler.engine.aws.operations import OPERATIONS, SESSION_DOCUMENTS, Kind
from straggler.engine.aws.policy import policy
from tests.aws.program import straggler

ARN = "arn:aws-us-gov:sagemaker:us-gov-west-1:123456789012:cluster/abc123def456"
MANAGED_POLICY_MAX = 6144
"""Characters without blanks: docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html."""


def printed(home: Path, *words: str) -> dict[str, Any]:
    done = straggler(home, None, "iam-policy", *words)
    assert (done.status, done.errors) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def actions(found: dict[str, Any]) -> set[str]:
    return {action for one in found["Statement"] for action in one["Action"]}


def resources(found: dict[str, Any], action: str) -> set[str]:
    held = [one["Resource"] for one in found["Statement"] if action in one["Action"]]
    return {arn for one in held for arn in ([one] if isinstance(one, str) else one)}


def test_it_is_a_policy_that_iam_takes(tmp_path: Path) -> None:
    found = printed(tmp_path)
    assert found["Version"] == "2012-10-17"
    assert len(re.sub(r"\s", "", json.dumps(found))) < MANAGED_POLICY_MAX
    for one in found["Statement"]:
        assert set(one) <= {"Effect", "Action", "Resource", "Condition"}
        assert one["Effect"] == "Allow"
        assert all(re.fullmatch(r"[a-z0-9-]+:[A-Za-z]+", action) for action in one["Action"])


def test_it_allows_every_operation_that_may_be_called_and_no_other() -> None:
    wanted = {action for one in OPERATIONS for action, _ in one.actions}
    assert actions(policy()) == wanted
    ungranted = {f"{one.service}:{one.name}" for one in OPERATIONS if not one.actions}
    credentials = {f"{one.service}:{one.name}" for one in OPERATIONS if one.kind is Kind.CREDENTIALS}
    assert ungranted == credentials | {"sts:GetCallerIdentity"}


def test_nothing_that_changes_a_cluster_is_allowed() -> None:
    changing = re.compile(r":(Create|Update|Delete|Batch|Put|Authorize|Revoke|Send|Stop|Run|Modify)")
    assert not [one for one in actions(policy()) if changing.search(one)]
    assert not [one for one in actions(policy()) if "*" in one]


def test_a_session_may_be_started_on_clusters_with_our_documents_only() -> None:
    assert resources(policy(), "ssm:StartSession") == {
        "arn:aws:sagemaker:*:*:cluster/*",
        *(f"arn:aws:ssm:*:*:document/{name}" for name in SESSION_DOCUMENTS),
    }
    [checked] = [
        one for one in policy()["Statement"] if "ssm:StartSession" in one["Action"] and "Condition" in one
    ]
    assert checked["Condition"] == {"BoolIfExists": {"ssm:SessionDocumentAccessCheck": "true"}}


def test_only_sessions_of_ones_own_may_be_ended_or_resumed() -> None:
    for action in ("ssm:TerminateSession", "ssm:ResumeSession", "ssmmessages:OpenDataChannel"):
        assert all(
            one.endswith(("session/${aws:userid}-*", "session/${aws:username}-*"))
            for one in resources(policy(), action)
        )


def test_a_key_is_asked_for_in_the_context_the_session_gives() -> None:
    from straggler.engine.transports.ssm_kms import context

    [held] = [one for one in policy()["Statement"] if "kms:GenerateDataKey" in one["Action"]]
    [key] = held["Condition"]["StringLike"]
    assert key.removeprefix("kms:EncryptionContext:") in context("s", "t", "c")


def test_with_an_arn_it_is_held_to_that_cluster_region_account_and_partition(tmp_path: Path) -> None:
    found = printed(tmp_path, "--cluster", ARN)
    assert resources(found, "sagemaker:DescribeCluster") == {ARN}
    assert ARN in resources(found, "ssm:StartSession")
    scoped = {arn for one in found["Statement"] for arn in resources(found, one["Action"][0])} - {"*"}
    assert all(one.startswith("arn:aws-us-gov:") and ":us-gov-west-1:" in one for one in scoped)
    assert actions(found) == actions(policy())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--cluster", "train"), "--cluster takes the cluster's ARN here, not 'train'"),
        (("--format", "rbac"), "this version asks nothing of Kubernetes' API"),
        (("--format", "yaml"), "argument --format: invalid choice: 'yaml'"),
    ],
)
def test_what_it_cannot_do_is_one_line(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    done = straggler(tmp_path, None, "iam-policy", *words)
    assert done.status == 2
    assert line in done.line


def test_an_arn_is_taken_apart() -> None:
    arn = cluster_arn(ARN)
    assert arn is not None
    assert (arn.partition, arn.region, arn.account, arn.id) == (
        "aws-us-gov",
        "us-gov-west-1",
        "123456789012",
        "abc123def456",
    )
