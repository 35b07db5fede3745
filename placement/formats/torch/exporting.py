"""Exporting a module by the library, and what keeps one from it: which module, and why."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from placement.core.decoding import shortened

_ERRORS = (RuntimeError, AssertionError, TypeError, AttributeError, NotImplementedError, ValueError)
# What the library says where an answer depends on numbers that are not there yet.
_ON_DATA = ("data-dependent", "data dependent", "GuardOnDataDependent", "u0")


def exported(
    module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], name: str
) -> ExportedProgram:
    """The library's export of a module; a ValueError says what it fails at, and where.

    A module of transformers that cannot be exported as it is gets what that library's own exporter
    puts in place of loops and caches.
    """
    try:
        return torch.export.export(module, args, named)
    except _ERRORS as error:
        first = error
    if _is_of_transformers(module):
        try:
            with _as_transformers_exports(module):
                return torch.export.export(module, args, named)
        except _ERRORS as error:
            first = error
    raise ValueError(_why(module, args, named, name, first)) from first


def _is_of_transformers(module: nn.Module) -> bool:
    library: Any = sys.modules.get("transformers")
    return library is not None and any(
        isinstance(inner, library.PreTrainedModel) for inner in module.modules()
    )


@contextmanager
def _as_transformers_exports(module: nn.Module) -> Iterator[None]:
    """While it lasts, what transformers replaces for exports is replaced, and its caches are
    values that an export may hand back."""
    from transformers.exporters import exporter_dynamo as exporter
    from transformers.exporters.utils import apply_patches

    library: Any = sys.modules["transformers"]
    with ExitStack() as stack:
        for inner in module.modules():
            if isinstance(inner, library.PreTrainedModel):
                exporter.register_cache_pytrees_for_model(inner)
        stack.enter_context(torch.no_grad())
        stack.enter_context(apply_patches("dynamo"))
        stack.enter_context(exporter.reset_model_state(module))
        yield


def _why(
    module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], name: str, error: Exception
) -> str:
    """Why an export failed, in a sentence that names the module where it did."""
    text = shortened(" ".join(str(error).split()), 240).rstrip(".")
    path, kind = _where(module, args, named)
    inside = f" in its module {path!r} ({kind})" if path else ""
    if any(word in f"{type(error).__name__} {error}" for word in _ON_DATA):
        return (
            f"{name!r} decides by the numbers that it computes{inside}, which cannot be placed op"
            f" by op; give it inputs that settle this, or a module in its place ({text})."
        )
    return f"{name!r} cannot be exported{inside}: {text}."


def _where(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, str]:
    """Path and class of the innermost module that was at work when an export fails."""
    open_now: list[tuple[str, str]] = []
    handles = []
    for path, inner in module.named_modules():
        about = (path, type(inner).__name__)
        handles.append(
            inner.register_forward_pre_hook(lambda m, a, about=about: open_now.append(about))
        )
        handles.append(inner.register_forward_hook(lambda m, a, o: open_now.pop() and None))
    try:
        torch.export.export(module, args, named)
    except _ERRORS:
        return open_now[-1] if open_now else ("", "")
    finally:
        for handle in handles:
            handle.remove()
    return "", ""
