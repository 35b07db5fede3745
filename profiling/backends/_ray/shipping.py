"""How a model gets to another host: by the name of a sample, or as the bytes of its files.

Nothing of it is pickled. The host reads it anew, and refuses it where what it has read is not what
was opened here.
"""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placement import loaders
from placement.core.model import Model
from profiling.sandbox import confinement


@dataclass(frozen=True)
class File:
    """A file by its path below the model's folder; runtimes' caches know it by its time."""

    name: str
    content: bytes
    modified_ns: int


@dataclass(frozen=True)
class Shipment:
    """A model to be read anew: `files` are empty for a bundled sample, else the model is the first.

    `content` has the fingerprint of the graph and the hash of what is executed.
    """

    name: str
    dims: tuple[tuple[str, int | str], ...]
    content: tuple[str, str]
    files: tuple[File, ...] = ()

    @property
    def key(self) -> str:
        return " ".join(self.content)


def packed(model: Model) -> Shipment:
    """A model as it is sent; ValueError where it was made in Python and nobody else can open it."""
    executable: Any = model.executable
    content = model.graph.fingerprint, executable.content_hash
    dims = tuple(getattr(executable, "dims", ()))
    path = getattr(executable, "path", None)
    if path is None:
        if not loaders.is_sample(model.graph.name):
            raise ValueError(
                f"{model.graph.name!r} was made in Python, so that other hosts cannot open it; save"
                " it to a file and open that."
            )
        return Shipment(model.graph.name, dims, content)
    others = [name for name, *_ in getattr(executable, "external", ())]
    found = [_file(path.parent, name) for name in (path.name, *others)]
    return Shipment(path.name, dims, content, tuple(found))


def _file(folder: Path, name: str) -> File:
    path = folder / name
    return File(name, path.read_bytes(), path.stat().st_mtime_ns)


def unpacked(shipment: Shipment, folder: Path) -> Model:
    """The model of a shipment, whose files come into a folder; ValueError if it is another one."""
    source = shipment.name
    for file in shipment.files:
        path = (folder / file.name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"File {file.name!r} of a model is outside its folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        os.utime(path, ns=(file.modified_ns, file.modified_ns))
    if shipment.files:
        source = str(folder / shipment.name)
    if shipment.files:
        _try(source, shipment.dims)
    model = loaders.load(source, dict(shipment.dims))
    executable: Any = model.executable
    if (model.graph.fingerprint, executable.content_hash) != shipment.content:
        raise ValueError(
            f"{shipment.name!r} is not the same on every host; install the same versions on all"
            " hosts, or save the model to a file and open that."
        )
    return model


def _try(source: str, dims: Iterable[tuple[str, int | str]]) -> None:
    """Read a file in a confined process first: what breaks whoever reads it breaks that one.

    A ValueError says what is wrong with it.
    """
    given = [word for name, value in dims for word in _option(name, value)]
    with confinement.own_folder() as (_, variables):
        command = confinement.command(
            confinement.limits_for(source), "placement", ["inspect", source, *given]
        )
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        raise ValueError(confinement.ending(done.returncode, Path(source).name))
    if done.returncode:
        raise ValueError(" ".join(done.stderr.split()) or f"{source!r} cannot be read.")


def _option(name: str, value: int | str) -> tuple[str, str]:
    """What the command line calls a size, or a setting that is a word."""
    return (f"--{name}", value) if isinstance(value, str) else ("--dim", f"{name}={value}")
