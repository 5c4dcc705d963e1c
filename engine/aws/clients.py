"""The one way to AWS: guarded clients in threads of their own, with short timeouts, bounded retries and errors in plain words.

botocore is loaded when clients are opened, not before: it takes longer than the first paint.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from straggler.engine.aws import guard
from straggler.engine.aws.credentials import guarded_session, not_renewable, silent_session, uses_sso
from straggler.engine.aws.errors import (
    Asked,
    AwsError,
    CredentialsExpired,
    ServiceFault,
    Throttled,
    no_credentials,
    translate,
)
from straggler.engine.aws.operations import Kind, Operation
from straggler.engine.aws.pace import CALLS_A_SECOND, Pace
from straggler.engine.aws.workers import Workers
from straggler.engine.errors import UsageError

if TYPE_CHECKING:
    from botocore.session import Session

THREADS = 16
"""Calls at once; each client's connection pool is as large."""

CONNECT_SECONDS, READ_SECONDS = 5, 20
ATTEMPTS = 4
"""Tries of one call, the first included, with botocore's standard back-off."""

OWN_RETRIES = frozenset({("ssm", "StartSession")})
"""Throttling of these is for the caller, whose token bucket must see it; botocore tries their service once."""

THROTTLED_AGAIN = 2
"""How often a call that was throttled through all tries is made again, more slowly each time."""

RENEWAL_SECONDS = 5.0
PATIENCE_SECONDS = 900.0
"""How often expired credentials are looked at again, and how long a run waits for someone to renew them."""

MOST_PAGES = 2000

Answer = Mapping[str, Any]


