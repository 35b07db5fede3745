"""A config.json of a Hugging Face model: what it says, checked, as a configuration of transformers.

A configuration is settings of a network that transformers has: no code of a file or a repository
is looked for, and what names some (`auto_map`) is left out, with all that says how weights are
stored or which kernels to fetch. Sizes are those of the file but for the depth and the context
that somebody sets.
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from placement.core.decoding import shortened
from placement.files.input import read_json

DEPTHS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
    "num_decoder_layers",
)  # fmt: skip
CONTEXT = "max_position_embeddings"
# What says how a network is stored, found or run, rather than what it is.
_LEFT_OUT = frozenset(
    {
        "_commit_hash",
        "_name_or_path",
        "attn_implementation",
        "auto_map",
        "compression_config",
        "custom_pipelines",
        "dtype",
        "experts_implementation",
        "name_or_path",
        "quantization_config",
        "torch_dtype",
        "transformers_version",
        "use_kernels",
        "use_pretrained_backbone",
    }
)
DTYPES = ("float32", "bfloat16", "float16")
_MOST_DEEP = 20
_MOST = 2**48


def library() -> Any:
    """The transformers library, told to stay off the network; a ValueError where it lacks."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        import transformers
    except ImportError:
        raise ValueError("Configurations need transformers: pip install transformers.") from None
    return transformers


def is_configuration(content: Any) -> bool:
    """Whether a JSON value looks like the configuration of a model."""
    return isinstance(content, dict) and isinstance(content.get("model_type"), str)


def read(path: Path) -> dict[str, Any]:
    """The JSON of a configuration; a ValueError where a value is of no use."""
    content = read_json(path)
    if not is_configuration(content):
        raise ValueError(
            f"{path.name!r} has no model_type, so it is no model's configuration; use the"
            " config.json of a Hugging Face model."
        )
    _require_sane(content, path.name)
    return dict(content)


def _require_sane(value: Any, where: str, depth: int = 0) -> None:
    if depth > _MOST_DEEP:
        raise ValueError(f"{where} is nested too deeply; flatten it.")
    if isinstance(value, dict):
        for name, inner in value.items():
            _require_sane(inner, shortened(repr(name), 60), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _require_sane(inner, where, depth + 1)
    elif isinstance(value, int) and abs(value) > _MOST:
        raise ValueError(f"{where} is {str(value)[:30]}, more than any network has; correct it.")


def notes_of(content: Mapping[str, Any]) -> Iterator[str]:
    """What a reader should know of things in a configuration that are left out."""
    if "auto_map" in content:
        yield (
            "The configuration names Python code of its own (auto_map), which is never run; the"
            " architecture is that of transformers"
        )
    stored = content.get("quantization_config")
    if isinstance(stored, dict):
        method = str(stored.get("quant_method", "quantised"))
        yield f"The published weights are stored as {shortened(method, 30)}; set dtype to count so"


def stated_dtype(content: Mapping[str, Any]) -> str | None:
    """The type of numbers that a configuration states, if it does."""
    texts = (content, _text_part(content))
    said = [part.get(key) for part in texts for key in ("dtype", "torch_dtype")]
    return next((name for name in said if name in DTYPES), None)


def _text_part(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a configuration that describes the language model, where there are several."""
    found = content.get("text_config")
    return found if isinstance(found, dict) else content


def configuration(
    content: Mapping[str, Any], depth: int | None = None, context: int | None = None
) -> Any:
    """The configuration of transformers; a ValueError where the library lacks it."""
    transformers = library()
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    name = content["model_type"]
    if name not in CONFIG_MAPPING:
        raise ValueError(
            f"Model type {shortened(repr(name), 60)} is none of those that transformers"
            f" {transformers.__version__} has; code from a model's folder is never run, so use a"
            " model that the library has, or a newer library."
        )
    plain = _plain(dict(content))
    with quiet():
        found = CONFIG_MAPPING[name].from_dict(plain)
        if depth is not None or context is not None:
            changed = _resized(plain, found, depth, context)
            found = CONFIG_MAPPING[name].from_dict(changed)
    return found


def _plain(content: Any) -> Any:
    """A configuration without what is left out, at any depth."""
    if isinstance(content, dict):
        return {k: _plain(v) for k, v in content.items() if k not in _LEFT_OUT and k[:1] != "_"}
    return [_plain(one) for one in content] if isinstance(content, list) else content


def _resized(
    content: dict[str, Any], found: Any, depth: int | None, context: int | None
) -> dict[str, Any]:
    """The content with other sizes; lists with an entry per layer go along, from the start again
    where there are more layers than entries."""
    inner = content.get("text_config")
    if isinstance(inner, dict):
        return {**content, "text_config": _resized(inner, found.get_text_config(), depth, context)}
    changed = dict(content)
    if context is not None:
        changed[_key(found, CONTEXT)] = context
    named = {key: getattr(found, key, None) for key in DEPTHS}
    depths = {_key(found, key): n for key, n in named.items() if isinstance(n, int)}
    for key in depths if depth is not None else ():
        changed[key] = depth
        for name, value in content.items():
            if isinstance(value, list) and value and len(value) == depths[key]:
                changed[name] = [value[i % len(value)] for i in range(depth or 0)]
    return changed


def _key(found: Any, name: str) -> str:
    """What a network calls a size that goes by a common name."""
    return str(found.attribute_map.get(name, name))


def depth_of(found: Any) -> int:
    """How many layers a network has, in the part that has the words where there are several."""
    text = found.get_text_config()
    numbers = (getattr(part, key, None) for part in (text, found) for key in DEPTHS)
    return next((n for n in numbers if isinstance(n, int) and n > 0), 0)


def context_of(found: Any) -> int:
    """The longest sequence that a network is made for, 0 where it states none."""
    size = getattr(found.get_text_config(), CONTEXT, None)
    return size if isinstance(size, int) and size > 0 else 0


class quiet(warnings.catch_warnings):
    """While it lasts, the library's warnings about itself are not shown."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")
