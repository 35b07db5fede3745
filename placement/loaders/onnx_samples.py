"""Nine well-known networks, from the light models inside the installed onnx package."""

from collections.abc import Mapping

from placement.core.model import Model, Sample
from placement.loaders.base import SampleSource

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


SAMPLES = LightModels()
