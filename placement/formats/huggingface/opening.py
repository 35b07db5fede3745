"""A configuration opened as a model without weights: traced once per kind of layer."""

import dataclasses
import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from placement.core.formatting import num_bytes
from placement.core.graph import TOKEN_TASKS, Narrower
from placement.core.model import Model, SymbolicDim
from placement.formats.huggingface import configuration, headers
from placement.formats.huggingface.architecture import network
from placement.formats.huggingface.caches import LAYOUTS, PAGE, Entry
from placement.formats.huggingface.generation import Step, step_program
from placement.formats.huggingface.inputs import has_words, inputs_of
from placement.formats.torch.export import program_of
from placement.formats.torch.exporting import exported
from placement.formats.torch.graph import graph_of, param_bytes_of
from placement.formats.torch.optimisers import optimiser
from placement.formats.torch.program import TorchProgram
from placement.formats.torch.stacks import Unlike, traced
from placement.formats.torch.stored import computed_in, stored_as
from placement.formats.torch.training import training_program

TASKS = ("inference", "prefill", "decode", "training")
STORED = ("int8", "int4")
DTYPES = (*configuration.DTYPES, *STORED)
BATCH, LENGTH, CONTEXT = 1, 512, 4096
MOST_LAYERS, MOST_SIZE = 10_000, 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a configuration is opened; what is None is as the configuration says."""

    task: str = "inference"
    dtype: str | None = None
    cache: str = LAYOUTS[0]
    batch: int = BATCH
    length: int | None = None
    context: int | None = None
    depth: int | None = None

    @classmethod
    def of(cls, dims: Mapping[str, int | str]) -> "Settings":
        """Settings by name; a ValueError says which are not known or out of range."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        words = {"task": TASKS, "dtype": DTYPES, "cache": LAYOUTS}
        for name, value in dims.items():
            if name not in fields:
                raise ValueError(f"It has no size {name!r}; it has {', '.join(fields)}.")
            if name in words and value not in words[name]:
                raise ValueError(f"{name} is {value!r}; use {', '.join(words[name])}.")
            most = MOST_LAYERS if name == "depth" else MOST_SIZE
            if name not in words and not (isinstance(value, int) and 1 <= value <= most):
                raise ValueError(f"Size {name!r} is {value!r}; use 1 to {most}.")
        given: Any = dims
        return cls(**given)


def open_configuration(
    content: Mapping[str, Any],
    name: str,
    dims: Mapping[str, int | str],
    stored: Mapping[str, headers.Stored] | None = None,
) -> Model:
    """The model of a configuration's JSON; `stored` is what files of weights beside it hold."""
    settings = Settings.of(dims)
    generates = settings.task in TOKEN_TASKS
    config = configuration.configuration(
        content, settings.depth, None if generates else settings.context
    )
    longest = configuration.context_of(config)
    if generates and longest and (settings.context or 0) > longest:
        config = configuration.configuration(content, settings.depth, settings.context)
    stated = configuration.stated_dtype(content) or headers.dtype_of(stored or {}) or "float32"
    dtype = settings.dtype or stated
    computed = _computed(dtype, stated)
    module = network(config, content.get("architectures"), getattr(torch, computed))
    sizes = _sizes(module, settings)
    tokens, told = None, []
    if generates:
        step = Step(settings.task, **sizes, layout=settings.cache)
        program, entries = step_program(
            module, step, lambda part, named: _traced(part, named, name), rings=True
        )
        tokens, told = step.tokens, [_cache_in_words(entries, step)]
    else:
        with torch.device("meta"):
            inputs = inputs_of(module, sizes, getattr(torch, computed))
        trace = _training if settings.task == "training" else _traced
        program = trace(module, inputs, name)
    if dtype in STORED:
        program = stored_as(program, dtype)
    program = dataclasses.replace(
        program, symbolic_dims=_open_sizes(module, sizes, settings, dtype)
    )
    expected = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    found = headers.confirmed(stored or {}, expected)
    count = sum(value.numel() for value in module.parameters())
    notes = (
        f"{count:,} parameters of {type(module).__name__}, none of them here: no weights,"
        " predicted only",
        *told,
        *configuration.notes_of(content),
        *([f"The files beside it confirm the shapes of {found:,} tensors"] if stored else []),
    )
    # What is trained cannot be stored in fewer bits.
    trains = settings.task == "training"
    narrower = () if trains else _narrower(program, module, dtype, stated)
    graph = dataclasses.replace(graph_of(program), tokens=tokens, narrower=narrower)
    return Model(graph, program, notes=notes)


