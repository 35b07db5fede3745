"""Models on their way from file to memory, each read in a thread of its own.

A page can so say how long it has been waiting, and stop waiting. What nobody waits for any more is
read to its end and forgotten: libraries that trace a network cannot be interrupted safely, and a
file is read by a process of its own that has little time.
"""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext

import placement as pl
from placement.core.model import Dims, Model
from placement.loaders import huggingface
from placement.loaders.zoo import SAMPLES

# What is opened, the sizes that were set, and a stamp of the file's content.
Key = tuple[str, tuple[tuple[str, int | str], ...], str]
# Sessions that went elsewhere while their model was read leave it behind.
MOST_LEFT = 2
# PyTorch traces one network at a time.
_tracing = threading.Lock()
_guard = threading.Lock()
_under_way: dict[Key, "Loading"] = {}


class Loading:
    """A model that is being read; `done` is set when it is there or has failed."""

    def __init__(self, key: Key, model: Model | None = None) -> None:
        """Begin to read it, unless it is there."""
        self.key = key
        self.began_s = time.monotonic()
        self.done = threading.Event()
        self.is_wanted = True
        self.is_queued = False
        self._model = model
        self._error: BaseException | None = None
        if model is not None:
            self.done.set()
            return
        threading.Thread(target=self._read, name=f"opening {key[0]}", daemon=True).start()

    def _read(self) -> None:
        try:
            source, dims, _ = self.key
            self.is_queued = _is_traced(source) and _tracing.locked()
            self._model = _loaded(source, dict(dims), self._begins)
        except BaseException as error:  # raised again where somebody waits
            self._error = error
        self.done.set()
        with _guard:
            if not self.is_wanted:
                _under_way.pop(self.key, None)

    def _begins(self) -> None:
        self.is_queued = False

    def result(self) -> Model:
        """The model, once it is there; what went wrong is raised."""
        self.done.wait()
        if self._error is not None:
            raise self._error
        assert self._model is not None
        return self._model


def start(key: Key) -> Loading:
    """Begin to read a model, or join whoever has begun."""
    with _guard:
        found = _under_way.get(key)
        if found is None:
            _make_room()
            found = _under_way[key] = Loading(key)
        found.is_wanted = True
        return found


def _make_room() -> None:
    """Let go of models that were read and that nobody came for, but the last few."""
    left = [key for key, one in _under_way.items() if one.done.is_set()]
    for key in left[: max(0, len(left) - MOST_LEFT)]:
        del _under_way[key]


def take(key: Key) -> Model:
    """The model, read here and now unless it is on its way already."""
    with _guard:
        found = _under_way.get(key)
    if found is None:
        return _loaded(key[0], dict(key[1]))
    try:
        return found.result()
    finally:
        with _guard:
            _under_way.pop(key, None)


def hand_over(key: Key, model: Model) -> None:
    """Say what is under a key that was just made, so that nobody has to read it."""
    there = Loading(key, model)
    with _guard:
        _under_way[key] = there


def forget(key: Key) -> None:
    """Nobody waits for this model any more."""
    with _guard:
        found = _under_way.get(key)
        if found is None:
            return
        found.is_wanted = False
        if found.done.is_set():
            del _under_way[key]


def _loaded(source: str, dims: Dims, begins: Callable[[], None] = lambda: None) -> Model:
    """Read a model, in a queue where its library takes one at a time; `begins` tells when."""
    with _tracing if _is_traced(source) else nullcontext():
        begins()
        return pl.load(source, dims=dims)


def _is_traced(source: str) -> bool:
    traced = (*SAMPLES.samples(), *huggingface.SAMPLES.samples())
    return any(sample.name == source for sample in traced)
