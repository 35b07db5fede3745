"""A loaded model: the graph people see, and where there is one, the side that can be executed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from placement.core.formatting import Drawn
from placement.core.graph import Graph
from placement.core.problem import Problem


@dataclass(frozen=True)
class Sample:
    """A bundled model: the name to open it by, its number of source ops, and where it is from."""

    name: str
    num_ops: int
    source: str
    has_weights: bool = True


@dataclass(frozen=True)
class SymbolicDim:
    """A dimension without a fixed size: its default `size`, and the first place it is seen at.

    Some formats have settings that are words: one of `words` then.
    """

    name: str
    size: int | str
    where: str
    words: tuple[str, ...] = ()


# What whoever opens a model sets, by name: sizes, and settings that are words.
Dims = Mapping[str, int | str]


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
    dims: tuple[tuple[str, int | str], ...]
    format: str
    content_hash: str
    symbolic_dims: tuple[SymbolicDim, ...] = ()
    has_weights: bool = True


class ContentElsewhereError(Exception):
    """The content of a model was asked for where there is a `RemoteExecutable` only."""


@dataclass(frozen=True, repr=False)
class Model(Drawn):
    """What a loader returns. `problem` is set by formats that carry their own machine and costs."""

    graph: Graph
    executable: Executable | None = None
    problem: Problem | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: a notebook shows this, and all weights would fill pages."""
        return f"Model({self.graph.name!r}, num_ops={len(self.graph.ops)})"

    @property
    def has_weights(self) -> bool:
        """Whether there are numbers to compute with; a configuration has shapes alone."""
        return getattr(self.executable, "has_weights", True)

    @property
    def not_executable(self) -> str:
        """Why nothing of this model can be executed, in a sentence; empty where it can."""
        if self.executable is None:
            return (
                f"{self.graph.name!r} has no executable side (it is a graph with given costs);"
                " simulate it, or open a model file."
            )
        if not self.has_weights:
            return (
                f"{self.graph.name!r} has no weights (it is a configuration), so it is predicted"
                " only; simulate it, or open a model with its weights."
            )
        return ""

    def content(self) -> Any:
        """The executable side; ContentElsewhereError where what it holds is not here."""
        if isinstance(self.executable, RemoteExecutable):
            raise ContentElsewhereError(str(self.executable.path))
        return self.executable
