"""ONNX models: the graph a person sees and the side a runtime executes, from one file.

The samples are nine well-known networks, from the light models inside the installed onnx package.
"""

from collections.abc import Mapping
from pathlib import Path

from placement.core.model import Model, Sample, SymbolicDim
from placement.loaders.base import Loader, SampleSource

# Sample name, file, number of ops; written down so that the list needs no model to be read.
_LIGHT = (
    ("onnx-alexnet", "light_bvlc_alexnet.onnx", 24),
    ("onnx-densenet121", "light_densenet121.onnx", 668),
    ("onnx-inception-v1", "light_inception_v1.onnx", 143),
    ("onnx-inception-v2", "light_inception_v2.onnx", 371),
    ("onnx-resnet50", "light_resnet50.onnx", 176),
    ("onnx-shufflenet", "light_shufflenet.onnx", 203),
    ("onnx-squeezenet", "light_squeezenet.onnx", 66),
    ("onnx-vgg19", "light_vgg19.onnx", 46),
    ("onnx-zfnet512", "light_zfnet512.onnx", 22),
)


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


class LightModels(SampleSource):
    """Opens the light models; `load_sample` takes a seed for their weights."""

    def samples(self) -> tuple[Sample, ...]:
        return tuple(
            Sample(name, num_ops, f"onnx package, {file}, random weights")
            for name, file, num_ops in _LIGHT
        )

    def load_sample(self, name: str, dims: Mapping[str, int], seed: int = 0) -> Model:
        from placement.formats.onnx.samples import open_sample

        return open_sample(name, {row[0]: row[1] for row in _LIGHT}[name], dims, seed)


LOADER, SAMPLES = OnnxLoader(), LightModels()
