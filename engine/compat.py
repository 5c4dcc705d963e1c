"""What Python 3.10 lacks, in one place."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from asyncio import TaskGroup, timeout

    import tomllib
else:
    import tomli as tomllib
    from taskgroup import TaskGroup, timeout

__all__ = ["TaskGroup", "timeout", "tomllib"]
