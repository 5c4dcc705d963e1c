"""What AWS or the agent refused, in one plain sentence each, with what it means for the node."""

from __future__ import annotations

import re

from straggler.engine.aws.errors import (
    AwsError,
    Denied,
    NoCredentials,
    ServiceFault,
    Throttled,
    Unreachable,
)
from straggler.engine.aws.errors import CredentialsExpired as Expired
from straggler.engine.errors import TransportError
from straggler.engine.model import Status

_WORDS_KEPT = 160

_NO_TARGET = frozenset({"InvalidTarget", "InvalidInstanceId", "ValidationException"})
_NO_DOCUMENT = frozenset({"InvalidDocument", "InvalidDocumentVersion", "InvalidParameters"})

SESSION_OVER = "the session had ended before it could be resumed"


class CredentialsExpired(TransportError):
    """The credentials are no longer taken: nothing is wrong with the node, and all nodes are met by it alike.

    Whoever runs the gathering should stop asking, have the operator log in again, and ask these nodes anew.
    """

    def __init__(self, why: str) -> None:
        super().__init__(Status.DENIED, why)


def words(text: str) -> str:
    """Text of others inside a sentence of ours: one short line, nothing that a terminal would act on."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _WORDS_KEPT else line[: _WORDS_KEPT - 1] + "…"


def document_refused(error: AwsError, document: str) -> bool:
    """Whether another document may still be allowed: this one is missing, or the refusal names it."""
    return error.code in _NO_DOCUMENT or (isinstance(error, Denied) and f"document/{document}" in error.said)


def explain(error: AwsError) -> TransportError:
    """The TransportError for what Systems Manager refused."""
    if isinstance(error, Expired | NoCredentials):
        return CredentialsExpired(error.why)
    quoted = f" ({words(error.said)})" if error.said else ""
    if error.code == "TargetNotConnected":
        return TransportError(
            Status.UNREACHABLE,
            "the node is not connected to Session Manager: its SSM agent does not run or has no way to the ssmmessages"
            " endpoint, or there is no such node",
        )
    if error.code in _NO_TARGET:
        return TransportError(Status.UNREACHABLE, f"Session Manager does not take this target{quoted}")
    if error.code in _NO_DOCUMENT:
        return TransportError(Status.DENIED, f"the session document cannot be used{quoted}")
    if error.code == "DoesNotExistException":
        return TransportError(Status.TRUNCATED, SESSION_OVER, transient=True)
    if isinstance(error, Throttled):
        why = "sessions are throttled again and again: something else starts sessions in this account"
        return TransportError(Status.UNREACHABLE, why, transient=True)
    # What is Denied, Refused or NotFound now is so at the next try, too.
    transient = isinstance(error, Unreachable | ServiceFault)
    status = Status.DENIED if isinstance(error, Denied) else Status.UNREACHABLE
    return TransportError(status, error.why, transient=transient)


def explain_kms(error: AwsError, key: str) -> TransportError:
    """Why an encrypted session could not be opened with `key`."""
    if isinstance(error, Expired | NoCredentials):
        return CredentialsExpired(error.why)
    why = f"this account encrypts sessions with {words(key)}: {error.why}"
    transient = isinstance(error, Throttled | Unreachable | ServiceFault)
    return TransportError(error.status if transient else Status.DENIED, why, transient=transient)


_CLOSED = (
    (
        re.compile(r"runas user", re.IGNORECASE),
        Status.DENIED,
        "the account runs sessions as a user this node does not have (Run As)",
    ),
    (
        re.compile(r"(latest|update).{0,60}session manager plugin", re.IGNORECASE),
        Status.FAILED,
        "the node's agent asks for a newer kind of client than this program is",
    ),
    (
        re.compile(r"handshake timed out|encryption challenge", re.IGNORECASE),
        Status.UNREACHABLE,
        "the node's agent gave up on the handshake",
    ),
    (
        re.compile(r"data key|kms", re.IGNORECASE),
        Status.DENIED,
        "the node could not use the KMS key of the session",
    ),
    (
        re.compile(r"cloudwatch|s3 bucket|encryption is not set up", re.IGNORECASE),
        Status.DENIED,
        "the session logging this account demands does not work on this node",
    ),
)


def explain_end(text: str, code: int | None) -> TransportError:
    """A session that ended before our script said a word: `text` is what the agent or the shell said instead."""
    quoted = f": {words(text)}" if text.strip() else ""
    for pattern, status, why in _CLOSED:
        if pattern.search(text):
            return TransportError(status, f"{why}{quoted}", transient=status is Status.UNREACHABLE)
    if re.search(r"base64.*(not found|no such)|(not found|no such).*base64", text, re.IGNORECASE | re.DOTALL):
        return TransportError(
            Status.TOOL_MISSING, f"the node has no base64 to unpack the script with{quoted}"
        )
    if re.search(r"unable to start command|starting the command", text, re.IGNORECASE):
        return TransportError(Status.TOOL_MISSING, f"the node's agent could not start sh{quoted}")
    if code is not None:
        return TransportError(Status.FAILED, f"the node did not run the script (exit {code}){quoted}")
    return TransportError(
        Status.TRUNCATED, f"the session ended before the node ran the script{quoted}", transient=True
    )
