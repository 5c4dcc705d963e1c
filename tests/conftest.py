"""What every test starts from: signals that do what they do for a user, whoever started the test run.

A run in the background, or under nohup, hands down ignored signals; a shell that is started with an ignored signal can never trap it.
"""

from __future__ import annotations

import signal

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)
