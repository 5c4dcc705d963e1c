"""AWS over HTTP on this machine: moto behind, own answers in front for what moto lacks or gets wrong, and faults on demand.

Every own answer is held to botocore's model, so that a field name the service does not have fails the test. The product is
pointed here by AWS_ENDPOINT_URL alone.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tests.aws import protocol

ACCOUNT = "123456789012"


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived. `params` is empty for services that do not speak JSON."""

    service: str
    operation: str
    region: str
    params: Mapping[str, Any]
    key: str = ""


@dataclass
class Fault:
    """Answers of an operation that go wrong: `times` of them, or all. Without a code the answer is only late."""

    service: str
    operation: str
    code: str = ""
    message: str = ""
    http: int = 400
    seconds: float = 0.0
    times: int | None = None
    region: str | None = None

    def hits(self, call: Call) -> bool:
        named = (self.service, self.operation) in (
            (call.service, call.operation),
            ("*", "*"),
            (call.service, "*"),
        )
        if not named or self.times == 0 or (self.region or call.region) != call.region:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class ApiError(Exception):
    """An own handler's refusal, as the service would word it."""

    def __init__(self, code: str, message: str, http: int = 400) -> None:
        super().__init__(code)
        self.code, self.message, self.http = code, message, http


class Quiet(WSGIRequestHandler):
    """Connections that are kept, as AWS keeps them, and no line for each request."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_: object) -> None:
        pass


def _typed(start_response: Any, request: Request) -> Any:
    """moto answers JSON as text/html; AWS does not."""

    def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        if "X-Amz-Target" in request.headers:
            others = [(name, value) for name, value in headers if name.lower() != "content-type"]
            headers = [*others, ("Content-Type", request.mimetype)]
        return start_response(status, headers, *rest)

    return start


Handler = Callable[[Call], Mapping[str, Any]]


class FakeAws:
    """A server of its own on a free port. `calls` is everything that was asked, in order."""

    def __init__(self) -> None:
        self.handlers: dict[tuple[str, str], Handler] = {}
        self.faults: list[Fault] = []
        self.calls: list[Call] = []
        self.missing: list[Call] = []
        """What was asked of moto that it does not have."""
        self.wrong: list[str] = []
        """Own answers that the service's model does not have; leaving with any is an AssertionError."""
        self.expired: set[str] = set()
        """Access keys that are not taken any more."""
        self._moto: Any = None
        self._lock = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._app, threaded=True, request_handler=Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="fake aws")

    def __enter__(self) -> FakeAws:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self.wrong, self.wrong

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def environment(self, key: str = "AKIATEST", region: str | None = "us-east-1") -> dict[str, str]:
        """All that the product gets to know of this."""
        found = {"AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "secret"}
        return (
            found | ({"AWS_DEFAULT_REGION": region} if region else {}) | {"AWS_EC2_METADATA_DISABLED": "true"}
        )

    def handle(self, handlers: Mapping[tuple[str, str], Handler]) -> None:
        self.handlers.update(handlers)

    def fail(self, service: str, operation: str, code: str = "", **how: Any) -> Fault:
        fault = Fault(service, operation, code, **how)
        self.faults.append(fault)
        return fault

    def deny(self, service: str, operation: str) -> Fault:
        message = (
            f"User: arn:aws:iam::{ACCOUNT}:user/on-call is not authorized to perform: {service}:{operation}"
        )
        code = "UnauthorizedOperation" if service == "ec2" else "AccessDeniedException"
        return self.fail(service, operation, code, message=message, http=403 if service == "ec2" else 400)

    def throttle(self, service: str, operation: str, times: int | None = None) -> Fault:
        return self.fail(service, operation, "ThrottlingException", message="Rate exceeded", times=times)

    def asked(self, operation: str) -> list[Call]:
        return [one for one in self.calls if one.operation == operation]

    def operations(self) -> set[tuple[str, str]]:
        return {(one.service, one.operation) for one in self.calls}

    def _app(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        request.get_data(cache=True)
        key, region, service = protocol.scope(request)
        name = protocol.operation(request, service)
        call = Call(service, name, region, protocol.parameters(request, service, name), key)
        with self._lock:
            self.calls.append(call)
            fault = next((one for one in self.faults if one.hits(call)), None)
        if fault is not None and fault.seconds:
            time.sleep(fault.seconds)
        response: Any
        if key in self.expired:
            response = protocol.error(
                request,
                service,
                "ExpiredTokenException",
                "The security token included in the request is expired",
                403,
            )
        elif fault is not None and fault.code:
            response = protocol.error(request, service, fault.code, fault.message or fault.code, fault.http)
        elif service == "ec2" and "DryRun=true" in request.get_data(as_text=True):
            # moto does this for what changes something only.
            why = "Request would have succeeded, but DryRun flag is set."
            response = protocol.error(request, service, "DryRunOperation", why, 412)
        elif (service, name) in self.handlers:
            response = self._own(request, call)
        else:
            response = self._behind(environ, request)
            start_response = _typed(start_response, request)
        try:
            done: Iterable[bytes] = response(environ, start_response)
        except NotImplementedError as missing:
            self.missing.append(call)
            done = protocol.error(request, service, "InternalFailure", str(missing), 501)(
                environ, start_response
            )
        return done

    def _own(self, request: Request, call: Call) -> Response:
        try:
            return protocol.answer(
                call.service, call.operation, self.handlers[call.service, call.operation](call)
            )
        except AssertionError as wrong:
            self.wrong.append(str(wrong))
            raise
        except ApiError as error:
            return protocol.error(request, call.service, error.code, error.message, error.http)

    def _behind(self, environ: dict[str, Any], request: Request) -> Any:
        environ["wsgi.input"] = io.BytesIO(request.get_data())
        with self._lock:
            if self._moto is None:
                self._moto = DomainDispatcherApplication(create_backend_app)
        return self._moto
