"""Whose credentials are used, and the sessions that hold them: each with the guard on it before anything can be asked with it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from straggler.engine.aws import guard
from straggler.engine.aws.errors import NoCredentials

if TYPE_CHECKING:
    from botocore.session import Session

_NOWHERE = logging.NullHandler()


def uses_sso(session: Session) -> bool:
    """Whether this profile signs in through IAM Identity Center."""
    config = session.get_scoped_config()
    return "sso_session" in config or "sso_start_url" in config


def not_renewable(session: Session) -> str:
    """Why waiting for new credentials would be in vain; empty when someone may renew them from outside."""
    credentials = session.get_credentials()
    if credentials is not None and credentials.method == "env":
        return "the AWS credentials in the environment have expired: export fresh ones and run again"
    if "mfa_serial" in session.get_scoped_config():
        return "the AWS session has expired and its profile asks for an MFA code: run again"
    return ""


def guarded_session(profile: str | None = None) -> Session:
    """A session no client of which can leave the closed list."""
    from botocore.session import Session as _Session

    for name in ("botocore", "urllib3"):
        # What they warn of comes back as an error, in our words; on stderr it would tear the screen.
        logging.getLogger(name).addHandler(_NOWHERE)
    session = _Session(profile=profile)
    guard.install(session)
    return session


def silent_session(profile: str | None = None) -> Session:
    """The same for when the screen is ours: a profile that would ask for an MFA code fails instead of asking."""

    def nobody_to_ask(_: str) -> str:
        raise NoCredentials(
            "this profile asks for an MFA code: name the cluster on the command line, where it can ask"
        )

    session = guarded_session(profile)
    session.get_component("credential_provider").get_provider("assume-role")._prompter = nobody_to_ask
    return session


def local_programs(session: Session) -> tuple[str, ...]:
    """The programs on this machine that the profile starts for its credentials, as botocore will start them."""
    profiles: Mapping[str, Mapping[str, str]] = session.full_config.get("profiles", {})
    found: list[str] = []
    name: str | None = session.profile or "default"
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        config = profiles.get(name, {})
        if command := config.get("credential_process"):
            found.append(command)
        name = config.get("source_profile")
    return tuple(found)
