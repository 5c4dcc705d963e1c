"""What every test starts from: signals that do what they do for a user, whoever started the test run.

A run in the background, or under nohup, hands down ignored signals; a shell that is started with an ignored signal can never trap it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a skipped test is a failed one: there every real part is installed, and a missing part must not hide."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr}"
