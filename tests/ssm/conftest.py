"""The tests' AWS, for the tests that run the whole program."""

from __future__ import annotations

from tests.aws.conftest import aws

__all__ = ["aws"]
