"""Nothing but the closed list leaves the process, whichever client asks, and nothing is signed for others to send."""

from __future__ import annotations

import ast
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import botocore.client
import botocore.credentials
import botocore.tokens
import pytest

from straggler.engine.aws import guard
from straggler.engine.aws.clients import Clients, open_clients
from straggler.engine.aws.credentials import guarded_session, silent_session
from straggler.engine.aws.operations import BY_NAME, OPERATIONS, Kind
from tests.aws import protocol
from tests.aws.fake import FakeAws

OTHER_SDKS = {"boto3", "aioboto3", "aiobotocore"}
CALLS = {"create_client", "client", "resource"}

CHANGES = [
    ("sagemaker", "BatchRebootClusterNodes", {"ClusterName": "train", "NodeIds": ["i-00000000000000000"]}),
    ("sagemaker", "DeleteCluster", {"ClusterName": "train"}),
    ("ec2", "AuthorizeSecurityGroupIngress", {"GroupId": "sg-1"}),
    ("ssm", "SendCommand", {"DocumentName": "AWS-RunShellScript"}),
    ("logs", "DeleteLogGroup", {"logGroupName": "x"}),
    ("s3", "PutObject", {"Bucket": "b", "Key": "k"}),
    ("sts", "GetSessionToken", {}),
]


@pytest.mark.parametrize(("service", "operation", "params"), CHANGES)
def test_what_would_change_something_never_reaches_the_network(
    aws: FakeAws, service: str, operation: str, params: dict[str, Any]
) -> None:
    client = guarded_session().create_client(service, region_name="us-east-1")
    with pytest.raises(guard.RefusedError, match=operation):
        getattr(client, botocore.xform_name(operation))(**params)
    assert aws.calls == []


@pytest.mark.parametrize("operation", ["describe_clusters", "list_buckets"])
def test_no_url_is_signed_for_what_is_not_listed(aws: FakeAws, operation: str) -> None:
    client = guarded_session().create_client(
        "redshift" if operation == "describe_clusters" else "s3", region_name="us-east-1"
    )
    with pytest.raises(guard.RefusedError):
        client.generate_presigned_url(operation)


def test_no_url_is_signed_even_for_what_is_listed(aws: FakeAws) -> None:
    client = guarded_session().create_client("ec2", region_name="us-east-1")
    with pytest.raises(guard.RefusedError, match="no URL may be signed"):
        client.generate_presigned_url("describe_subnets")
    assert client.describe_subnets()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_no_form_is_signed(aws: FakeAws) -> None:
    client = guarded_session().create_client("s3", region_name="us-east-1")
    with pytest.raises(guard.RefusedError):
        client.generate_presigned_post("bucket", "key")


