"""What AWS's errors mean for the operator: one line each, with the command that mends it.

AwsError
├── NoCredentials        none found, or not usable
├── CredentialsExpired   were good once; renewing them lets a run go on
├── Denied               IAM or an organisation's policy refuses the operation
├── NotFound             the thing asked for is not there
├── Throttled            too many calls, after all retries
├── Unreachable          no answer from the endpoint: network, proxy, or a region that has no such service
├── Refused              the service does not accept the request (validation, unsupported here)
└── ServiceFault         5xx, or an answer that is none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from straggler.engine.errors import FatalError
from straggler.engine.model import Status
from straggler.engine.safetext import safe


class AwsError(FatalError):
    """`status` is what a reading that failed so gets. `code` and `said` are AWS's own; without an answer of the service, `code`
    is the name of botocore's error and `said` is empty."""

    status = Status.FAILED

    def __init__(self, why: str, code: str = "", said: str = "") -> None:
        super().__init__(why)
        self.why, self.code, self.said = why, code, said

    @property
    def response(self) -> Mapping[str, Mapping[str, str]]:
        """As botocore's own errors carry it."""
        return {"Error": {"Code": self.code, "Message": self.said}}


class NoCredentials(AwsError):
    status = Status.DENIED


class CredentialsExpired(AwsError):
    status = Status.DENIED


class Denied(AwsError):
    """`action` is the IAM action to allow; `by_policy`: an explicit deny, which no further grant lifts."""

    status = Status.DENIED

    def __init__(self, why: str, code: str = "", said: str = "", action: str = "") -> None:
        super().__init__(why, code, said)
        self.action = action
        self.by_policy = "explicit deny" in said


class NotFound(AwsError):
    status = Status.NOT_VISIBLE


class Throttled(AwsError):
    status = Status.TIMED_OUT


class Unreachable(AwsError):
    status = Status.UNREACHABLE


class Refused(AwsError):
    status = Status.FAILED


class ServiceFault(AwsError):
    status = Status.FAILED


@dataclass(frozen=True, slots=True)
class Asked:
    """What was being done when the error came: for the words of the message. `action` is the IAM action of the operation."""

    action: str
    region: str
    profile: str | None = None
    sso: bool = False

    @property
    def sign_in(self) -> str:
        """The command that renews the credentials of this profile."""
        named = f" --profile {self.profile}" if self.profile else ""
        return f"aws sso login{named}" if self.sso else f"aws login{named}"


_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "NotAuthorized"}
    | {"ForbiddenException", "OptInRequired", "SubscriptionRequiredException"}
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
_BAD_KEYS = frozenset(
    {"InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId", "AuthFailure"}
    | {
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        "IncompleteSignature",
        "MissingAuthenticationToken",
    }
)
_SKEWED = re.compile(r"RequestTimeTooSkewed|[Ss]ignature (not yet current|expired)")
_THROTTLED = re.compile(r"Thrott|TooManyRequests|RequestLimitExceeded|LimitExceededException|SlowDown")
_MISSING = re.compile(r"NotFound|NoSuch|DoesNotExist")


def translate(error: Exception, asked: Asked) -> AwsError:
    """The AwsError for whatever botocore raised. Loads botocore, which has been loaded by whoever got the error."""
    from botocore import exceptions as b

    if isinstance(error, AwsError):
        return error
    if isinstance(error, b.ClientError):
        told: Mapping[str, object] = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return _answered(
            str(told.get("Code", "")), safe(str(told.get("Message", "")), limit=400), status, asked
        )
    for kinds, make in _unanswered():
        if isinstance(error, kinds):
            made = make(error, asked)
            made.code = made.code or type(error).__name__
            return made
    return ServiceFault(f"{asked.action}: {type(error).__name__}: {safe(str(error), limit=300)}")


def _answered(code: str, said: str, http: int, asked: Asked) -> AwsError:
    if code in _EXPIRED and not _SKEWED.search(said):
        return _expired(asked, code)
    if _SKEWED.search(f"{code} {said}"):
        return NoCredentials(
            "AWS refuses the signature because this machine's clock is off: set it (chronyc makestep)",
            code,
            said,
        )
    if code in _BAD_KEYS:
        return NoCredentials(
            f"AWS does not know these credentials ({code}): {_how_to_sign_in(asked)}", code, said
        )
    if code in _DENIED or (http == 403 and not code):
        return _denied(code, said, asked)
    if _THROTTLED.search(code):
        return Throttled(
            f"{asked.action} is throttled by AWS even after retries ({code}): try again in a minute",
            code,
            said,
        )
    if _MISSING.search(code) or (http == 404 and not code):
        return NotFound(f"{asked.action}: not found in {asked.region}: {said or code}", code, said)
    if http >= 500:
        return ServiceFault(
            f"{asked.action} failed on AWS's side ({code or http}), also when tried again", code, said
        )
    return Refused(f"{asked.action}: {code or http}: {said}", code, said)


