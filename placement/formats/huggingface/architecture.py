"""From a configuration to the network, by transformers' own classes, with no weights in it."""

from typing import Any

import torch
from torch import nn

from placement.core.decoding import shortened
from placement.formats.huggingface.configuration import library, quiet

# Which of a type's classes it is where its configuration does not say: what people run.
_FIRST = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_MAPPING_NAMES",
)


def class_of(config: Any, named: Any) -> Any:
    """The class of a network: the first of `named` that its type has, else the usual one."""
    transformers = library()
    from transformers.models.auto import modeling_auto

    tables = [v for k, v in vars(modeling_auto).items() if k.endswith("_MAPPING_NAMES")]
    known = {word for table in tables for word in _words(table.get(config.model_type, ()))}
    wanted = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    usual = (
        word
        for table in _FIRST
        for word in _words(getattr(modeling_auto, table).get(config.model_type, ()))
    )
    name = next((name for name in wanted if name in known), None) or next(usual, None)
    found = getattr(transformers, name, None) if name else None
    if found is None:
        raise ValueError(
            f"transformers has no network for model type {config.model_type!r}; use another model."
        )
    return found


def _words(found: Any) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else tuple(found)


def network(config: Any, named: Any, dtype: torch.dtype, device: str = "meta") -> nn.Module:
    """The network of a configuration in evaluation mode, its tensors on a device."""
    kind = class_of(config, named)
    for part in (config, config.get_text_config()):
        if hasattr(part, "use_cache"):
            # What earlier words made is kept for generation, which no single pass does.
            part.use_cache = False
    with quiet(), torch.device(device):
        try:
            module: nn.Module = kind._from_config(config, dtype=dtype)
        except ImportError as error:
            text = " ".join(str(error).split())
            raise ValueError(f"{kind.__name__} needs a library: {shortened(text, 200)}") from None
        except Exception as error:  # a configuration may fail a class in any way
            text = " ".join(str(error).split())
            raise ValueError(
                f"{kind.__name__} cannot be built from this configuration"
                f" ({shortened(text, 200)}); correct it."
            ) from None
    return module.eval()
