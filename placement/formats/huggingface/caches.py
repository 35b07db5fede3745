"""The cache of a language model as state of its own layers: keys and values, or other states.

What a layer keeps is asked of transformers: its own cache takes in two tokens, and the shapes of
what it then holds say what a token takes, and what is kept once. Each layer gets buffers of these
shapes inside of its attention, so that a trace of the layer has them as state, under its name. A
`Kept` is what stands for transformers' cache in such a trace: prefill writes the tokens of a prompt
to the front and attends to these alone; decode writes one token at a position and attends to all.
Sliding windows are rings of as many tokens as the window has, where nothing is computed; where it
is, they have room for all tokens, and the masks cut the window out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from placement.formats.huggingface.configuration import library
from placement.formats.torch.caches import untouched

# Along this axis of keys and values tokens are next to each other.
TOKENS = -2
_PROBED = 2
# Tokens that a page of a paged cache holds, as vLLM has them by default.
PAGE = 16
LAYOUTS = ("contiguous", "paged")
# What transformers calls a network's cache: from 5.24 on, before that, and of state space models.
_ARGUMENTS = ("cache", "past_key_values", "cache_params")


@dataclass(frozen=True)
class Entry:
    """A tensor that a layer keeps, with room for so many `tokens`, or 0 where it is kept once."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    tokens: int = 0

    @property
    def num_bytes(self) -> int:
        return int(torch.Size(self.shape).numel()) * self.dtype.itemsize

    def stored_bytes(self, layout: str) -> int:
        """Bytes in memory: of a paged cache the last page is there as a whole."""
        if layout != "paged" or not self.tokens:
            return self.num_bytes
        return self.num_bytes // self.tokens * (-(-self.tokens // PAGE) * PAGE)


@dataclass(frozen=True)
class LayerCache:
    """What the layer of a number keeps, empty where it reads another layer's or keeps nothing."""

    entries: tuple[Entry, ...]
    is_sliding: bool
    num_states: int


class Buffers(nn.Module):
    """The tensors that a layer keeps, as buffers that are no part of its weights."""

    def __init__(self, entries: Sequence[Entry], device: str) -> None:
        super().__init__()
        for entry in entries:
            shaped = torch.empty(entry.shape, dtype=entry.dtype, device=device)
            self.register_buffer(entry.name, untouched(shaped), persistent=False)


def kept_by(module: nn.Module, batch: int, context: int, *, rings: bool) -> tuple[LayerCache, ...]:
    """What each layer of a language model keeps of `batch` sequences of `context` tokens.

    A ValueError where transformers' cache of it is of a kind that is not known here.
    """
    transformers = library()
    held, config = transformers.DynamicCache(config=module.config), module.config
    tokens = torch.zeros(batch, _PROBED, dtype=torch.long, device=_device(module))
    try:
        with torch.no_grad():
            module(input_ids=tokens, use_cache=True, **{cache_argument(module): held})
    except Exception as error:  # a network may fail at it in any way
        text = " ".join(str(error).split())[:160]
        raise _unknown(module, text or type(error).__name__) from None
    found = tuple(_layer(module, layer, context, rings=rings) for layer in held.layers)
    if not any(layer.entries for layer in found):
        raise _unknown(module, f"a {type(config).__name__} keeps nothing")
    return found


def cache_argument(module: nn.Module) -> str:
    """What the forward method of a network calls its cache; a ValueError where it takes none."""
    import inspect

    asked = inspect.signature(type(module).forward).parameters
    name = next((name for name in _ARGUMENTS if name in asked), "")
    if not name or getattr(module.config, "is_encoder_decoder", False) or "input_ids" not in asked:
        raise ValueError(
            f"{type(module).__name__} does not generate tokens one by one from a cache of its own;"
            " use task inference."
        )
    return name


def _unknown(module: nn.Module, why: str) -> ValueError:
    return ValueError(
        f"What {type(module).__name__} keeps of earlier tokens is not known here ({why}); use task"
        " inference."
    )


def _device(module: nn.Module) -> torch.device:
    return next(iter(module.parameters())).device


@cache
def _known_layers() -> frozenset[type]:
    theirs: Any = library().cache_utils
    return frozenset(
        {
            theirs.DynamicLayer,
            theirs.DynamicSlidingWindowLayer,
            theirs.DummyLayer,
            theirs.LinearAttentionLayer,
            theirs.LinearAttentionAndFullAttentionLayer,
            theirs.LinearAttentionAndSlidingWindowAttentionLayer,
        }
    )


def _layer(module: nn.Module, layer: Any, context: int, *, rings: bool) -> LayerCache:
    if type(layer) not in _known_layers():
        raise _unknown(module, f"its layers have a {type(layer).__name__}")
    entries: list[Entry] = []
    window = getattr(layer, "sliding_window", None)
    room = min(context, int(window)) if rings and window else context
    for name in ("keys", "values"):
        value = getattr(layer, name, None)
        if isinstance(value, Tensor):
            shape = list(value.shape)
            shape[TOKENS] = room
            entries.append(Entry(name, tuple(shape), value.dtype, room))
    for word in ("conv", "recurrent"):
        for i, value in sorted(getattr(layer, f"{word}_states", {}).items()):
            if isinstance(value, Tensor):
                entries.append(Entry(f"{word}_{i}", tuple(value.shape), value.dtype))
    return LayerCache(tuple(entries), bool(window), getattr(layer, "number_of_states", 0))


def placed_in(module: nn.Module, layers: Sequence[LayerCache]) -> dict[str, Entry]:
    """Put buffers for each layer into its attention; the entries by name of the buffer.

    The attention is the innermost module that knows the layer's number.
    """
    owners: dict[int, tuple[str, nn.Module]] = {}
    for path, inner in module.named_modules():
        place = vars(inner).get("layer_idx")
        if isinstance(place, int):
            known = owners.get(place)
            if known is None or path.startswith(f"{known[0]}."):
                owners[place] = (path, inner)
    found: dict[str, Entry] = {}
    for i, layer in enumerate(layers):
        if not layer.entries:
            continue
        if i not in owners or hasattr(owners[i][1], "cache"):
            raise _unknown(module, f"no module is layer {i}")
        path, owner = owners[i]
        owner.add_module("cache", Buffers(layer.entries, str(_device(module))))
        found |= {f"{path}.cache.{entry.name}": entry for entry in layer.entries}
    return found


def removed_from(module: nn.Module) -> None:
    """Take the buffers out again."""
    for inner in list(module.modules()):
        if isinstance(inner._modules.get("cache"), Buffers):
            del inner._modules["cache"]


def buffers_of(module: nn.Module) -> Mapping[int, Buffers]:
    """The buffers that were placed in a module, by number of the layer."""
    found: dict[int, Buffers] = {}
    for inner in module.modules():
        held = inner._modules.get("cache")
        if isinstance(held, Buffers):
            found[vars(inner)["layer_idx"]] = held
    return found
