"""What stands for transformers' cache in a trace: layers whose tensors are buffers of a module.

Prefill writes the tokens of a prompt to the front and attends to these alone; decode writes one
token at a position and attends to all. A trace is made of values and their types, so the classes
build on those of transformers, which is imported when the first cache is asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from placement.formats.huggingface.caches import TOKENS, Buffers, LayerCache
from placement.formats.huggingface.configuration import library


def kept(
    buffers: Mapping[int, Buffers], layers: Sequence[LayerCache], position: Tensor | None
) -> Any:
    """A cache for transformers whose tensors are the buffers of a module's layers, by number.

    Without a `position`, of shape (1,), it takes in a prompt, with one a token that stands there.
    """
    kinds = _kinds()
    made = [
        kinds.made(layer, buffers.get(i), position is None) if layer.entries else kinds.nothing()
        for i, layer in enumerate(layers)
    ]
    return kinds.cache(made, position)


@dataclass(frozen=True)
class _Kinds:
    """Classes of a cache and of its layers that build on those of transformers."""

    cache: Any
    attention: Any
    recurrent: Any
    hybrid: Any
    nothing: Any

    def made(self, layer: LayerCache, buffers: Any, is_prompt: bool) -> Any:
        has_tokens = any(entry.tokens for entry in layer.entries)
        if not layer.num_states:
            return self.attention(layer, buffers, is_prompt)
        return (self.hybrid if has_tokens else self.recurrent)(layer, buffers, is_prompt)


@cache
def _kinds() -> _Kinds:
    theirs: Any = library().cache_utils

    class Attention(_Tokens, theirs.CacheLayerMixin):  # type: ignore[misc]
        def __init__(self, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
            super().__init__()
            self.buffers, self.is_prompt, self.is_sliding = buffers, is_prompt, layer.is_sliding
            self.is_initialized = True

    class Recurrent(theirs.LinearAttentionLayer):  # type: ignore[misc]
        def __init__(self, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
            super().__init__(number_of_states=layer.num_states)
            _hold_states(self, layer, buffers, is_prompt)

    class Hybrid(_Tokens, theirs.LinearAttentionAndFullAttentionLayer):  # type: ignore[misc]
        def __init__(self, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
            theirs.LinearAttentionAndFullAttentionLayer.__init__(self, layer.num_states)
            _hold_states(self, layer, buffers, is_prompt)
            self.is_sliding, self.is_initialized = layer.is_sliding, True

    class Kept(theirs.Cache):  # type: ignore[misc]
        """Stands for the cache of transformers; nested values have its position as their tensor."""

        def __init__(self, layers: Sequence[Any], position: Tensor | None) -> None:
            super().__init__(layers=list(layers))
            self.position = position

        def update(self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any) -> Any:
            self.layers[layer_idx].position = self.position
            return self.layers[layer_idx].update(key, value)

        def get_seq_length(self, layer_idx: int = 0) -> Any:
            return 0 if self.position is None else self.position

    def nested(leaves: Any, sealed: Any) -> Any:
        made = Kept(sealed.layers, next(iter(leaves), None))
        made.__dict__["sealed"] = sealed
        return made

    pytree.register_pytree_node(
        Kept, _flattened, nested, serialized_type_name="placement.huggingface.Kept"
    )
    return _Kinds(Kept, Attention, Recurrent, Hybrid, theirs.DummyLayer)


class _Tokens:
    """Keys and values of tokens in buffers; a mixin of layers."""

    is_sliding = False
    is_compileable = True
    buffers: Any
    is_prompt: bool
    position: Any = None

    def update(self, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        both = ((self.buffers.keys, key), (self.buffers.values, value))
        room, given = int(self.buffers.keys.shape[TOKENS]), int(key.shape[TOKENS])
        at = self.position
        if self.is_prompt:
            at = torch.arange(min(room, given), device=key.device)
        elif self.is_sliding:
            at = at % room
        for held, made in both:
            last = made if given <= room else made.narrow(TOKENS, given - room, room)
            held.index_copy_(held.dim() + TOKENS, at, last)
        return (key, value) if self.is_prompt else (self.buffers.keys, self.buffers.values)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return (query_length if self.is_prompt else int(self.buffers.keys.shape[TOKENS])), 0

    def get_seq_length(self) -> Any:
        return 0 if self.is_prompt else self.position

    def get_max_length(self) -> int:
        return int(self.buffers.keys.shape[TOKENS])

    def lazy_initialization(self, *_: Any, **__: Any) -> None:
        pass


def _hold_states(self: Any, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
    """Give a layer the states in its buffers, as if it had run before unless it is a prompt's."""
    self.buffers, self.is_prompt = buffers, is_prompt
    number = layer.num_states
    names = {entry.name for entry in layer.entries}
    self.conv_states = _States(buffers, "conv", number)
    self.recurrent_states = _States(buffers, "recurrent", number)
    self.has_previous_state = _Fixed(dict.fromkeys(range(number), not is_prompt))
    sizes = {i: int(self.conv_states[i].shape[-1]) for i in range(number) if f"conv_{i}" in names}
    self.conv_kernel_size = _Fixed(sizes)
    self.is_conv_states_initialized = _Fixed(dict.fromkeys(range(number), True))
    self.is_recurrent_states_initialized = _Fixed(dict.fromkeys(range(number), True))


class _Fixed(dict[int, Any]):
    """A table that stays as it is, whatever a trace writes into it."""

    def __setitem__(self, key: int, value: Any) -> None:
        pass


class _States(Mapping[int, Any]):
    """States by number, read from buffers at the time: a trace puts others in their place."""

    def __init__(self, buffers: Buffers, word: str, number: int) -> None:
        self._buffers, self._word, self._number = buffers, word, number

    def __getitem__(self, key: int) -> Any:
        return getattr(self._buffers, f"{self._word}_{key}", None)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._number))

    def __len__(self) -> int:
        return self._number


class _Sealed:
    """Layers of a cache as a constant of a nested value."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = layers

    def __repr__(self) -> str:
        return "cache"


def _flattened(value: Any) -> tuple[list[Any], Any]:
    sealed = value.__dict__.setdefault("sealed", _Sealed(value.layers))
    return ([] if value.position is None else [value.position]), sealed
