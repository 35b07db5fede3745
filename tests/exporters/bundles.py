"""Bundles as a person uses them: unpacked in a folder, their script imported from there."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime as ort

from placement.exporters import Export
from tests.exporters.exports import written


def unpacked(name: str, export: Export, folder: Path) -> Path:
    """The folder with the files of a format that writes several."""
    archive = written(name, export, folder)
    target = folder / name
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(target)
    archive.unlink()
    return target


def script(path: Path) -> ModuleType:
    """A script of a bundle as a module."""
    spec = importlib.util.spec_from_file_location(f"bundle_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def whole_outputs(proto, inputs) -> dict[str, np.ndarray]:
    """Outputs of the model as onnxruntime runs it by itself."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
