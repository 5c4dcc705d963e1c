"""One AWS per test, on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aws.fake import FakeAws


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAws]:
    """A fresh server; this process, too, is pointed at it and knows no other credentials."""
    import os

    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    with FakeAws() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server
