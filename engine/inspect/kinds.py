"""Every kind of capture there is, in the order they are asked: the first that knows a file gives its main part."""

from __future__ import annotations

from straggler.engine.inspect import bandwidth_runs, fi_info, nccl_tests
from straggler.engine.inspect.model import Kind

KINDS: tuple[Kind, ...] = (nccl_tests.KIND, *bandwidth_runs.KINDS, fi_info.KIND)

FINDS: tuple[str, ...] = tuple(dict.fromkeys(name for kind in KINDS for name in kind.finds))
"""Every finding id an inspected file may give."""
