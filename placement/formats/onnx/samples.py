"""The light models of the onnx package, opened without and executed with seeded weights."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from placement.core.fingerprint import fingerprint_of
from placement.core.model import Model
from placement.formats.onnx.graph import build_graph
from placement.formats.onnx.prepare import prepare
from placement.formats.onnx.read import read_onnx
from placement.formats.onnx.weights import fill_weights

# Part of every hash, so that caches notice when the weights are made in another way.
WEIGHTS_VERSION = 1


@dataclass(frozen=True)
class SampleExecutable:
    """A light model whose constant weights are replaced by seeded random ones.

    The weights are made each time `model_proto` is called, never before.
    """

    name: str
    file: str
    dims: tuple[tuple[str, int], ...] = ()
    seed: int = 0

    @property
    def format(self) -> str:
        return "onnx"

    @property
    def content_hash(self) -> str:
        return fingerprint_of(["sample", self.name, self.dims, self.seed, WEIGHTS_VERSION])

    def model_proto(self, most_bytes: int | None = None) -> onnx.ModelProto:
        """The whole model: nodes named like the graph's ops, random weights always inside."""
        path = light_folder() / self.file
        model, _ = prepare(_read(self.file), dict(self.dims), self.name, path)
        fill_weights(model, self.seed)
        return model


def open_sample(name: str, file: str, dims: Mapping[str, int], seed: int = 0) -> Model:
    """A light model under the sample's name."""
    model, notes = prepare(_read(file), dims, name, light_folder() / file)
    graph, more = build_graph(model, name)
    executable = SampleExecutable(name, file, tuple(sorted(dims.items())), seed)
    return Model(graph, executable, notes=(*notes, *more, "The weights are random (seeded)"))


def light_folder() -> Path:
    """Where the installed onnx package keeps its light models."""
    spec = importlib.util.find_spec("onnx")
    if spec is None or spec.origin is None:
        raise ValueError("The bundled samples need the onnx package; pip install onnx.")
    return Path(spec.origin).parent / "backend" / "test" / "data" / "light"


def _read(file: str) -> onnx.ModelProto:
    path = light_folder() / file
    if not path.exists():
        raise ValueError(
            f"The installed onnx package has no light model {file!r}; install onnx 1.23 or newer."
        )
    return read_onnx(path)
