"""Let onnxruntime optimise a whole model once; what it saves is the graph of kernels.

No fusion is lost at a border later and no layout is converted twice, because the cut goes through
the optimised graph. Weights stay in a file beside it and are read when a part needs them.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from placement.core.graph import topological_order
from placement.formats.onnx.checks.walk import bodies, refill
from placement.formats.onnx.prepare import reads
from profiling.backends._ort import sessions

LEVELS = ("ORT_ENABLE_ALL", "ORT_ENABLE_BASIC", "ORT_DISABLE_ALL")
AS_IT_IS = "source"
PROTOBUF_LIMIT = 1_900_000_000
_WEIGHTS = "weights.bin"
_SMALL = 1024
_PREFIX = "placement-ort-"


class Folder:
    """A new temporary folder at `path`, which goes with its last user or with the process.

    What a killed process has left behind goes when the next folder is made.
    """

    def __init__(self) -> None:
        _remove_stale()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _remove_stale() -> None:
    """Remove folders of processes that are gone."""
    import psutil

    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError, ValueError, OverflowError):
            if not psutil.pid_exists(int(pid)):
                shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class Optimised:
    """An optimised model: a proto whose large weights lie in files of `folder`.

    `source` is the model that was optimised, as a file; `level` names the level that worked.
    The folder is removed when the last user is gone.
    """

    model: Any
    source: Path
    level: str
    folder: Folder

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def is_large(self) -> bool:
        """Whether its weights are more than a message holds."""
        return sum(map(self.num_bytes, self.model.graph.initializer)) > PROTOBUF_LIMIT

    def with_data(self, tensor: Any) -> Any:
        """The initializer with its data inside."""
        from onnx import TensorProto

        if tensor.data_location != TensorProto.EXTERNAL:
            return tensor
        where = {entry.key: entry.value for entry in tensor.external_data}
        with (self.path / where["location"]).open("rb") as file:
            file.seek(int(where.get("offset", 0)))
            data = file.read(int(where["length"]))
        return TensorProto(
            name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data
        )

    def mapped(self, tensor: Any) -> Any:
        """A large initializer of numpy's types as an array on its file, of which nothing is read.

        It outlives the file.
        """
        import numpy as np
        from onnx import helper

        where = {entry.key: entry.value for entry in tensor.external_data}
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        path, offset = self.path / where["location"], int(where.get("offset", 0))
        found = np.memmap(path, dtype, "r", offset, tuple(tensor.dims))
        return found.view(np.ndarray)

    def num_bytes(self, tensor: Any) -> int:
        """Bytes of an initializer's data."""
        from onnx import TensorProto

        if tensor.data_location == TensorProto.EXTERNAL:
            return next(int(e.value) for e in tensor.external_data if e.key == "length")
        return len(tensor.raw_data) or int(tensor.ByteSize())


def write_source(proto: Any) -> Folder:
    """The model in a temporary folder as `source.onnx`, weights beside it where they must be.

    ValueError where the disk has no room for that and for what onnxruntime makes of the weights.
    """
    from placement.formats.onnx.saving import write_model

    folder = Folder()
    write_model(proto, folder.path / "source.onnx", copies=2)
    return folder


def optimise(folder: Folder, level: str) -> Optimised:
    """The model of `write_source`, optimised at one level for the CPU provider.

    Raises what onnxruntime raises where it cannot run the model or write the result. At the level
    `AS_IT_IS` the model is taken without its help, for it cannot read all that it writes.
    """
    import onnx

    path = folder.path
    if level == AS_IT_IS:
        model = onnx.load(path / "source.onnx", load_external_data=False)
        return Optimised(model, path / "source.onnx", level, folder)
    target = path / f"{level}.onnx"
    made = sessions.options(1, level)
    made.optimized_model_filepath = str(target)
    key = "session.optimized_model_external_initializers_"
    made.add_session_config_entry(key + "file_name", f"{level}.{_WEIGHTS}")
    made.add_session_config_entry(key + "min_size_in_bytes", str(_SMALL))
    made.add_session_config_entry("session.disable_prepacking", "1")
    sessions.session(str(path / "source.onnx"), made, [sessions.CPU])
    model = onnx.load(target, load_external_data=False)
    _sort(model.graph)
    _prune(model.graph)
    made_model = Optimised(model, path / "source.onnx", level, folder)
    for body in _bodies(model.graph):
        for tensor in body.initializer:
            tensor.CopyFrom(made_model.with_data(tensor))
    return made_model


def _bodies(graph: Any) -> Iterator[Any]:
    """Every graph inside another: onnxruntime moves folded constants to the body that reads them,
    and such weights go with their node."""
    for node in graph.node:
        for body in (body for attribute in node.attribute for body in bodies(attribute)):
            yield body
            yield from _bodies(body)


def _prune(graph: Any) -> None:
    """Remove nodes whose results nobody reads."""
    wanted = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(reads(node))
            kept.append(node)
    if len(kept) < len(graph.node):
        refill(graph.node, kept[::-1])


def _sort(graph: Any) -> None:
    """Put the nodes in topological order, as stored where that is one already."""
    producer = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    successors: list[list[int]] = [[] for _ in graph.node]
    for i, node in enumerate(graph.node):
        for name in reads(node):
            if name in producer:
                successors[producer[name]].append(i)
    order = topological_order(len(successors), successors)
    assert order is not None, "onnxruntime saved a graph with a cycle"
    if order != list(range(len(order))):
        refill(graph.node, [graph.node[i] for i in order])
