"""From a finding to what its remedy pane shows: the section of the references, filled in with this finding's nodes and values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from straggler.engine.knowledge import Knowledge
from straggler.engine.model import Finding, Node
from straggler.tui.panes.remedy import Remedy

if TYPE_CHECKING:
    from straggler.engine.sections import Sections


class Remedies:
    """Loads the sections with the first finding that is opened, not before."""

    def __init__(self, known: Knowledge, config: Path | None) -> None:
        self._known, self._config = known, config
        self._sections: Sections | None = None

    def of(self, finding: Finding, nodes: Sequence[Node]) -> Remedy:
        """May be called in any thread. A section that cannot be shown is said, and the finding stands without it."""
        from straggler.engine.errors import KnowledgeError
        from straggler.engine.sections import Sections

        try:
            if self._sections is None:
                self._sections = Sections.load(self._config)
            made = self._sections.render(finding, nodes, self._known)
        except KnowledgeError as error:
            return Remedy(finding, trouble=str(error))
        except KeyError:
            return Remedy(finding, trouble=f"there is no section {finding.reference}")
        left_out = tuple((one.what, one.why) for one in made.left_out)
        return Remedy(finding, made.title, made.markdown, made.commands, made.theirs, left_out)