class Clients:
    """Every AWS call of a run. Safe to use from one event loop after another, and to drop at any time.

    `make_session` reads profile and sign-in anew, when the credentials of `session` have expired. `on_trouble` hears one
    line when calls wait for new credentials and one when they go on. `patience`: seconds they wait at most; 0: not at all.
    """

    def __init__(
        self,
        session: Session,
        make_session: Callable[[], Session],
        region: str,
        profile: str | None = None,
        *,
        patience: float = 0.0,
        tries: int = ATTEMPTS,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._tries = tries
        self.region, self.profile = region, profile
        self.on_trouble, self.patience = on_trouble, patience
        self._session, self._make_session = session, make_session
        self._clients: dict[str, Any] = {}
        self._making = threading.Lock()
        self._workers = Workers(THREADS, "aws")
        self._paces = {key: Pace(rate) for key, rate in CALLS_A_SECOND.items()}
        self._renewing: asyncio.Future[None] | None = None

    async def call(self, service: str, operation: str, **params: Any) -> Answer:
        """One call. Raises AwsError; waits for renewed credentials when they expire meanwhile."""
        entry = guard.listed(service, operation)
        if entry.kind is Kind.CREDENTIALS:
            raise guard.RefusedError(f"refused: {service}:{operation} is for profiles and sign-ins only")
        while True:
            try:
                return await self._unhurried(entry, params)
            except CredentialsExpired as error:
                await self._renewed(error)

    async def pages(self, service: str, operation: str, **params: Any) -> AsyncIterator[Answer]:
        """Every page of a listing, as it comes. A listing that does not end is an error, never a shorter list."""
        before, after = await self._workers.do(lambda: self._tokens(service, operation))
        asked = dict(params)
        for _ in range(MOST_PAGES):
            page = await self.call(service, operation, **asked)
            yield page
            token = page.get(after)
            if not token:
                return
            if token == asked.get(before):
                break
            asked[before] = token
        raise AwsError(f"{service}:{operation} keeps giving pages without an end")

    async def identity(self) -> Answer:
        """Who is asking: Account, Arn, UserId."""
        return await self.call("sts", "GetCallerIdentity")

    def asked(self, entry: Operation) -> Asked:
        return Asked(entry.action, self.region, self.profile, sso=uses_sso(self._session))

    @property
    def session(self) -> Session:
        return self._session

    async def other_regions(self, service: str) -> tuple[str, ...]:
        """The other regions of this one's partition where the service is, as far as this version of botocore knows."""

        def look() -> tuple[str, ...]:
            with self._making:
                partition = self._session.get_partition_for_region(self.region)
                return tuple(self._session.get_available_regions(service, partition))

        return tuple(one for one in await self._workers.do(look) if one != self.region)

    def elsewhere(self, region: str) -> Clients:
        """The same credentials in another region. Impatient: it is for looking around, and one try must do."""
        return Clients(self._session, self._make_session, region, self.profile, tries=1)

    def close(self) -> None:
        self._workers.close()

    async def _unhurried(self, entry: Operation, params: Mapping[str, Any]) -> Answer:
        pace = self._paces.get((entry.service, entry.name))
        tries = 0
        while True:
            if pace is not None:
                await pace.turn()
            try:
                return await self._workers.do(lambda: self._send(entry, params))
            except Throttled:
                tries += 1
                if tries > THROTTLED_AGAIN or (entry.service, entry.name) in OWN_RETRIES:
                    raise
                pace = pace or self._paces.setdefault((entry.service, entry.name), Pace(float(THREADS)))
                pace.slower()

    def _send(self, entry: Operation, params: Mapping[str, Any]) -> Answer:
        """In a worker."""
        from botocore import xform_name

        try:
            call = getattr(self._client(entry.service), xform_name(entry.name))
            answer: Answer = call(**params)
            self._genuine(entry, answer)
        except guard.RefusedError:
            raise
        except Exception as error:
            raise translate(error, self.asked(entry)) from error
        return answer

    def _genuine(self, entry: Operation, answer: Answer) -> None:
        """Raises ServiceFault where botocore made an empty answer of something else: a proxy's page must not read as "none"."""
        kind = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("content-type", "")
        shape = self._clients[entry.service].meta.service_model.operation_model(entry.name).output_shape
        missing = [one for one in (shape.metadata.get("required", ()) if shape else ()) if one not in answer]
        if "html" in kind or missing:
            raise ServiceFault(
                f"{entry.action}: what answered is not the service: look for a proxy or a sign-in page in between"
            )

    def _client(self, service: str) -> Any:
        from botocore.config import Config

        # Making a client is not safe in two threads of one session, and reads megabytes of JSON: once each.
        with self._making:
            if service not in self._clients:
                tries = 1 if any(one == service for one, _ in OWN_RETRIES) else self._tries
                config = Config(
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=READ_SECONDS,
                    max_pool_connections=THREADS,
                    retries={"mode": "standard", "total_max_attempts": tries},
                    user_agent_extra="straggler",
                )
                self._clients[service] = self._session.create_client(
                    service, region_name=self.region, config=config
                )
            return self._clients[service]

    def _tokens(self, service: str, operation: str) -> tuple[str, str]:
        """The names of the page token in the request and in the answer."""
        with self._making:
            model = self._session.get_service_model(service).operation_model(operation)
        for asked, told in (("NextToken", "NextToken"), ("nextToken", "nextToken")):
            if asked in model.input_shape.members and told in model.output_shape.members:
                return asked, told
        raise AwsError(f"{service}:{operation} has no pages")

    async def _renewed(self, error: CredentialsExpired) -> None:
        """Come back when there are new credentials. One caller looks for them, the others wait for it. Raises `error`."""
        if self.patience <= 0:
            raise error
        if why := not_renewable(self._session):
            raise CredentialsExpired(why, error.code) from error
        if self._renewing is not None:
            await asyncio.shield(self._renewing)
            return
        self._renewing = asyncio.get_running_loop().create_future()
        self.on_trouble(f"waiting: {error.why}; this goes on by itself afterwards")
        until = time.monotonic() + self.patience
        try:
            while not await self._workers.do(self._take_new_credentials):
                if time.monotonic() >= until:
                    raise error
                await asyncio.sleep(RENEWAL_SECONDS)
            self.on_trouble("the AWS credentials are good again: going on")
        finally:
            waiting, self._renewing = self._renewing, None
            waiting.set_result(None)

    def _take_new_credentials(self) -> bool:
        """In a worker: read profile and sign-in again, and keep them when AWS takes them."""
        session = self._make_session()
        try:
            client = session.create_client("sts", region_name=self.region)
            client.get_caller_identity()
        except guard.RefusedError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, they are not good yet; the caller has the error that counts
            return False
        with self._making:
            self._session, self._clients = session, {}
        return True


def open_clients(region: str | None = None, profile: str | None = None, *, ask: bool = True) -> Clients:
    """Blocking. With `ask` it may ask for an MFA code on the terminal: before any full screen.

    Raises AwsError or UsageError. The clients are impatient until someone is there who hears of trouble.
    """
    session = guarded_session(profile) if ask else silent_session(profile)
    try:
        where = region or os.environ.get("AWS_REGION") or session.get_config_variable("region")
        sso = uses_sso(session)
    except Exception as error:
        raise translate(error, Asked("credentials", region or "", profile)) from error
    if not where:
        raise UsageError("no AWS region: add --region, or set AWS_REGION")
    try:
        credentials = session.get_credentials()
        if credentials is None:
            raise no_credentials(profile)
        credentials.get_frozen_credentials()
    except Exception as error:
        raise translate(error, Asked("credentials", where, profile, sso)) from error
    return Clients(session, partial(silent_session, profile), where, profile)