def _denied(code: str, said: str, asked: Asked) -> AwsError:
    if "explicit deny" in said:
        why = f"{asked.action} is denied by a policy (an explicit deny): ask who owns the account's policies"
    else:
        why = f"{asked.action} is not allowed: straggler iam-policy prints the least privilege to grant"
    return Denied(why, code, said, asked.action)


def _expired(asked: Asked, code: str = "") -> CredentialsExpired:
    return CredentialsExpired(f"the AWS credentials have expired: {asked.sign_in}, or set fresh ones", code)


def _how_to_sign_in(asked: Asked) -> str:
    named = f" in profile {asked.profile}" if asked.profile else ""
    return f"check the keys{named} (aws sts get-caller-identity), or sign in: {asked.sign_in}"


Make = Callable[[Exception, Asked], AwsError]


def _unanswered() -> tuple[tuple[tuple[type[Exception], ...], Make], ...]:
    """Errors that carry no answer of the service, most specific first."""
    from botocore import exceptions as b

    sso = (b.SSOTokenLoadError, b.UnauthorizedSSOTokenError, b.TokenRetrievalError, b.SSOError, b.LoginError)
    none = (b.NoCredentialsError, b.PartialCredentialsError, b.NoAuthTokenError)
    failed = (
        b.CredentialRetrievalError,
        b.InvalidConfigError,
        b.InfiniteLoopConfigError,
        b.MetadataRetrievalError,
    )
    proxy = (b.ProxyConnectionError, b.InvalidProxiesConfigError)
    slow = (b.ConnectTimeoutError, b.ReadTimeoutError)
    nowhere = (
        b.EndpointConnectionError,
        b.EndpointProviderError,
        b.InvalidRegionError,
        b.UnknownEndpointError,
    )
    return (
        (sso, lambda _, asked: CredentialsExpired(f"the AWS sign-in has expired: {asked.sign_in}")),
        (
            (b.RefreshWithMFAUnsupportedError,),
            lambda *_: CredentialsExpired(
                "the AWS session has expired and its profile asks for an MFA code: run again"
            ),
        ),
        (none, lambda _, asked: no_credentials(asked.profile, asked.sign_in)),
        (failed, _credentials_failed),
        (
            (b.ProfileNotFound,),
            lambda _, asked: NoCredentials(
                f"there is no AWS profile {asked.profile!r} (aws configure list-profiles lists them)"
            ),
        ),
        (
            proxy,
            lambda _, asked: Unreachable(
                f"{asked.action}: the proxy does not answer: look at HTTPS_PROXY and NO_PROXY"
            ),
        ),
        (
            slow,
            lambda _, asked: Unreachable(
                f"{asked.action}: no answer from AWS in {asked.region} in time: look at network and proxy"
            ),
        ),
        (
            (b.SSLError,),
            lambda error, asked: Unreachable(
                f"{asked.action}: the endpoint's certificate is not trusted: set AWS_CA_BUNDLE ({safe(str(error), limit=160)})"
            ),
        ),
        (
            nowhere,
            lambda _, asked: Unreachable(
                f"{asked.action}: no such endpoint in {asked.region!r}: look at --region, DNS and AWS_ENDPOINT_URL"
            ),
        ),
        (
            (b.HTTPClientError,),
            lambda error, asked: Unreachable(f"{asked.action}: {safe(str(error), limit=200)}"),
        ),
        (
            (b.ParamValidationError,),
            lambda error, asked: Refused(f"{asked.action}: {' '.join(safe(str(error), limit=300).split())}"),
        ),
    )


def no_credentials(profile: str | None, sign_in: str = "aws login") -> NoCredentials:
    named = f" in profile {profile}" if profile else ""
    return NoCredentials(
        f"no AWS credentials found{named}: sign in ({sign_in}), or name a profile with --profile"
    )


def _credentials_failed(error: Exception, asked: Asked) -> AwsError:
    named = f" of profile {asked.profile}" if asked.profile else ""
    return NoCredentials(f"the AWS credentials{named} could not be obtained: {safe(str(error), limit=200)}")