def _computed(dtype: str, stated: str) -> str:
    """The type to compute in: that of the configuration where weights are stored in fewer bits."""
    if dtype not in STORED:
        return dtype
    return "bfloat16" if stated == "float32" else stated


def _narrower(
    program: TorchProgram, module: nn.Module, dtype: str, stated: str
) -> tuple[Narrower, ...]:
    """The types that weights could be stored in with fewer bits."""
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}

    def stored(word: str) -> Narrower:
        same = computed_in(program, getattr(torch, _computed(word, stated)), parameters)
        return Narrower(word, param_bytes_of(stored_as(same, word) if word in STORED else same))

    types = ("float32", "bfloat16", *STORED)
    width = "bfloat16" if dtype == "float16" else dtype
    return tuple(map(stored, types[types.index(width) + 1 :] if width in types else STORED))


def _cache_in_words(entries: Mapping[str, Entry], step: Step) -> str:
    """The size of a cache, for a reader."""
    total = sum(entry.stored_bytes(step.layout) for entry in entries.values())
    pages = f", in pages of {PAGE} tokens" if step.layout == "paged" else ""
    return (
        f"A cache of {num_bytes(total)} for {step.context:,} tokens of each sequence{pages}; it"
        " lies where its layers are"
    )


def _sizes(module: nn.Module, settings: Settings) -> dict[str, int]:
    longest = configuration.context_of(module.config)
    if settings.task in TOKEN_TASKS:
        context = settings.context or min(CONTEXT, longest or CONTEXT)
        length = settings.length or min(LENGTH, context)
        return {"batch": settings.batch, "length": length, "context": context}
    length = settings.length or min(LENGTH, longest or LENGTH)
    if longest and length > longest:
        raise ValueError(
            f"The length {length} is more than the {longest} positions that the model is made for;"
            " use a shorter one, or set context."
        )
    return {"batch": settings.batch, "length": length}


def _open_sizes(
    module: nn.Module, sizes: Mapping[str, int], settings: Settings, dtype: str
) -> tuple[SymbolicDim, ...]:
    config: Any = module.config
    found = [SymbolicDim("batch", sizes["batch"], "sequences or pictures at a time")]
    generates = settings.task in TOKEN_TASKS
    if has_words(module) and settings.task != "decode":
        found.append(SymbolicDim("length", sizes["length"], "words of a sequence"))
    if generates:
        where = "tokens of a sequence that the cache has room for"
        found.append(SymbolicDim("context", sizes["context"], where))
    elif configuration.context_of(config):
        size = configuration.context_of(config)
        found.append(SymbolicDim("context", size, "positions that the model is made for"))
    if configuration.depth_of(config):
        found.append(SymbolicDim("depth", configuration.depth_of(config), "layers"))
    found.append(SymbolicDim("task", settings.task, "what a step is", TASKS))
    found.append(SymbolicDim("dtype", dtype, "type of numbers", DTYPES))
    if generates:
        found.append(SymbolicDim("cache", settings.cache, "how the cache lies", LAYOUTS))
    return tuple(found)


def _traced(module: nn.Module, inputs: dict[str, Any], name: str) -> TorchProgram:
    def export(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TorchProgram:
        return program_of(exported(part, args, kwargs, name), name)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return traced(module, (), inputs, export)
        except Unlike:
            return export(module, (), inputs)


def _training(module: nn.Module, inputs: dict[str, Any], name: str) -> TorchProgram:
    """A step of Adam on the loss of next words, traced in full: gradients cross layers."""
    if "labels" not in inspect.signature(module.forward).parameters or "input_ids" not in inputs:
        raise ValueError(
            f"{type(module).__name__} has no loss of words; use task inference, or trace a step in"
            " Python with from_torch."
        )
    named = {**inputs, "labels": torch.empty_like(inputs["input_ids"])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return training_program(module.train(), (), named, (), None, optimiser("adam", None), name)
