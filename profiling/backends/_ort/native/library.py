"""ONNX Runtime's C API by ctypes, in the library that its wheel carries beside the Python module.

The Python module holds the runtime a second time, so what one of them has made means nothing to the
other. The table of functions only grows (onnxruntime_c_api.h), so a function's place in it stays.
"""

import ctypes
import functools
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profiling.backends._ort.types import element_type

# The version whose table is asked for; all functions below are older.
VERSION = 23
_PATTERNS = ("libonnxruntime.so*", "libonnxruntime*.dylib", "onnxruntime.dll")
_INT, _SIZE, _TEXT, _POINTER = ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
# Place in the table and parameters of functions that return a status.
_CALLS: dict[str, tuple[int, tuple[Any, ...]]] = {
    "CreateEnv": (3, (_INT, _TEXT, _POINTER)),
    "CreateSessionFromArray": (8, (_POINTER, _TEXT, _SIZE, _POINTER, _POINTER)),
    "CreateSessionOptions": (10, (_POINTER,)),
    "SetSessionLogSeverityLevel": (22, (_POINTER, _INT)),
    "SetSessionGraphOptimizationLevel": (23, (_POINTER, _INT)),
    "SetIntraOpNumThreads": (24, (_POINTER, _INT)),
    "SetInterOpNumThreads": (25, (_POINTER, _INT)),
    "CreateRunOptions": (39, (_POINTER,)),
    "RunOptionsSetTerminate": (46, (_POINTER,)),
    "CreateTensorWithDataAsOrtValue": (
        49,
        (_POINTER, _POINTER, _SIZE, _POINTER, _SIZE, _INT, _POINTER),
    ),
    "CreateCpuMemoryInfo": (69, (_INT, _INT, _POINTER)),
    "AddSessionConfigEntry": (130, (_POINTER, _TEXT, _TEXT)),
    "RunWithBinding": (133, (_POINTER, _POINTER, _POINTER)),
    "CreateIoBinding": (134, (_POINTER, _POINTER)),
    "BindInput": (136, (_POINTER, _TEXT, _POINTER)),
    "BindOutput": (137, (_POINTER, _TEXT, _POINTER)),
    "CreateAndRegisterAllocator": (144, (_POINTER, _POINTER, _POINTER)),
    "AddExternalInitializers": (210, (_POINTER, _POINTER, _POINTER, _SIZE)),
}
# Functions that release what a call has made.
_RELEASES = {
    "Status": 93,
    "MemoryInfo": 94,
    "Session": 95,
    "Value": 96,
    "RunOptions": 97,
    "SessionOptions": 100,
    "IoBinding": 135,
}
_ERROR_CODE, _ERROR_MESSAGE = 1, 2
# The Python module's classes of errors, and what it calls them in their texts, by code.
_ERRORS = (
    ("Fail", "FAIL"),
    ("InvalidArgument", "INVALID_ARGUMENT"),
    ("NoSuchFile", "NO_SUCHFILE"),
    ("NoModel", "NO_MODEL"),
    ("EngineError", "ENGINE_ERROR"),
    ("RuntimeException", "RUNTIME_EXCEPTION"),
    ("InvalidProtobuf", "INVALID_PROTOBUF"),
    ("ModelLoaded", "MODEL_LOADED"),
    ("NotImplemented", "NOT_IMPLEMENTED"),
    ("InvalidGraph", "INVALID_GRAPH"),
    ("EPFail", "EP_FAIL"),
)
_SILENT, _ARENA, _DEFAULT = 4, 1, 0


class Owned:
    """Something that the library has made, at `address`; released with this object.

    `needs` is what it uses and has to live at least as long.
    """

    def __init__(self, address: int, release: Any, needs: Sequence[Any] = ()) -> None:
        self.address = address
        # Not at the end of the process, when a thread that was given up may still use it.
        weakref.finalize(self, _release, release, address, tuple(needs)).atexit = False


def _release(release: Any, address: int, needs: tuple[Any, ...]) -> None:
    release(address)


