"""The closed list: every AWS operation the program may send, what for, and what it must be granted. Read-only by construction.

The guard (guard.py) holds every client to it where a request leaves the process; `straggler iam-policy` is generated from it.
Sources: the services' own models in botocore; the service authorization reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/, 2026-12-01) for actions, resources and conditions;
https://docs.aws.amazon.com/systems-manager/latest/userguide/getting-started-restrict-access-quickstart.html for sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Kind(Enum):
    """READ reads. SESSION opens or ends our own way onto a node. CREDENTIALS is what botocore itself calls for a profile."""

    READ = "read"
    SESSION = "session"
    CREDENTIALS = "credentials"


@dataclass(frozen=True, slots=True)
class Resource:
    """What a grant is held to. `arn` has {partition}, {region}, {account}, {cluster} (its id or *) and {name} (its name or *).

    `condition`: operator, key and value.
    """

    arn: str
    condition: tuple[str, str, str] | None = None


ANY = Resource("*")
CLUSTER = Resource("arn:{partition}:sagemaker:{region}:{account}:cluster/{cluster}")
LOGS = Resource(
    "arn:{partition}:logs:{region}:{account}:log-group:/aws/sagemaker/Clusters/{name}/{cluster}:*"
)
LOG_GROUPS = Resource("arn:{partition}:logs:{region}:{account}:log-group:*")
EKS = Resource("arn:{partition}:eks:{region}:{account}:cluster/*")
OWN_SESSIONS = tuple(
    # A session's id begins with the user's name for IAM users, and with the user id for everyone else.
    Resource("arn:{partition}:ssm:{region}:{account}:session/${{aws:" + variable + "}}-*")
    for variable in ("userid", "username")
)
SESSION_CLUSTER = Resource(CLUSTER.arn, ("BoolIfExists", "ssm:SessionDocumentAccessCheck", "true"))
SESSION_KEY = Resource(
    "arn:{partition}:kms:{region}:{account}:key/*",
    ("StringLike", "kms:EncryptionContext:aws:ssm:SessionId", "*"),
)

SESSION_DOCUMENTS = (
    "AWS-StartNonInteractiveCommand",
    "AmazonEKS-ExecuteNonInteractiveCommand",
    "AWS-StartInteractiveCommand",
)
"""The documents a session may be started with, each when those before it are refused or missing."""

DOCUMENTS = tuple(
    Resource(f"arn:{{partition}}:ssm:{{region}}:*:document/{name}") for name in SESSION_DOCUMENTS
)


@dataclass(frozen=True, slots=True)
class Operation:
    """`service` and `name` as botocore calls them. `actions`: what IAM must allow for it, by the resource it is asked for.

    No actions: nothing need be granted. `presign`: a URL may be signed for it that another program sends.
    """

    service: str
    name: str
    use: str
    actions: tuple[tuple[str, Resource], ...] = ()
    kind: Kind = Kind.READ
    presign: bool = False

    @property
    def action(self) -> str:
        """The IAM action this operation stands for, for messages."""
        return (
            self.actions[0][0] if self.actions else f"{_PREFIX.get(self.service, self.service)}:{self.name}"
        )


_PREFIX: Mapping[str, str] = MappingProxyType({"sso-oidc": "sso-oauth"})


def _read(service: str, resource: Resource, **uses: str) -> tuple[Operation, ...]:
    return tuple(
        Operation(service, name, use, ((f"{_PREFIX.get(service, service)}:{name}", resource),))
        for name, use in uses.items()
    )


def _credentials(service: str, **uses: str) -> tuple[Operation, ...]:
    return tuple(Operation(service, name, use, kind=Kind.CREDENTIALS) for name, use in uses.items())


OPERATIONS: tuple[Operation, ...] = (
    Operation("sts", "GetCallerIdentity", "who is asking, and in which account"),
    *_read("sagemaker", ANY, ListClusters="the clusters to pick from"),
    *_read(
        "sagemaker",
        CLUSTER,
        DescribeCluster="status, instance groups, network, orchestrator, node recovery",
        ListClusterNodes="every node with its status",
        DescribeClusterNode="availability zone and address of a node",
        ListClusterEvents="what happened to the cluster and its nodes (continuous provisioning only)",
        DescribeClusterEvent="one event whole",
    ),
    *_read(
        "ec2",
        ANY,
        DescribeSecurityGroups="whether nodes may talk EFA to each other",
        DescribeSubnets="zone and free addresses of the cluster's subnets",
        DescribeVpcs="the network the cluster stands in",
        DescribeVpcAttribute="DNS settings of that network",
        DescribeRouteTables="ways out of the subnets",
        DescribeVpcEndpoints="ways to AWS without leaving the network",
        DescribeNetworkInterfaces="which file system an address belongs to; interfaces in use",
        DescribeInstanceTypes="EFA interfaces and GPUs of an instance type",
    ),
    *_read(
        "fsx",
        ANY,
        DescribeFileSystems="type, capacity and provisioned throughput of mounted file systems",
        DescribeVolumes="OpenZFS volumes behind a mount",
        DescribeDataRepositoryAssociations="imports and exports that load a Lustre file system",
    ),
    *_read(
        "cloudwatch",
        ANY,
        GetMetricData="load of file systems over time",
        GetMetricStatistics="load of file systems, one metric",
        ListMetrics="which metrics exist",
    ),
    *_read("logs", LOG_GROUPS, DescribeLogGroups="whether the cluster has a log group"),
    *_read(
        "logs",
        LOGS,
        DescribeLogStreams="lifecycle, health-agent and deep-health-check streams",
        FilterLogEvents="lines of those streams in the window",
        GetLogEvents="one stream, in order",
    ),
    *_read("eks", EKS, DescribeCluster="network and access mode of the EKS cluster behind HyperPod"),
    Operation(
        "ssm",
        "StartSession",
        "one shell session on a node, to read it",
        (
            ("ssm:StartSession", SESSION_CLUSTER),
            *(("ssm:StartSession", one) for one in DOCUMENTS),
            *(("ssmmessages:OpenDataChannel", one) for one in OWN_SESSIONS),
        ),
        Kind.SESSION,
    ),
    Operation(
        "ssm",
        "ResumeSession",
        "a session whose connection dropped",
        tuple(("ssm:ResumeSession", one) for one in OWN_SESSIONS),
        Kind.SESSION,
    ),
    Operation(
        "ssm",
        "TerminateSession",
        "the end of every session we started",
        tuple(("ssm:TerminateSession", one) for one in OWN_SESSIONS),
        Kind.SESSION,
    ),
    Operation(
        "kms",
        "GenerateDataKey",
        "sessions the account wants encrypted",
        (("kms:GenerateDataKey", SESSION_KEY),),
        Kind.SESSION,
    ),
    *_credentials(
        "sts",
        AssumeRole="a profile with role_arn",
        AssumeRoleWithWebIdentity="a profile or pod with a web identity token",
    ),
    *_credentials("sso", GetRoleCredentials="a profile that signs in through IAM Identity Center"),
    *_credentials("sso-oidc", CreateToken="renewing that sign-in"),
    *_credentials("signin", CreateOAuth2Token="renewing a sign-in made by `aws login`"),
)
"""In the order a run comes to need them."""

BY_NAME: Mapping[tuple[str, str], Operation] = MappingProxyType(
    {(one.service, one.name): one for one in OPERATIONS}
)
