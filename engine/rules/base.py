"""What a rule is: a pure function from what a node showed to verdicts. It reads nothing and knows no limit by heart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from straggler.engine.collectors.base import AnyCollector, Collector
from straggler.engine.knowledge import Instance, Knowledge
from straggler.engine.model import F, Node, Observation, Unread, Vantage, Verdict, Window


@dataclass(frozen=True)
class NodeView:
    """All that is known of one node when a rule looks at it."""

    node: Node
    facts: Mapping[str, object]
    seen: Mapping[str, Observation]
    known: Knowledge
    window: Window
    peers_types: frozenset[str] = frozenset()

    def get(self, collector: Collector[F]) -> F | Unread:
        """What the collector read, or why it could not; never a default."""
        return self.facts[collector.id]  # type: ignore[return-value]

    def read(self, collector: Collector[F]) -> F:
        """For collectors in the rule's `reads`: the engine has already answered UNKNOWN where they are unread."""
        facts = self.get(collector)
        if isinstance(facts, Unread):
            raise TypeError(f"{collector.id} is unread here; name it in `reads`, or use get()")
        return facts

    @property
    def vantage(self) -> Vantage:
        return next((one.vantage for one in self.seen.values()), Vantage.HOST_USER)

    @property
    def instance(self) -> Instance | None:
        """What the node's type should have; None when the type is not known or not in the table."""
        return self.known.instance(self.instance_type)

    @property
    def instance_type(self) -> str | None:
        from straggler.engine.collectors import identity

        facts = self.facts.get(identity.COLLECTOR.id)
        read = facts.instance_type if isinstance(facts, identity.Identity) else None
        return self.node.instance_type or read


@dataclass(frozen=True)
class Rule:
    """One question to a node.

    `reads`: collectors it cannot do without; where one is unread the engine answers UNKNOWN with that reason, so silence
    never passes. `uses`: collectors it can do without. `finds`: every finding id it may give (each is in findings.toml).
    `unknown`: the finding id that carries its UNKNOWN. `spec`: the rows of the specification it implements.
    """

    id: str
    reads: tuple[AnyCollector, ...]
    judge: Callable[[NodeView], Iterable[Verdict]]
    finds: tuple[str, ...]
    unknown: str
    spec: tuple[str, ...] = ()
    uses: tuple[AnyCollector, ...] = ()

    @property
    def collectors(self) -> tuple[AnyCollector, ...]:
        return self.reads + self.uses
