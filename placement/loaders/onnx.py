"""ONNX models: the graph a person sees and the side a runtime executes, from one file."""

from collections.abc import Mapping
from pathlib import Path

from placement.core.model import Model, SymbolicDim
from placement.loaders.base import Loader


class OnnxLoader(Loader):
    """Reads `.onnx` files; weights stay in the file until something is executed."""

    name = "onnx"
    summary = "an ONNX model"
    suffixes = (".onnx",)

    def load(self, path: Path, dims: Mapping[str, int]) -> Model:
        from placement.formats.onnx.executable import open_onnx

        return open_onnx(path, dims)

    def symbolic_dims(self, path: Path) -> tuple[SymbolicDim, ...]:
        from placement.formats.onnx.dims import symbolic_dims

        return symbolic_dims(path)


LOADER = OnnxLoader()
