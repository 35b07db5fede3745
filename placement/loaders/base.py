"""What loaders and sources of bundled models have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from placement.core.model import Model, Sample, SymbolicDim


class Loader(ABC):
    """Reads one file format.

    A format with symbolic dimensions says which by `symbolic_dims`. One that only explains why it
    refuses some of its `suffixes` lists those as `refused`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    refused: ClassVar[tuple[str, ...]] = ()

    def accepts(self, path: Path) -> bool:
        """Whether a file whose suffix fits is one, for formats share suffixes; never raises."""
        return True

    @abstractmethod
    def load(self, path: Path, dims: Mapping[str, int]) -> Model:
        """The model in a file; a ValueError says in one sentence whatever is wrong."""

    def symbolic_dims(self, path: Path) -> tuple[SymbolicDim, ...]:
        return ()


class SampleSource(ABC):
    """Bundled models: `samples` is quick, `load_sample` takes one of the names it lists."""

    @abstractmethod
    def samples(self) -> tuple[Sample, ...]: ...

    @abstractmethod
    def load_sample(self, name: str, dims: Mapping[str, int]) -> Model: ...

    def symbolic_dims(self, name: str) -> tuple[SymbolicDim, ...]:
        return ()
