"""Well-known networks built in code with seeded weights: for inference, and as training steps.

`resnet50` is the network, `resnet50:training` a step of training it. Sizes such as the batch are
set like symbolic dimensions (`--dim batch=4`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.core.model import Model, Sample, SymbolicDim

# Name, ops for inference and for training with the usual sizes (written down so that the list
# needs no model to be built), and where it is from.
_NETWORKS = (
    ("alexnet", 20, 85, "Krizhevsky 2014"),
    ("bert_base", 389, 2055, "Devlin et al. 2019"),
    ("gpt2", 533, 1686, "Radford et al. 2019"),
    ("inception_v3", 313, 1088, "Szegedy et al. 2016"),
    ("nmt", 317, 6087, "after Wu et al. 2016"),
    ("resnet50", 175, 578, "He et al. 2016"),
    ("rnnlm", 76, 3487, "Zaremba et al. 2014"),
    ("vgg16", 38, 137, "Simonyan and Zisserman 2015"),
)
TRAINING = ":training"


@dataclass(frozen=True)
class Zoo:
    """Opens the networks of `placement.zoo`; `load_sample` takes a seed for their weights."""

    def samples(self) -> tuple[Sample, ...]:
        found = []
        for name, inference, training, source in _NETWORKS:
            about = f"{source}, built in code, random weights"
            found.append(Sample(name, inference, about))
            found.append(Sample(f"{name}{TRAINING}", training, f"{about}, one training step"))
        return tuple(found)

    def load_sample(self, name: str, dims: Mapping[str, int], seed: int = 0) -> Model:
        from placement.formats.torch.zoo import open_sample

        return open_sample(name, dims, seed, self.symbolic_dims(name))

    def symbolic_dims(self, name: str) -> tuple[SymbolicDim, ...]:
        from placement.formats.torch.zoo import sizes_of

        return tuple(
            SymbolicDim(key, size, f"a size of {name}") for key, size in sizes_of(name).items()
        )


SAMPLES = Zoo()
