"""The tests' AWS itself: what it says is what the service could say."""

from __future__ import annotations

import contextlib
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from tests.aws import hyperpod, protocol
from tests.aws.fake import FakeAws


def client(aws: FakeAws, service: str) -> Any:
    session = botocore.session.Session()
    session.set_credentials("AKIATEST", "secret")
    return session.create_client(service, region_name="us-east-1", endpoint_url=aws.url)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ClusterStatus": "Running"},
        {"OnStartDeepHealthCheck": ["InstanceStress"]},
        {"CreationTime": "yesterday"},
        {"InstanceGroups": [{"InstanceGroupName": "a", "Instancetype": "ml.p5.48xlarge"}]},
    ],
)
def test_an_answer_the_service_could_not_give_fails_the_test(wrong: dict[str, Any]) -> None:
    said = hyperpod.cluster("train", 1).description() | wrong
    with pytest.raises(AssertionError, match="sagemaker:DescribeCluster does not answer so"):
        protocol.answer("sagemaker", "DescribeCluster", said)


def test_a_wrong_answer_is_not_lost_in_a_server_thread() -> None:
    aws = FakeAws()
    aws.handle({("sagemaker", "ListClusters"): lambda _: {"Clusters": []}})
    with (
        pytest.raises(AssertionError, match="ListClusters does not answer so"),
        aws,
        contextlib.suppress(Exception),
    ):
        client(aws, "sagemaker").list_clusters()


@pytest.mark.parametrize(
    ("service", "operation", "params"),
    [
        ("sagemaker", "list_clusters", {}),
        ("ec2", "describe_subnets", {}),
        ("sts", "get_caller_identity", {}),
        ("cloudwatch", "list_metrics", {}),
        ("logs", "describe_log_groups", {}),
        ("eks", "describe_cluster", {"name": "x"}),
        ("ssm", "start_session", {"Target": "x"}),
        ("fsx", "describe_file_systems", {}),
    ],
)
def test_a_denial_reads_as_one_in_every_services_protocol(
    aws: FakeAws, service: str, operation: str, params: dict[str, str]
) -> None:
    aws.deny(service, "*")
    with pytest.raises(ClientError) as met:
        getattr(client(aws, service), operation)(**params)
    assert met.value.response["Error"]["Code"] in ("AccessDeniedException", "UnauthorizedOperation")
    assert "is not authorized to perform" in met.value.response["Error"]["Message"]


def test_two_clusters_of_one_name_in_two_regions_are_two(aws: FakeAws) -> None:
    hyperpod.serve(
        aws, [hyperpod.cluster("a", region="us-east-1"), hyperpod.cluster("a", region="eu-west-1")]
    )
    assert [one["ClusterArn"] for one in client(aws, "sagemaker").list_clusters()["ClusterSummaries"]] == [
        "arn:aws:sagemaker:us-east-1:123456789012:cluster/abc123def456"
    ]


def test_what_moto_has_is_answered_by_moto(aws: FakeAws) -> None:
    assert client(aws, "ec2").describe_vpcs()["Vpcs"]
    assert aws.operations() == {("ec2", "DescribeVpcs")}
