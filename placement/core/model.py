"""A loaded model: the graph people see, and where there is one, the side that can be executed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from placement.core.graph import Graph
from placement.core.problem import Problem


@dataclass(frozen=True)
class Sample:
    """A bundled model: the name to open it by, its number of source ops, and where it is from."""

    name: str
    num_ops: int
    source: str


@dataclass(frozen=True)
class SymbolicDim:
    """A dimension without a fixed size: its default `size`, and the first place it is seen at."""

    name: str
    size: int
    where: str


class Executable(Protocol):
    """What a backend can run; each format has its own kind (`format` says which).

    `content_hash` covers the weights too: it keys caches of compiled sessions.
    """

    @property
    def format(self) -> str: ...
    @property
    def content_hash(self) -> str: ...


@dataclass(frozen=True)
class RemoteExecutable:
    """The executable side of a model whose file only confined processes open.

    `format` and `content_hash` are those of the content; a file that has changed since is refused.
    """

    path: Path
    dims: tuple[tuple[str, int], ...]
    format: str
    content_hash: str
    symbolic_dims: tuple[SymbolicDim, ...] = ()


class ContentElsewhereError(Exception):
    """The content of a model was asked for where there is a `RemoteExecutable` only."""


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

    def content(self) -> Any:
        """The executable side; ContentElsewhereError where what it holds is not here."""
        if isinstance(self.executable, RemoteExecutable):
            raise ContentElsewhereError(str(self.executable.path))
        return self.executable
