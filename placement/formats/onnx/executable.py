"""The side of an ONNX model that a runtime executes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import onnx

from placement.core.fingerprint import fingerprint_of
from placement.core.model import Model, SymbolicDim
from placement.formats.onnx.checks.external import ExternalFiles, load_external
from placement.formats.onnx.dims import (
    IMAGE_SIZE,
    dims_of,
    drop_constant_inputs,
    image_axes,
    note_of,
)
from placement.formats.onnx.fitting import fitting_side
from placement.formats.onnx.graph import build_graph
from placement.formats.onnx.prepare import prepare
from placement.formats.onnx.read import parse_with_external, read_bytes


@dataclass(frozen=True)
class OnnxExecutable:
    """An ONNX file with sizes for its symbolic dimensions.

    `file_hash` is the SHA-256 of the file as it was opened and `external` its data files;
    `model_proto` refuses files that have changed since. `symbolic_dims` are the dimensions that the
    file leaves open, whatever `dims` says of them.
    """

    path: Path
    dims: tuple[tuple[str, int], ...]
    file_hash: str
    external: ExternalFiles
    symbolic_dims: tuple[SymbolicDim, ...] = ()

    @property
    def format(self) -> str:
        return "onnx"

    @property
    def content_hash(self) -> str:
        return fingerprint_of([self.file_hash, self.external, self.dims])

    def model_proto(self, most_bytes: int | None = None) -> onnx.ModelProto:
        """The whole model: nodes named like the graph's ops, sizes in place, weights inside.

        External data is moved into the model, so that no runtime opens a file that this one names;
        it may then be larger than the 2 GiB that protobuf can write. Where it is more than
        `most_bytes`, large weights stay outside, for `write_model` to copy.
        """
        data = read_bytes(self.path)
        model, external = parse_with_external(data, self.path)
        if hashlib.sha256(data).hexdigest() != self.file_hash or external != self.external:
            raise ValueError(f"{self.path.name!r} has changed since it was opened; open it again.")
        prepared, _ = prepare(model, dict(self.dims), self.path.stem, self.path)
        load_external(prepared, self.path, most_bytes)
        return prepared


def open_onnx(path: Path, dims: Mapping[str, int]) -> Model:
    """The model in a file, named after the file's stem."""
    data = read_bytes(path)
    model, external = parse_with_external(data, path)
    drop_constant_inputs(model)
    symbolic, pictures = dims_of(model), image_axes(model, dims)
    prepared, notes = prepare(model, dims, path.stem, path)
    if pictures:
        side = fitting_side(prepared, list(chain(*pictures.values())))
        if side != IMAGE_SIZE:
            sides = dict.fromkeys(pictures, side)
            return _by_default(open_onnx(path, {**dims, **sides}), sides, symbolic)
    graph, more = build_graph(prepared, path.stem)
    executable = OnnxExecutable(
        path, tuple(sorted(dims.items())), hashlib.sha256(data).hexdigest(), external, symbolic
    )
    return Model(graph, executable, notes=(*notes, *more))


def _by_default(model: Model, sides: Mapping[str, int], symbolic: Sequence[SymbolicDim]) -> Model:
    """The model, telling of sizes that were found for pictures as of sizes by default."""
    assert isinstance(model.executable, OnnxExecutable)
    given = {note_of(name, side): note_of(name, side, True) for name, side in sides.items()}
    notes = tuple(given.get(note, note) for note in model.notes)
    more = (
        f"Pictures of {IMAGE_SIZE} pixels a side contradict numbers of the network, so the first"
        " usual size is taken that does not; set the one that it is made for"
    )
    found = tuple(replace(dim, size=sides.get(dim.name, dim.size)) for dim in symbolic)
    executable = replace(model.executable, symbolic_dims=found)
    return replace(model, executable=executable, notes=(*notes, more))
