"""What the tests' AWS needs of its protocols: which operation a request asks for, and answers as botocore's own model has them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import botocore.session
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.validate import ParamValidator
from werkzeug.wrappers import Request, Response

SIGNED_AS = {"monitoring": "cloudwatch"}
"""Signing name -> service, where botocore's name is another."""

SERVICES = (
    "sagemaker",
    "ec2",
    "fsx",
    "cloudwatch",
    "logs",
    "ssm",
    "kms",
    "eks",
    "sts",
    "sso",
    "sso-oidc",
    "signin",
)
UNSIGNED = {"/federation/credentials": "sso", "/token": "sso-oidc", "/v1/token": "signin"}


@cache
def model(service: str) -> ServiceModel:
    return botocore.session.Session().get_service_model(service)


@cache
def operation_model(service: str, operation: str) -> OperationModel:
    return model(service).operation_model(operation)


def scope(request: Request) -> tuple[str, str, str]:
    """Access key, region and service of the signature; the service alone where the request is not signed."""
    found = re.search(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/", request.headers.get("Authorization", ""))
    if found:
        return found[1], found[2], SIGNED_AS.get(found[3], found[3])
    return "", "", UNSIGNED.get(request.path, "sts")


def operation(request: Request, service: str) -> str:
    """The operation's name, by the service's own protocol."""
    if target := request.headers.get("X-Amz-Target"):
        return target.rpartition(".")[2]
    if "/operation/" in request.path:
        return request.path.rpartition("/")[2]
    if request.mimetype == "application/x-www-form-urlencoded":
        return parse_qs(request.get_data(as_text=True))["Action"][0]
    for name in model(service).operation_names:
        http = operation_model(service, name).http
        pattern = re.sub(r"\{[^}]+\}", "[^/]+", http["requestUri"].partition("?")[0])
        if http["method"] == request.method and re.fullmatch(pattern, request.path):
            return str(name)
    raise LookupError(f"{request.method} {request.path} is no operation of {service}")


def parameters(request: Request, service: str, name: str) -> dict[str, Any]:
    """What a JSON body or a path says; nothing for the other protocols."""
    found: dict[str, Any] = {}
    if "json" in request.mimetype and request.get_data():
        found |= json.loads(request.get_data())
    if "rest" in model(service).metadata["protocol"]:
        template = operation_model(service, name).http["requestUri"].partition("?")[0]
        pattern = re.sub(r"\{([A-Za-z]+)\}", r"(?P<\1>[^/]+)", template)
        if match := re.fullmatch(pattern, request.path):
            found |= match.groupdict()
        found |= request.args.to_dict()
    return found


def answer(service: str, name: str, content: Mapping[str, Any]) -> Response:
    """An answer of a JSON service. AssertionError for what its model does not have: a name, a type, an enum's word."""
    shape = operation_model(service, name).output_shape
    report = ParamValidator().validate(dict(content), shape)
    problems = [*report.generate_report().splitlines(), *strange_words(content, shape)]
    assert not problems, f"{service}:{name} does not answer so: {problems}"
    return Response(json.dumps(content, default=_seconds), mimetype="application/json")


def strange_words(value: Any, shape: Shape, at: str = "") -> list[str]:
    """Where a value is none of the words its model lists."""
    if shape.type_name == "structure":
        return [
            found
            for key in value
            if key in shape.members
            for found in strange_words(value[key], shape.members[key], f"{at}.{key}")
        ]
    if shape.type_name == "list":
        return [found for one in value for found in strange_words(one, shape.member, f"{at}[]")]
    if shape.type_name == "map":
        return [found for one in value.values() for found in strange_words(one, shape.value, f"{at}{{}}")]
    words = getattr(shape, "enum", None)
    return [f"{at} may not be {value!r}"] if words and value not in words else []


def _seconds(value: object) -> float:
    assert isinstance(value, datetime), value
    return value.timestamp()


def error(request: Request, service: str, code: str, message: str, http: int) -> Response:
    """An error as the protocol of the request spells it: a service may speak several."""
    form = request.mimetype == "application/x-www-form-urlencoded"
    if form and service == "ec2":
        return Response(
            f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>",
            http,
            mimetype="text/xml",
        )
    if form:
        return Response(
            f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>",
            http,
            mimetype="text/xml",
        )
    if "/operation/" in request.path:
        body = b"\xa2" + b"".join(_cbor(one) for one in ("__type", code, "message", message))
        return Response(body, http, mimetype="application/cbor", headers={"smithy-protocol": "rpc-v2-cbor"})
    return Response(
        json.dumps({"__type": code, "message": message}),
        http,
        mimetype="application/x-amz-json-1.1",
        headers={"x-amzn-ErrorType": code},
    )


def _cbor(text: str) -> bytes:
    raw = text.encode()
    head = bytes([0x60 + len(raw)]) if len(raw) < 24 else b"\x79" + len(raw).to_bytes(2, "big")
    return head + raw
