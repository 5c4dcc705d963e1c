"""A HyperPod cluster as a target: the real program asks the tests' AWS, and says in one line what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from straggler.engine.aws import errors
from straggler.engine.errors import FatalError, UsageError
from straggler.engine.model import Placement
from straggler.engine.targets.base import Target
from straggler.engine.targets.hyperpod import Scope, hyperpod_target
from tests.aws import hyperpod
from tests.aws.fake import ACCOUNT, FakeAws
from tests.aws.program import straggler


def target(
    cluster: str = "train", scope: Scope | None = None, heard: list[str] | None = None, **how: str
) -> Target:
    made = hyperpod_target(cluster, scope=scope, rate=3.0, region=how.get("region"))
    if heard is not None:
        heard += made.notes
    return made


def test_every_node_of_eleven_hundred_is_there_with_all_its_names(aws: FakeAws) -> None:
    made = hyperpod.cluster("train", 1099, controllers=1)
    made.about["VpcConfig"] = hyperpod.network(aws, {"us-east-1a": "10.1.0.0/16"})
    hyperpod.serve(aws, [made])
    nodes = target().nodes
    assert len(nodes) == 1100
    assert len(aws.asked("ListClusterNodes")) == 11
    assert {one.group for one in nodes} == {"controller", "workers"}
    assert nodes[7].id == "i-00000000000000007"
    assert nodes[7].names == ("ip-10-1-0-8", "ip-10-1-0-8.ec2.internal", "10.1.0.8")
    assert nodes[7].instance_type == "ml.p5.48xlarge"


def test_nodes_are_reached_by_the_clusters_id_not_its_name(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 1, id="zz99zz99zz99")])
    made = target()
    assert made.transport.name == "ssm"
    assert made.transport._targets == {  # type: ignore[attr-defined]
        "i-00000000000000000": "sagemaker-cluster:zz99zz99zz99_workers-i-00000000000000000"
    }


@pytest.mark.parametrize(
    ("region", "partition"),
    [("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn"), ("us-iso-east-1", "aws-iso")],
)
def test_an_arn_of_another_partition_says_its_region_itself(
    aws: FakeAws, region: str, partition: str
) -> None:
    made = hyperpod.cluster("far", 2, region=region)
    assert made.arn.startswith(f"arn:{partition}:")
    hyperpod.serve(aws, [made])
    assert region in target(made.arn).title
    assert {one.region for one in aws.asked("ListClusterNodes")} == {region}


def test_a_zone_is_told_by_the_subnets_without_asking_each_node(aws: FakeAws) -> None:
    made = hyperpod.cluster("train", 300)
    made.about["VpcConfig"] = hyperpod.network(
        aws, {"us-east-1a": "10.1.0.0/24", "us-east-1b": "10.1.1.0/24"}
    )
    hyperpod.serve(aws, [made])
    places = [one.placement.az for one in target().nodes]
    assert places[0] == "us-east-1a"
    assert places[-1] == "us-east-1b"
    # One is asked for, to see whether it may be.
    assert len(aws.asked("DescribeClusterNode")) == 1


def test_nodes_are_asked_one_by_one_where_the_subnets_may_not_be_read(aws: FakeAws) -> None:
    made = hyperpod.cluster("train", 30)
    made.about["VpcConfig"] = {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
    made.details["i-00000000000000003"] = {"UltraServerInfo": {"Id": "us-1", "Type": "ml.u-p6e-gb200x36"}}
    hyperpod.serve(aws, [made])
    aws.deny("ec2", "DescribeSubnets")
    heard: list[str] = []
    nodes = target(heard=heard).nodes
    assert nodes[3].placement == Placement(az="us-east-1a", ultraserver="us-1")
    assert any(line.startswith("without ec2:DescribeSubnets") for line in heard)


def test_a_zone_that_nobody_tells_is_unknown_and_said_so(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 3)])
    aws.deny("sagemaker", "DescribeClusterNode")
    heard: list[str] = []
    assert [one.placement.az for one in target(heard=heard).nodes] == [None] * 3
    assert any("the zone of 3 nodes was not told" in line for line in heard)


def test_a_sample_takes_from_every_group(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 100, controllers=1)])
    nodes = target(scope=Scope(sample=5)).nodes
    assert [one.group for one in nodes] == ["controller", "workers", "workers", "workers", "workers"]
    assert len({one.id for one in nodes}) == 5


@pytest.mark.parametrize("name", ["i-00000000000000002", "ip-10-1-0-3", "10.1.0.3"])
def test_a_node_is_chosen_by_any_of_its_names(aws: FakeAws, name: str) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 5)])
    assert [one.id for one in target(scope=Scope((name,))).nodes] == ["i-00000000000000002"]


def test_throttling_and_faults_that_pass_are_not_the_operators_business(aws: FakeAws) -> None:
    made = hyperpod.cluster("train", 250)
    made.about["VpcConfig"] = hyperpod.network(aws, {"us-east-1a": "10.1.0.0/16"})
    hyperpod.serve(aws, [made])
    aws.throttle("sagemaker", "ListClusterNodes", times=2)
    aws.fail("sagemaker", "DescribeCluster", "InternalFailure", http=500, times=1)
    heard: list[str] = []
    assert len(target(heard=heard).nodes) == 250
    assert heard == []


def test_a_listing_that_breaks_on_its_third_page_is_no_shorter_cluster(aws: FakeAws) -> None:
    made = hyperpod.cluster("train", 250)
    hyperpod.serve(aws, [made])
    whole = aws.handlers["sagemaker", "ListClusterNodes"]

    def breaks(call: hyperpod.Call) -> object:
        if call.params.get("NextToken") == "200":
            raise hyperpod.ApiError("InternalFailure", "no", 500)
        return whole(call)

    aws.handle({("sagemaker", "ListClusterNodes"): breaks})  # type: ignore[dict-item]
    with pytest.raises(errors.ServiceFault, match="ListClusterNodes"):
        target()


def test_without_the_description_the_nodes_are_read_all_the_same(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 3)])
    aws.deny("sagemaker", "DescribeCluster")
    heard: list[str] = []
    made = target(heard=heard)
    assert len(made.nodes) == 3
    assert any(line.startswith("without sagemaker:DescribeCluster") for line in heard)
    assert "orchestrator" not in made.spec


def test_without_the_listing_of_nodes_there_is_nothing_to_read(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 3)])
    aws.deny("sagemaker", "ListClusterNodes")
    with pytest.raises(
        errors.Denied, match=r"sagemaker:ListClusterNodes is not allowed: straggler iam-policy"
    ):
        target()


# What an operator gets wrong: one line each, with the way out.


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("--cluster", "train-eks"),
            "'train-eks' is the EKS cluster that HyperPod cluster train runs on: --cluster train",
        ),
        (
            ("--cluster", "nope"),
            "no HyperPod cluster 'nope' in us-east-1; in us-east-1: train (InService), old (Deleting)",
        ),
        (
            ("--cluster", "far"),
            "no HyperPod cluster 'far' in us-east-1; there is one in eu-west-1: --region eu-west-1",
        ),
        (
            ("--cluster", "old"),
            "cluster old is being deleted and has no nodes left: network interfaces are still in use",
        ),
        (("--cluster", "train", "--region", "eu-west-1"), "there is one in us-east-1: --region us-east-1"),
    ],
)
def test_a_cluster_that_cannot_be_read_ends_with_what_to_type_instead(
    aws: FakeAws, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    old = hyperpod.cluster("old", 0, id="old456old456", ClusterStatus="Deleting")
    old.about["FailureMessage"] = "network interfaces are still in use"
    hyperpod.serve(aws, [hyperpod.cluster("train", 2), old, hyperpod.cluster("far", 1, region="eu-west-1")])
    done = straggler(tmp_path, aws, "check", *words)
    assert done.status == 1
    assert line in done.line
    assert done.out == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("--orchestrator", "slurm"),
            "cluster train runs on EKS (train-eks), not on slurm: leave --orchestrator out",
        ),
        (
            ("--node", "i-00000000000000009"),
            "node 'i-00000000000000009' is not in the cluster; did you mean i-0",
        ),
        (
            ("--node", "zebra"),
            "node 'zebra' is not in the cluster; it has 2 nodes, such as i-00000000000000000",
        ),
        (("--region", "virginia"), "--region 'virginia' is no AWS region; it looks like us-east-1"),
        (("--sample-nodes", "0"), "--sample-nodes must be at least 1, not 0"),
        (("--node", "a", "--sample-nodes", "1"), "--node names the nodes: leave --sample-nodes out"),
    ],
)
def test_an_option_that_cannot_be_meant_is_a_wrong_argument(
    aws: FakeAws, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("train", 2)])
    done = straggler(tmp_path, aws, "check", "--cluster", "train", *words)
    assert done.status == 2
    assert line in done.line


@pytest.mark.parametrize(
    ("cluster", "line"),
    [
        (
            f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/train-eks",
            "that is the ARN of an EKS cluster; --cluster takes the HyperPod",
        ),
        (f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/x", "that ARN is of no HyperPod cluster"),
        ("arn:aws:iam::x", "that ARN is of no HyperPod cluster"),
        ("my cluster; rm -rf /", "is no cluster name: letters, digits and hyphens"),
        ("", "is no cluster name"),
    ],
)
def test_what_cannot_be_a_cluster_is_refused_before_anything_is_asked(
    aws: FakeAws, cluster: str, line: str
) -> None:
    with pytest.raises(UsageError, match=line.replace("(", r"\(")):
        target(cluster)
    assert aws.calls == []


def test_the_arn_and_the_option_must_agree_on_the_region(aws: FakeAws) -> None:
    made = hyperpod.cluster("far", region="eu-west-1")
    with pytest.raises(UsageError, match="the ARN is in eu-west-1, --region says us-east-1"):
        target(made.arn, region="us-east-1")


def test_a_cluster_without_nodes_says_why_there_are_none(aws: FakeAws, tmp_path: Path) -> None:
    made = hyperpod.cluster(
        "new", 0, ClusterStatus="Creating", FailureMessage="Insufficient capacity in us-east-1a"
    )
    made.groups["workers"]["TargetCount"] = 16
    hyperpod.serve(aws, [made])
    done = straggler(tmp_path, aws, "check", "--cluster", "new")
    assert done.status == 1
    assert (
        "cluster new (Creating) has no nodes, its 1 instance groups want 16: Insufficient capacity"
        in done.line
    )
    assert "aws sagemaker describe-cluster --cluster-name new --region us-east-1" in done.line


def test_regions_one_may_not_look_into_are_left_alone_without_a_word(aws: FakeAws) -> None:
    hyperpod.serve(aws, [hyperpod.cluster("far", 1, region="eu-west-1")])
    aws.deny("sagemaker", "ListClusters").region = "eu-west-1"
    with pytest.raises(
        FatalError, match=r"no HyperPod cluster 'far' in us-east-1; in us-east-1: there are none$"
    ):
        target("far")


def test_a_cluster_that_may_not_be_listed_is_still_said_to_be_missing(aws: FakeAws) -> None:
    hyperpod.serve(aws, [])
    aws.deny("sagemaker", "ListClusters")
    with pytest.raises(
        FatalError, match=r"no HyperPod cluster 'x' in us-east-1, and those there are cannot be listed"
    ):
        target("x")


def test_options_of_a_cluster_on_another_target_are_refused(tmp_path: Path) -> None:
    done = straggler(tmp_path, None, "check", "--demo", "--region", "us-east-1")
    assert (done.status, done.line) == (2, "straggler: --region belongs to --cluster")
