"""A loaded model: the graph people see, and where there is one, the side that can be executed."""

from dataclasses import dataclass
from typing import Protocol

from placement.core.graph import Graph
from placement.core.problem import Problem


class Executable(Protocol):
    """What a backend can run; each format has its own kind (`format` says which).

    `content_hash` covers the weights too: it keys caches of compiled sessions.
    """

    @property
    def format(self) -> str: ...
    @property
    def content_hash(self) -> str: ...


@dataclass(frozen=True, repr=False)
class Model:
    """What a loader returns. `problem` is set by formats that carry their own machine and costs."""

    graph: Graph
    executable: Executable | None = None
    problem: Problem | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: a notebook shows this, and all weights would fill pages."""
        return f"Model({self.graph.name!r}, num_ops={len(self.graph.ops)})"