async def test_credentials_of_others_are_not_for_us_to_ask_for(aws: FakeAws) -> None:
    clients = open_clients()
    with pytest.raises(guard.RefusedError, match="profiles and sign-ins only"):
        await clients.call(
            "sts", "AssumeRole", RoleArn="arn:aws:iam::123456789012:role/x", RoleSessionName="x"
        )
    assert aws.calls == []


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The service of every client that anything in this process makes from now on."""
    found: list[str] = []
    whole = botocore.client.ClientCreator.create_client

    def noted(self: Any, service_name: str, *rest: Any, **named: Any) -> Any:
        found.append(service_name)
        client = whole(self, service_name, *rest, **named)
        assert refuses(client, service_name), f"the client of {service_name} is not guarded"
        return client

    monkeypatch.setattr(botocore.client.ClientCreator, "create_client", noted)
    return found


def refuses(client: Any, service: str) -> bool:
    """Whether this very client stops at the guard: asked by the hook it emits before any call."""
    service_id = client.meta.service_model.service_id.hyphenize()
    try:
        client.meta.events.emit(f"before-call.{service_id}.NotAnOperation")
    except guard.RefusedError:
        return True
    return False


async def test_every_client_that_is_made_for_the_listed_operations_is_guarded(
    aws: FakeAws, made: list[str]
) -> None:
    clients = open_clients()
    services = {one.service for one in OPERATIONS if one.kind is not Kind.CREDENTIALS}
    for service in services:
        clients._client(service)
    assert set(made) == services


async def test_a_profile_with_a_role_asks_for_it_through_a_guarded_client(
    aws: FakeAws, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(
        tmp_path,
        monkeypatch,
        "[profile base]",
        "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/ops\nsource_profile = base",
    )
    clients = open_clients("us-east-1", "role")
    assert (await clients.identity())["Account"]
    assert made == ["sts", "sts"]
    assert aws.operations() == {("sts", "AssumeRole"), ("sts", "GetCallerIdentity")}


async def test_a_web_identity_token_is_exchanged_through_a_guarded_client(
    aws: FakeAws, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("token")
    role = f"[profile pod]\nrole_arn = arn:aws:iam::123456789012:role/pod\nweb_identity_token_file = {tmp_path / 'token'}"
    profile(tmp_path, monkeypatch, role)
    await open_clients("us-east-1", "pod").identity()
    assert ("sts", "AssumeRoleWithWebIdentity") in aws.operations()
    assert made == ["sts", "sts"]


async def test_a_sign_in_is_renewed_and_used_through_guarded_clients(
    aws: FakeAws, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(timezone.utc)
    sign_in(tmp_path, monkeypatch, ends=now + timedelta(minutes=5), renewable=True)
    soon = int((now + timedelta(hours=1)).timestamp() * 1000)
    role = {"accessKeyId": "ASIASSO", "secretAccessKey": "s", "sessionToken": "t", "expiration": soon}
    aws.handle(
        {
            ("sso-oidc", "CreateToken"): lambda _: {
                "accessToken": "new",
                "expiresIn": 3600,
                "refreshToken": "r",
                "tokenType": "Bearer",
            }
        }
    )
    aws.handle({("sso", "GetRoleCredentials"): lambda _: {"roleCredentials": role}})
    await open_clients("us-east-1", "sso").identity()
    assert aws.operations() == {
        ("sso-oidc", "CreateToken"),
        ("sso", "GetRoleCredentials"),
        ("sts", "GetCallerIdentity"),
    }
    assert sorted(made) == ["sso", "sso-oidc", "sts"]


def profile(home: Path, monkeypatch: pytest.MonkeyPatch, *parts: str) -> None:
    """A config of these profiles; the one called base has keys."""
    config = "\n".join(parts).replace(
        "[profile base]", "[profile base]\naws_access_key_id = AKIABASE\naws_secret_access_key = s"
    )
    (home / "config").write_text(config)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(home / "config"))


def sign_in(home: Path, monkeypatch: pytest.MonkeyPatch, *, ends: datetime, renewable: bool) -> None:
    """A profile that signs in, and the token that `aws sso login` left behind."""
    from hashlib import sha1

    profile(
        home,
        monkeypatch,
        "[profile sso]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = ops",
        "[sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-1",
    )
    # Where the token lies is settled when botocore is imported.
    monkeypatch.setattr(botocore.credentials.SSOProvider, "_SSO_TOKEN_CACHE_DIR", str(home))
    monkeypatch.setattr(botocore.tokens.SSOTokenProvider, "_SSO_TOKEN_CACHE_DIR", str(home))
    token = {"startUrl": "https://corp.awsapps.com/start", "region": "us-east-1", "accessToken": "old"}
    token["expiresAt"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    if renewable:
        later = (ends + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        token |= {"refreshToken": "r", "clientId": "c", "clientSecret": "s", "registrationExpiresAt": later}
    (home / f"{sha1(b'corp').hexdigest()}.json").write_text(json.dumps(token))


def test_every_listed_operation_is_one_the_service_has() -> None:
    for one in OPERATIONS:
        assert one.name in protocol.model(one.service).operation_names, one


def test_the_guard_calls_services_as_botocores_hooks_do() -> None:
    for one in OPERATIONS:
        hook = protocol.model(one.service).service_id.hyphenize()
        assert guard._BY_EVENT[hook, one.name] is one


def test_no_listed_operation_changes_anything() -> None:
    """By their names; sessions and credentials, which do make something, are listed one by one."""
    made = {one.name for one in OPERATIONS if one.kind is not Kind.READ}
    assert made == {
        *("StartSession", "ResumeSession", "TerminateSession", "GenerateDataKey"),
        *(
            "AssumeRole",
            "AssumeRoleWithWebIdentity",
            "GetRoleCredentials",
            "CreateToken",
            "CreateOAuth2Token",
        ),
    }
    reads = [one.name for one in OPERATIONS if one.kind is Kind.READ]
    assert all(name.startswith(("Describe", "List", "Get", "Filter")) for name in reads)
    assert len(BY_NAME) == len(OPERATIONS)


def test_sessions_may_be_started_with_the_documents_the_transport_uses_and_no_others() -> None:
    from straggler.engine.aws.operations import SESSION_DOCUMENTS
    from straggler.engine.transports.ssm_command import DOCUMENTS

    assert tuple(one.name for one in DOCUMENTS) == SESSION_DOCUMENTS


def test_only_one_file_makes_sessions_and_clients() -> None:
    """Whoever else made one would have no guard on it."""
    engine = Path(guard.__file__).parents[1]
    makers = {
        (what, path.name)
        for top in (engine, engine.parent / "tui")
        for path in top.rglob("*.py")
        for what in makes(ast.parse(path.read_text()))
    }
    assert makers == {("session", "credentials.py"), ("client", "clients.py")}


def makes(tree: ast.Module) -> set[str]:
    """Which of the things that could call AWS a file makes. Imports for the type checker only make nothing."""
    found = set()
    typing_only = {
        id(inner)
        for one in ast.walk(tree)
        if isinstance(one, ast.If) and isinstance(one.test, ast.Name) and one.test.id == "TYPE_CHECKING"
        for inner in ast.walk(one)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom):
            found |= {"session"} if node.module == "botocore.session" else set()
            found |= {"other SDK"} if (node.module or "").partition(".")[0] in OTHER_SDKS else set()
        elif isinstance(node, ast.Import):
            roots = {alias.name.partition(".")[0] for alias in node.names}
            found |= {"other SDK"} if roots & OTHER_SDKS else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            found.add("client")
    return found


def test_a_renewed_session_is_guarded_like_the_first(aws: FakeAws) -> None:
    client = silent_session().create_client("sagemaker", region_name="us-east-1")
    with pytest.raises(guard.RefusedError):
        client.delete_cluster(ClusterName="train")


def test_other_regions_are_looked_at_through_the_guard(aws: FakeAws) -> None:
    there = open_clients().elsewhere("eu-west-1")
    assert isinstance(there, Clients)
    with pytest.raises(guard.RefusedError):
        there._client("sagemaker").delete_cluster(ClusterName="train")
