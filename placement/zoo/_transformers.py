"""Networks of the transformers library by their configurations: random weights, no downloads."""

import os
import warnings
from typing import Any

from torch import nn

HEAD_WIDTH = 64


def built(network: str, configuration: str, **settings: Any) -> nn.Module:
    """A network of that class with attention as plain aten ops, and without dropout.

    The library is told to stay off the network, which nothing here asks for.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    with warnings.catch_warnings():
        # Of the library about itself.
        warnings.simplefilter("ignore")
        try:
            import transformers
        except ImportError:
            raise ValueError(f"{network} needs: pip install transformers") from None
        config = getattr(transformers, configuration)(attn_implementation="eager", **settings)
        module: nn.Module = getattr(transformers, network)(config)
    return module


def heads_of(width: int) -> int:
    """Attention heads of 64 numbers each, as published."""
    if width % HEAD_WIDTH:
        raise ValueError(f"Size 'width' is {width}; use a multiple of {HEAD_WIDTH}.")
    return width // HEAD_WIDTH


def require_length(length: int, longest: int) -> None:
    """A ValueError where the table of positions is too short."""
    if length > longest:
        raise ValueError(f"Size 'length' is {length}; use 1 to {longest}.")
