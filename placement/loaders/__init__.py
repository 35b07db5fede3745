"""Model loaders, one file per format; the folder listing is the registry.

A file of this folder whose name does not begin with an underscore may define

- `LOADER`, something that reads files (see `Loader`), and
- `SAMPLES`, something that lists and opens bundled models by name (see `SampleSource`).

Nothing else is edited to add a format. The files import heavy libraries inside their functions, so
that listing loaders and samples loads none.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from placement.core.model import Dims, Model, Sample, SymbolicDim
from placement.core.registry import Registry
from placement.files.input import regular_file
from placement.loaders.base import Loader, SampleSource

_LOADERS = Registry(__name__, __path__, "LOADER", "loader")
_SAMPLES = Registry(__name__, __path__, "SAMPLES", "source of samples")


def is_sample(input: str) -> bool:
    """Whether an input is the name of a bundled model."""
    return any(sample.name == input for sample in samples())


def require_file(input: str) -> None:
    """ValueError unless an input that is no sample is a file, or a folder that a file stands for;
    nothing of it is read."""
    _existing(input)


def loaders() -> tuple[Loader, ...]:
    """Every loader of this folder, in the order of file names."""
    return tuple(_LOADERS.all())


def readable_suffixes() -> list[str]:
    """Endings of the files that loaders read, without those that they only know to refuse."""
    refused = {suffix for loader in loaders() for suffix in loader.refused}
    return sorted(suffixes() - refused)


def samples() -> tuple[Sample, ...]:
    """Every bundled model, in the order of file names and then of the file's own list.

    What can be run comes first, what has no weights last.
    """
    found = [sample for source in _SAMPLES.all() for sample in source.samples()]
    return tuple(sorted(found, key=lambda sample: not sample.has_weights))


def load(input: str, dims: Dims | None = None) -> Model:
    """Open a bundled sample by name, or else a file by path.

    `dims` gives symbolic dimensions a size, and settings that take one a word. A ValueError says
    in one sentence what is wrong with the input, where, and what to do about it.
    """
    given: Any = dict(dims or {})
    for source in _SAMPLES.all():
        if any(sample.name == input for sample in source.samples()):
            _require_known(input, given, source)
            with _uncollected():
                model: Model = source.load_sample(input, given)
            return model
    path = _existing(input)
    loader = _guarded(path, loader_for, path)
    _require_known(path.name, given, loader)
    with _uncollected():
        opened: Model = _guarded(path, loader.load, path, given)
    return opened


def _require_known(name: str, dims: Dims, source: Loader | SampleSource) -> None:
    """ValueError where a word is given for something that takes none."""
    named = [key for key, value in dims.items() if isinstance(value, str)]
    odd = next((key for key in named if key not in source.words), None)
    if odd is not None:
        raise ValueError(f"{name!r} has no setting {odd!r}; leave it out.")


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: a model is a million objects that stay, and looking at them again
    and again while they are made takes a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _guarded(path: Path, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns; errors of reading and of memory become ValueErrors, and all of
    them name the file."""
    try:
        return function(*arguments)
    except UnicodeDecodeError:
        raise ValueError(
            f"{path.name!r} has text that is not UTF-8; write or export it again."
        ) from None
    except OSError as error:
        raise ValueError(f"{path.name!r} cannot be read: {error.strerror or error}.") from None
    except (RecursionError, MemoryError):
        raise ValueError(
            f"{path.name!r} is nested too deeply or too large for the memory here;"
            " use a smaller file."
        ) from None
    except ValueError as error:
        if repr(path.name) in str(error):
            raise
        raise ValueError(f"{path.name!r}: {error}") from None


def symbolic_dims(input: str) -> tuple[SymbolicDim, ...]:
    """The dimensions of a sample or file that `dims` may give a size, in the order of its inputs.

    Raises the same ValueErrors as `load`.
    """
    for source in _SAMPLES.all():
        if any(sample.name == input for sample in source.samples()):
            sizes: tuple[SymbolicDim, ...] = source.symbolic_dims(input)
            return sizes
    path = _existing(input)
    found: tuple[SymbolicDim, ...] = _guarded(path, loader_for(path).symbolic_dims, path)
    return found


def loader_for(path: Path) -> Loader:
    """The loader whose suffix fits and that accepts the file; ValueError where there is none."""
    found = loaders()
    fitting = [loader for loader in found if path.suffix.lower() in loader.suffixes]
    if not fitting:
        raise ValueError(
            f"{path.name!r} has the ending {path.suffix!r}, which no loader reads;"
            f" use one of {', '.join(readable_suffixes())}."
        )
    for loader in fitting:
        if loader.accepts(path):
            return loader
    expected = " or ".join(loader.summary for loader in fitting)
    raise ValueError(f"{path.name!r} is not {expected}; check the content of the file.")


def _existing(input: str) -> Path:
    if not input:
        raise ValueError("The input is empty; give a model file or the name of a bundled sample.")
    path = Path(input).expanduser() if input.startswith("~/") else Path(input)
    looks_like_path = "/" in input or "\\" in input or path.suffix.lower() in suffixes()
    try:
        missing = not path.exists()
    except (OSError, ValueError):
        missing = True
    if missing and not looks_like_path:
        names = [sample.name for sample in samples()]
        close = get_close_matches(input, names, n=3, cutoff=0.5) or names
        raise ValueError(
            f"{input[:100]!r} is neither a file nor a bundled sample; did you mean"
            f" {', '.join(close)}?"
        )
    return regular_file(_file_of(path))


def _file_of(path: Path) -> Path:
    """The file that stands for a folder; the path itself where none does."""
    names = (loader.folder_file for loader in loaders() if loader.folder_file)
    found = (path / name for name in names) if _is_folder(path) else ()
    return next((file for file in found if file.is_file()), path)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def suffixes() -> set[str]:
    """Endings that some loader has something to say about."""
    return {suffix for loader in loaders() for suffix in loader.suffixes}
