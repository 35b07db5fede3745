"""The side of an ONNX model that a runtime executes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import onnx

from placement.core.fingerprint import fingerprint_of
from placement.core.model import Model, SymbolicDim
from placement.formats.onnx.checks.external import ExternalFiles, load_external
from placement.formats.onnx.dims import (
    IMAGE_SIZE,
    NO_SIZES,
    dims_of,
    drop_constant_inputs,
    image_axes,
)
from placement.formats.onnx.fitting import fitting_side
from placement.formats.onnx.graph import build_graph
from placement.formats.onnx.prepare import prepare
from placement.formats.onnx.read import parse_with_external, read_bytes

_OTHER_SIDE = (
    f"Pictures of {IMAGE_SIZE} pixels a side contradict numbers of the network, so the first usual"
    " size is taken that does not; set the one that it is made for"
)


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
    return _opened(path, dims, NO_SIZES)


def _opened(path: Path, dims: Mapping[str, int], sides: Mapping[str, int]) -> Model:
    """The same with `sides` for pictures, where others than the usual ones fit the network."""
    data = read_bytes(path)
    model, external = parse_with_external(data, path)
    drop_constant_inputs(model)
    symbolic, pictures = dims_of(model), image_axes(model, dims)
    prepared, notes = prepare(model, dims, path.stem, path, sides)
    if pictures and not sides:
        side = fitting_side(prepared, list(chain(*pictures.values())))
        if side != IMAGE_SIZE:
            return _opened(path, dims, dict.fromkeys(pictures, side))
    graph, more = build_graph(prepared, path.stem)
    if sides:
        more = (*more, _OTHER_SIDE)
    executable = OnnxExecutable(
        path,
        tuple(sorted({**sides, **dims}.items())),
        hashlib.sha256(data).hexdigest(),
        external,
        tuple(replace(dim, size=sides.get(dim.name, dim.size)) for dim in symbolic),
    )
    return Model(graph, executable, notes=(*notes, *more))
