"""Inputs of a network by name: what its forward method asks for, in the sizes of its configuration.

Numbers of words and positions are in range; everything else is drawn at random where it is drawn
at all, for on the meta device there are shapes only.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from placement.formats.huggingface.configuration import depth_of

Sizes = Mapping[str, int]
SAMPLES = 16_000


def inputs_of(module: nn.Module, sizes: Sizes, dtype: torch.dtype) -> dict[str, Any]:
    """Example inputs by name; a ValueError where nothing here knows what the network asks for."""
    asked = inspect.signature(module.forward).parameters
    config: Any = module.config
    main = str(getattr(module, "main_input_name", "input_ids"))
    names = [name for name in _MADE if name in asked and _is_needed(name, main, module, asked)]
    if not names or main not in names:
        raise ValueError(
            f"{type(module).__name__} asks for {main}, which is not known here; trace it in Python"
            " with from_torch and inputs of your own."
        )
    made = {name: _MADE[name](config, sizes, module) for name in names}
    return {k: v.to(dtype) if v.is_floating_point() else v for k, v in made.items()}


def _is_needed(name: str, main: str, module: nn.Module, asked: Mapping[str, Any]) -> bool:
    """Whether an input is asked for: the main one, or one without which there is an error."""
    if name == main:
        return True
    config: Any = module.config
    if name in ("decoder_input_ids", "decoder_input_values"):
        return bool(getattr(config, "is_encoder_decoder", False))
    if name in ("input_ids", "pixel_values", "input_features", "input_values"):
        # Towers for words and for pictures side by side.
        default = asked[name].default
        is_pair = "text_config" in config.sub_configs and "logit_scale" in dict(
            module.named_parameters()
        )
        is_both = name == "pixel_values" and hasattr(config, "num_channels")
        return default is inspect.Parameter.empty or is_pair or is_both
    return asked[name].default is inspect.Parameter.empty


def _first(config: Any, names: tuple[str, ...], default: Any) -> Any:
    """The first of these sizes that a configuration has, or one of its parts."""
    parts = [config, *(getattr(config, key, None) for key in config.sub_configs)]
    found = (getattr(part, name, None) for name in names for part in parts if part is not None)
    return next((value for value in found if value is not None), default)


def _words(config: Any, sizes: Sizes, module: nn.Module) -> Tensor:
    rows = int(_first(config.get_text_config(), ("vocab_size",), 2))
    return torch.randint(0, max(2, rows), (sizes["batch"], sizes["length"]))


def _pixels(config: Any, sizes: Sizes, module: nn.Module) -> Tensor:
    size = _first(config, ("image_size", "input_size", "img_size"), 224)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = int(_first(config, ("num_channels", "in_channels", "in_chans"), 3))
    shape = [sizes["batch"], channels, int(height), int(width)]
    frames = _first(config, ("num_frames",), None)
    if frames is not None:
        shape.insert(1, int(frames))
    return torch.rand(shape)


def _features(config: Any, sizes: Sizes, module: nn.Module) -> Tensor:
    bins = int(_first(config, ("num_mel_bins", "feature_size", "input_feat_per_channel"), 80))
    positions = _first(config, ("max_source_positions",), None)
    if positions is not None and _has_two_strides(module):
        # Such encoders take exactly one length, of twice their positions.
        return torch.rand(sizes["batch"], bins, 2 * int(positions))
    return torch.rand(sizes["batch"], sizes["length"], bins)


def _has_two_strides(module: nn.Module) -> bool:
    return any(name.endswith("encoder.conv2") for name, _ in module.named_modules())


def _values(config: Any, sizes: Sizes, module: nn.Module) -> Tensor:
    length = _first(config, ("max_length",), None)
    bins = _first(config, ("num_mel_bins",), None)
    if length is not None and bins is not None:
        return torch.rand(sizes["batch"], int(length), int(bins))
    return torch.rand(sizes["batch"], SAMPLES)


def _boxes(config: Any, sizes: Sizes, module: nn.Module) -> Tensor:
    return torch.zeros(sizes["batch"], sizes["length"], 4, dtype=torch.long)


_MADE: dict[str, Callable[[Any, Sizes, nn.Module], Tensor]] = {
    "input_ids": _words,
    "pixel_values": _pixels,
    "input_features": _features,
    "input_values": _values,
    "decoder_input_ids": _words,
    "bbox": _boxes,
}


def has_words(module: nn.Module) -> bool:
    """Whether a network reads words, so that a length may be set."""
    return (
        "input_ids" in inspect.signature(module.forward).parameters and depth_of(module.config) > 0
    )
