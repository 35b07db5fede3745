"""What loaders and sources of bundled models have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from placement.core.model import Model, Sample, SymbolicDim


class Loader(ABC):
    """Reads one file format.

    A format with symbolic dimensions says which by `symbolic_dims`; `words` are the names of those
    whose values are words. One that only explains why it
    refuses some of its `suffixes` lists those as `refused`. `folder_file` is the file that stands
    for a whole folder, where a format has such.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    refused: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[tuple[str, ...]] = ()
    folder_file: ClassVar[str] = ""

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

    words: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def samples(self) -> tuple[Sample, ...]: ...

    @abstractmethod
    def load_sample(self, name: str, dims: Mapping[str, int]) -> Model: ...

    def symbolic_dims(self, name: str) -> tuple[SymbolicDim, ...]:
        return ()
