"""The gate to AWS: no client of the session, whoever made it, sends or signs what the closed list does not name.

botocore hands every client a copy of its session's event hooks when the client is made, the clients it makes itself for
profiles and SSO included; a guard that is on the session before the first client therefore stands in front of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from straggler.engine.aws.operations import BY_NAME, OPERATIONS, Operation
from straggler.engine.errors import FatalError

if TYPE_CHECKING:
    from botocore.session import Session

HOOKS = ("provide-client-params", "before-call", "before-sign", "before-send")
"""Where a call can be stopped: before its parameters are looked at, before it is sent, before it is signed (a presigned URL
passes only here and at the first), and before each try leaves the process."""

_EVENT_NAMES = {"logs": "cloudwatch-logs"}
"""botocore names events by the service's id, which is the client's name but for these."""

_BY_EVENT = {(_EVENT_NAMES.get(one.service, one.service), one.name): one for one in OPERATIONS}


class RefusedError(FatalError):
    """Raised instead of sending an operation that is not in the closed list: a mistake in the program, never the user's."""


def install(session: Session) -> None:
    """Put the guard in front of every client this session will make. Must come before the first one."""
    hooks = session.get_component("event_emitter")
    for hook in HOOKS:
        hooks.register_first(hook, refuse_unlisted, unique_id=f"straggler-guard-{hook}")


def refuse_unlisted(event_name: str, signature_version: object = None, **_: object) -> None:
    """A botocore event handler. Raises RefusedError; returns nothing otherwise, which lets the call go on."""
    service, operation = event_name.split(".", 2)[1:]
    entry = _BY_EVENT.get((service, operation))
    if entry is None:
        raise RefusedError(f"refused: {service}:{operation} is not in the closed list of AWS operations")
    if _presigns(signature_version) and not entry.presign:
        raise RefusedError(f"refused: no URL may be signed for {service}:{operation}")


def _presigns(signature_version: object) -> bool:
    return isinstance(signature_version, str) and signature_version.endswith(("-query", "-presign-post"))


def listed(service: str, operation: str) -> Operation:
    """The entry of the closed list. Raises RefusedError where there is none."""
    found = BY_NAME.get((service, operation))
    if found is None:
        raise RefusedError(f"refused: {service}:{operation} is not in the closed list of AWS operations")
    return found
