"""Which programs of onnxruntime run natively; of the others, the sentence that says why not."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from profiling import backends
from profiling.backends._ort.native import fits
from profiling.backends._ort.native.library import Library, library
from profiling.devices import native
from tests.profiling.live import CPU, diamond, saved

LANES = tuple(Device(f"cpu:{i}", "cpu", "onnxruntime", CPU) for i in range(2))
TWO = Machine("two", LANES)


@pytest.fixture(autouse=True)
def enough_cores(monkeypatch):
    monkeypatch.setattr(native, "share_cores", lambda devices: "")


@pytest.fixture
def fresh(monkeypatch):
    """The library is looked for anew."""
    monkeypatch.setattr(fits, "library", library.__wrapped__)


def note(model):
    """What a program of single kernels, every other one on the second lane, says of its lanes."""
    compiled = backends.get("onnxruntime").compile(model, TWO)
    names = [op.name for op in compiled.kernels.ops]
    schedule = Schedule(tuple(Segment(f"cpu:{i % 2}", (n,)) for i, n in enumerate(names)))
    program = compiled.open(schedule, compiled.feeds(0, {}))
    for segment in range(len(names)):
        program.run(segment)
    said = program.lanes_note
    assert (program.native is not None) == said.startswith("Lanes ran natively")
    program.close()
    return said


def in_python(reason):
    return f"Lanes ran in Python, because {reason}."


def test_lanes_of_arrays_of_fixed_shape_run_natively(tmp_path):
    assert note(diamond(tmp_path)) == "Lanes ran natively, without the interpreter's lock."


def test_what_is_asked_to_be_in_python_is_and_says_nothing(tmp_path):
    compiled = backends.get("onnxruntime").compile(diamond(tmp_path), TWO).in_python()
    schedule = Schedule((Segment("cpu:0", tuple(op.name for op in compiled.kernels.ops)),))
    program = compiled.open(schedule, compiled.feeds(0, {}))
    assert program.native is None and program.lanes_note == ""


def test_lanes_that_share_a_core_run_in_python(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "share_cores", lambda devices: "cpu:0 and cpu:1 share core 0")
    assert note(diamond(tmp_path)) == in_python("cpu:0 and cpu:1 share core 0")


def test_values_whose_shape_depends_on_data_run_in_python(tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Cast", ["n"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Exp", ["c"], ["y"]),
    ]
    model = saved(tmp_path, nodes, {"x": [2]}, {"y": [1, None]})
    assert note(model) == in_python("value 'n' has no fixed shape")


def test_values_that_are_no_arrays_run_in_python(tmp_path):
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("SequenceConstruct", ["a", "x"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    model = saved(tmp_path, nodes, {"x": [2]}, {"y": [4]})
    assert note(model) == in_python("value 's' is seq(tensor(float))")


def test_a_segment_with_more_weights_than_a_message_holds_runs_in_python(tmp_path, monkeypatch):
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = saved(tmp_path, nodes, {"x": [1, 64]}, {"y": [1, 64]}, [weight])
    monkeypatch.setattr(fits, "PROTOBUF_LIMIT", 10_000)
    assert note(model) == in_python("a segment has more than 2 GB of weights")


def test_devices_of_other_providers_run_in_python(tmp_path):
    """Asked of the layout alone, for no such device is here."""
    compiled = backends.get("onnxruntime").compile(diamond(tmp_path), TWO)
    gpu = Device("gpu:0", "gpu", "onnxruntime", "CUDAExecutionProvider")

    class Layout:
        parts, devices = (), (LANES[0], gpu)

    said = fits.why_not(Layout, compiled.optimised, compiled.values)
    assert said == "'gpu:0' is a device of CUDAExecutionProvider"


def test_where_there_is_no_library_lanes_run_in_python(tmp_path, fresh, monkeypatch):
    monkeypatch.setattr(onnxruntime, "__file__", str(tmp_path / "__init__.py"))
    assert note(diamond(tmp_path)) == in_python(
        "onnxruntime has no library for other languages beside its Python module"
    )
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / "libonnxruntime.so.1").write_bytes(b"no library")
    assert note(diamond(tmp_path)) == in_python(
        "onnxruntime's library libonnxruntime.so.1 cannot be opened"
    )


def test_a_library_of_another_version_is_not_used(tmp_path, fresh, monkeypatch):
    version = onnxruntime.__version__
    monkeypatch.setattr(onnxruntime, "__version__", "1.0.0")
    assert note(diamond(tmp_path)) == in_python(
        f"onnxruntime's library is version {version}, its Python module 1.0.0"
    )


def test_a_library_without_the_functions_is_not_used(tmp_path, fresh, monkeypatch):
    monkeypatch.setattr("profiling.backends._ort.native.library.VERSION", 4_000)
    assert note(diamond(tmp_path)) == in_python(
        f"onnxruntime {onnxruntime.__version__} lacks version 4000 of its C interface"
    )


def test_segments_that_the_library_cannot_open_run_in_python(tmp_path, monkeypatch):
    def refused(*given, **more):
        raise onnxruntime.capi.onnxruntime_pybind11_state.Fail("[ONNXRuntimeError] : 1 : FAIL : no")

    monkeypatch.setattr(Library, "owned", refused)
    assert note(diamond(tmp_path)) == in_python(
        "onnxruntime's library cannot open the segments: no"
    )


def test_errors_are_those_of_the_python_module():
    found = library()
    assert isinstance(found, Library)
    options = found.owned("SessionOptions", "CreateSessionOptions")
    with pytest.raises(Exception) as ours:
        found.owned(
            "Session", "CreateSessionFromArray", found.environment, b"no model", 8, options.address
        )
    with pytest.raises(Exception) as theirs:
        onnxruntime.InferenceSession(b"no model")
    assert type(ours.value) is type(theirs.value) and str(ours.value) == str(theirs.value)
