"""The cache of a language model as state of its own layers: keys and values, or other states.

What a layer keeps is asked of transformers: its own cache takes in two tokens, and the shapes of
what it then holds say what a token takes, and what is kept once. Each layer gets buffers of these
shapes inside of its attention, so that a trace of the layer has them as state, under its name. A
`Kept` is what stands for transformers' cache in such a trace: prefill writes the tokens of a prompt
to the front and attends to these alone; decode writes one token at a position and attends to all.
Sliding windows are rings of as many tokens as the window has, where nothing is computed; where it
is, they have room for all tokens, and the masks cut the window out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from placement.formats.huggingface.configuration import library
from placement.formats.torch.caches import untouched

# Along this axis of keys and values tokens are next to each other.
_TOKENS = -2
_PROBED = 2
# Tokens that a page of a paged cache holds, as vLLM has them by default.
PAGE = 16
LAYOUTS = ("contiguous", "paged")


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
    named = (name for name in ("past_key_values", "cache_params") if name in asked)
    name = next(named, "")
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


def _layer(module: nn.Module, layer: Any, context: int, *, rings: bool) -> LayerCache:
    kinds = _layer_kinds()
    if type(layer) not in kinds.known:
        raise _unknown(module, f"its layers have a {type(layer).__name__}")
    entries: list[Entry] = []
    window = getattr(layer, "sliding_window", None)
    room = min(context, int(window)) if rings and window else context
    for name in ("keys", "values"):
        value = getattr(layer, name, None)
        if isinstance(value, Tensor):
            shape = list(value.shape)
            shape[_TOKENS] = room
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


def kept(
    buffers: Mapping[int, Buffers], layers: Sequence[LayerCache], position: Tensor | None
) -> Any:
    """A cache for transformers whose tensors are the buffers of a module's layers, by number.

    Without a `position`, of shape (1,), it takes in a prompt, with one a token that stands there.
    """
    kinds = _layer_kinds()
    made = [
        kinds.made(layer, buffers.get(i), position is None) if layer.entries else kinds.nothing()
        for i, layer in enumerate(layers)
    ]
    return kinds.cache(made, position)


def buffers_of(module: nn.Module) -> Mapping[int, Buffers]:
    """The buffers that were placed in a module, by number of the layer."""
    found: dict[int, Buffers] = {}
    for inner in module.modules():
        held = inner._modules.get("cache")
        if isinstance(held, Buffers):
            found[vars(inner)["layer_idx"]] = held
    return found


@dataclass(frozen=True)
class _Kinds:
    """Classes that build on those of transformers, which is imported when they are needed."""

    cache: Any
    attention: Any
    recurrent: Any
    hybrid: Any
    nothing: Any
    known: frozenset[type]

    def made(self, layer: LayerCache, buffers: Any, is_prompt: bool) -> Any:
        has_tokens = any(entry.tokens for entry in layer.entries)
        if not layer.num_states:
            return self.attention(layer, buffers, is_prompt)
        return (self.hybrid if has_tokens else self.recurrent)(layer, buffers, is_prompt)


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


@cache
def _layer_kinds() -> _Kinds:
    theirs: Any = library().cache_utils

    class Tokens:
        """Keys and values of tokens in buffers; a mixin of layers."""

        is_sliding = False
        is_compileable = True
        buffers: Any
        is_prompt: bool
        position: Any = None

        def update(self, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
            both = ((self.buffers.keys, key), (self.buffers.values, value))
            room, given = int(self.buffers.keys.shape[_TOKENS]), int(key.shape[_TOKENS])
            at = self.position
            if self.is_prompt:
                at = torch.arange(min(room, given), device=key.device)
            elif self.is_sliding:
                at = at % room
            for held, made in both:
                last = made if given <= room else made.narrow(_TOKENS, given - room, room)
                held.index_copy_(held.dim() + _TOKENS, at, last)
            return (key, value) if self.is_prompt else (self.buffers.keys, self.buffers.values)

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return (query_length if self.is_prompt else int(self.buffers.keys.shape[_TOKENS])), 0

        def get_seq_length(self) -> Any:
            return 0 if self.is_prompt else self.position

        def get_max_length(self) -> int:
            return int(self.buffers.keys.shape[_TOKENS])

        def lazy_initialization(self, *_: Any, **__: Any) -> None:
            pass

    class Attention(Tokens, theirs.CacheLayerMixin):  # type: ignore[misc]
        def __init__(self, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
            super().__init__()
            self.buffers, self.is_prompt, self.is_sliding = buffers, is_prompt, layer.is_sliding
            self.is_initialized = True

    def states(self: Any, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
        self.buffers, self.is_prompt = buffers, is_prompt
        number = layer.num_states
        names = {entry.name for entry in layer.entries}
        self.conv_states = _States(buffers, "conv", number)
        self.recurrent_states = _States(buffers, "recurrent", number)
        self.has_previous_state = _Fixed(dict.fromkeys(range(number), not is_prompt))
        sizes = {
            i: int(self.conv_states[i].shape[-1]) for i in range(number) if f"conv_{i}" in names
        }
        self.conv_kernel_size = _Fixed(sizes)
        self.is_conv_states_initialized = _Fixed(dict.fromkeys(range(number), True))
        self.is_recurrent_states_initialized = _Fixed(dict.fromkeys(range(number), True))

    class Recurrent(theirs.LinearAttentionLayer):  # type: ignore[misc]
        def __init__(self, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
            super().__init__(number_of_states=layer.num_states)
            states(self, layer, buffers, is_prompt)

    class Hybrid(Tokens, theirs.LinearAttentionAndFullAttentionLayer):  # type: ignore[misc]
        def __init__(self, layer: LayerCache, buffers: Buffers, is_prompt: bool) -> None:
            theirs.LinearAttentionAndFullAttentionLayer.__init__(self, layer.num_states)
            states(self, layer, buffers, is_prompt)
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

    def flattened(value: Any) -> tuple[list[Any], Any]:
        sealed = value.__dict__.setdefault("sealed", _Sealed(value.layers))
        return ([] if value.position is None else [value.position]), sealed

    def nested(leaves: Any, sealed: Any) -> Any:
        made = Kept(sealed.layers, next(iter(leaves), None))
        made.__dict__["sealed"] = sealed
        return made

    pytree.register_pytree_node(
        Kept, flattened, nested, serialized_type_name="placement.huggingface.Kept"
    )
    known = {
        theirs.DynamicLayer,
        theirs.DynamicSlidingWindowLayer,
        theirs.DummyLayer,
        theirs.LinearAttentionLayer,
        theirs.LinearAttentionAndFullAttentionLayer,
        theirs.LinearAttentionAndSlidingWindowAttentionLayer,
    }
    return _Kinds(Kept, Attention, Recurrent, Hybrid, theirs.DummyLayer, frozenset(known))