class Library:
    """The functions, an environment, and an arena of CPU memory that all sessions may share."""

    def __init__(self, table: int) -> None:
        num = max(place for place, _ in _CALLS.values()) + 1
        places = [int(place or 0) for place in (_POINTER * num).from_address(table)]
        self.run_with_binding = places[_CALLS["RunWithBinding"][0]]
        self._calls = {
            name: ctypes.CFUNCTYPE(_POINTER, *given)(places[place])
            for name, (place, given) in _CALLS.items()
        }
        release = ctypes.CFUNCTYPE(None, _POINTER)
        self._releases = {name: release(places[place]) for name, place in _RELEASES.items()}
        self._error_code = ctypes.CFUNCTYPE(_INT, _POINTER)(places[_ERROR_CODE])
        self._error_message = ctypes.CFUNCTYPE(_TEXT, _POINTER)(places[_ERROR_MESSAGE])
        # Neither is released: both end with the process, after whatever still runs in it.
        self.environment = self._made("CreateEnv", _SILENT, b"placement")
        self._memory = self._made("CreateCpuMemoryInfo", _ARENA, _DEFAULT)
        self.call("CreateAndRegisterAllocator", self.environment, self._memory, None)

    def call(self, name: str, *given: Any) -> None:
        """Call a function of the table; an error of the Python module's own kind if it fails."""
        status = self._calls[name](*given)
        if status:
            raise self.error(status)

    def error(self, status: int) -> Exception:
        """What the Python module would raise for a status, which is released."""
        from onnxruntime.capi import onnxruntime_pybind11_state as module

        code, text = self._told(status)
        kind, word = _ERRORS[code - 1] if 0 < code <= len(_ERRORS) else _ERRORS[0]
        made: Exception = getattr(module, kind)(f"[ONNXRuntimeError] : {code} : {word} : {text}")
        return made

    def run_error(self, status: int) -> Exception:
        """The same for a run on a binding, where the module has but one kind of error."""
        return RuntimeError(f"Error in execution: {self._told(status)[1]}")

    def _told(self, status: int) -> tuple[int, str]:
        """Code and text of a status, which is released."""
        code, text = self._error_code(status), self._error_message(status) or b""
        self._releases["Status"](status)
        return code, text.decode(errors="replace")

    def owned(self, kind: str, name: str, *given: Any, needs: Sequence[Any] = ()) -> Owned:
        """What a function makes of arguments before its last, which says where to put it."""
        return Owned(self._made(name, *given), self._releases[kind], needs)

    def _made(self, name: str, *given: Any) -> int:
        where = ctypes.c_void_p()
        self.call(name, *given, ctypes.byref(where))
        return int(where.value or 0)

    def tensor(self, array: np.ndarray[Any, Any], type_text: str) -> Owned:
        """A value of onnxruntime's type `type_text` on an array's own memory."""
        assert array.flags.c_contiguous, "a value is one piece of memory"
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        number = element_type(type_text.removeprefix("tensor(").removesuffix(")"))
        return self.owned(
            "Value",
            "CreateTensorWithDataAsOrtValue",
            self._memory,
            array.ctypes.data,
            array.nbytes,
            shape,
            array.ndim,
            number,
            needs=(array,),
        )


@functools.cache
def library() -> Library | str:
    """The library of the installed onnxruntime, or why there is none, as a sentence."""
    import onnxruntime

    folder = Path(onnxruntime.__file__).parent / "capi"
    path = next((path for name in _PATTERNS for path in sorted(folder.glob(name))), None)
    if path is None:
        return "onnxruntime has no library for other languages beside its Python module"

    class Base(ctypes.Structure):
        _fields_ = (
            ("api", ctypes.CFUNCTYPE(_POINTER, ctypes.c_uint32)),
            ("version", ctypes.CFUNCTYPE(_TEXT)),
        )

    try:
        opened = ctypes.CDLL(str(path))
        opened.OrtGetApiBase.restype = ctypes.POINTER(Base)
    except (OSError, AttributeError):
        return f"onnxruntime's library {path.name} cannot be opened"
    base = opened.OrtGetApiBase().contents
    version = base.version().decode(errors="replace")
    if version != onnxruntime.__version__:
        module = onnxruntime.__version__
        return f"onnxruntime's library is version {version}, its Python module {module}"
    table = base.api(VERSION)
    if not table:
        return f"onnxruntime {version} lacks version {VERSION} of its C interface"
    return Library(table)
