"""Shapes worked out from the operators instead of believed: each is run on tensors without content.

What a step would make is counted on the way, also inside operators that the library writes in
terms of others (a recurrent layer is one call per step), so that a small file cannot ask for any
amount of memory or time.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import getitem
from typing import Any

import torch
from torch import fx
from torch._subclasses import fake_tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from placement.formats.torch.pt2.allowed import is_allowed
from placement.formats.torch.pt2.archive import Refused, bad
from placement.formats.torch.pt2.checks import BATCH_NORMS, arguments_of, packet_of, require_safe
from placement.formats.torch.weights import MAX_DIMS, Layout

# Their second and third results are means and deviations.
NORMALISING = frozenset(["native_layer_norm", "native_group_norm", *BATCH_NORMS])
# More than any computer of today holds in one step.
MAX_STEP_BYTES = 2**40
MAX_INNER_CALLS = 300_000


class Inference:
    """Calls operators on tensors that have a shape, a type and no content."""

    def __init__(self) -> None:
        self._mode = fake_tensor.FakeTensorMode(allow_fallback_kernels=False)
        self._watch = _Watch()

    @property
    def num_bytes(self) -> int:
        """What the calls so far have made; views count nothing."""
        return self._watch.num_bytes

    def tensor(self, layout: Layout) -> torch.Tensor:
        self._watch.count_bytes(layout.num_bytes)
        with self._mode:
            if layout.is_apart and layout.num_bytes:
                return torch.empty_strided(layout.sizes, layout.strides, dtype=layout.dtype)
            return torch.empty(layout.sizes, dtype=layout.dtype)

    def like(self, value: torch.Tensor) -> torch.Tensor:
        with self._mode:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)

    def call(self, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What the operator makes of these; `Refused` where it may not or cannot be called."""
        require_safe(target, args, kwargs)
        try:
            with _quiet(), torch.no_grad(), self._mode, self._watch:
                return target(*args, **kwargs)
        except Refused:
            raise
        except Exception as error:  # the library raises many kinds
            text = " ".join(str(error).split())[:200]
            raise bad(f"{target} cannot be called like this ({text})") from None


def require_safe_graph(graph: fx.Graph) -> None:
    """The same of a graph that the library has rewritten, whose nodes know their shapes."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not getitem:
            name = str(node.target._schema.name).partition("::")[2]
            if not is_allowed(name, str(node.target._overloadname)):
                raise bad(f"it needs {node.target}, which is not among the operators of files")
            args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
            require_safe(node.target, args, kwargs)


@contextmanager
def _quiet() -> Iterator[None]:
    """The library writes what it raises to its log, too."""
    log = logging.getLogger(fake_tensor.__name__)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _with_statistics(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], made: Any) -> Any:
    """The same results, with statistics of the type that the kernels of the CPU keep them in.

    Means and deviations have the type of the parameters, running ones the type that they had; the
    library's own inference says half precision, or single, where the input has it.
    """
    if packet_of(func) not in NORMALISING:
        return made
    given = arguments_of(func, args, kwargs)
    running = given.get("running_mean")
    known = [given["weight"], given["bias"], running]
    kept = next((value.dtype for value in known if value is not None), None)
    types = {1: kept, 2: kept}
    if running is not None and packet_of(func) == "_native_batch_norm_legit_functional":
        types |= {3: running.dtype, 4: running.dtype}
    return tuple(
        value.to(types[i]) if types.get(i) is not None else value for i, value in enumerate(made)
    )


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what calls make; checks also those that the library makes inside of others."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.num_bytes = self.num_calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num_calls += 1
        if self.num_calls > MAX_INNER_CALLS:
            raise bad(f"a step of it is more than {MAX_INNER_CALLS} calls", "a smaller module")
        require_safe(func, args, kwargs or {}, inside=True)
        made = _with_statistics(func, args, kwargs or {}, func(*args, **(kwargs or {})))
        if not func.is_view:
            for value in pytree.tree_leaves(made):
                if isinstance(value, torch.Tensor):
                    self.count_bytes(value.numel() * value.element_size())
        if any(t.dim() > MAX_DIMS for t in pytree.tree_leaves(made) if isinstance(t, torch.Tensor)):
            raise bad(f"{func} makes a tensor of more than {MAX_DIMS} dimensions")
        return made

    def count_bytes(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        if self.num_bytes > MAX_STEP_BYTES:
            raise bad(f"a step of it makes more than {MAX_STEP_BYTES} bytes", "a smaller module")
