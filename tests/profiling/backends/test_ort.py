"""The helpers of the backend for onnxruntime: names, sources, buffers, sessions, folders."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from placement.core.graph import Graph
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from placement.loaders import load
from profiling import backends
from profiling.backends._ort import sessions
from profiling.backends._ort.kernels import kernel_graph
from profiling.backends._ort.optimise import Folder
from profiling.backends._ort.sources import equal_values
from profiling.backends._ort.values import Value
from profiling.devices.cores import usable_cores
from profiling.devices.lanes import Lane
from tests.profiling.live import saved, two_lanes


def test_inner_values_of_one_kernel_have_names_of_their_own():
    nodes = [
        helper.make_node("Exp", ["x"], ["p"], name="exp"),
        helper.make_node("Sin", ["p"], ["q"], name="sin"),
        helper.make_node("Add", ["p", "q"], ["y"], name="add"),
    ]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    proto = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]))
    values = {name: Value("tensor(float)", (2,), 8) for name in "xpqy"}
    optimised = SimpleNamespace(model=proto, num_bytes=lambda tensor: 0)
    kernels = kernel_graph(Graph("g", (), ()), optimised, values, ((0, 1), (2,)), ((), ()))
    names = [t.name for t in kernels.tensors]
    assert len(names) == 4 == len(set(names))


def test_an_op_that_was_merged_with_an_equal_one_joins_its_kernel(tmp_path):
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], name="one"),
        helper.make_node("Exp", ["x"], ["b"], name="two"),
        helper.make_node("Sin", ["a"], ["y"], name="sin"),
        helper.make_node("Cos", ["b"], ["z"], name="cos"),
    ]
    model = saved(tmp_path, nodes, {"x": [4]}, {"y": [4], "z": [4]})
    compiled = backends.get("onnxruntime").compile(model, two_lanes())
    found = {
        op.kind: names for op, names in zip(compiled.kernels.ops, compiled.sources, strict=True)
    }
    assert found == {"Exp": ("one", "two"), "Sin": ("sin",), "Cos": ("cos",)}


def test_values_are_equal_by_op_inputs_in_order_and_attributes():
    nodes = [
        helper.make_node("Sub", ["x", "y"], ["a"]),
        helper.make_node("Sub", ["y", "x"], ["b"]),
        helper.make_node("Sub", ["x", "y"], ["c"]),
        helper.make_node("Softmax", ["a"], ["d"], axis=0),
        helper.make_node("Softmax", ["c"], ["e"], axis=0),
        helper.make_node("Softmax", ["c"], ["f"], axis=1),
    ]
    same = equal_values(nodes)
    assert same == {"a": "a", "b": "b", "c": "a", "d": "d", "e": "d", "f": "f"}


def test_dictionaries_are_made_of_values_that_nobody_wrote_over(tmp_path):
    """The buffer of `a` is free for `b` when the dictionary has been made."""
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("ZipMap", ["a"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]),
        helper.make_node("Sin", ["x"], ["b"]),
        helper.make_node("Cos", ["b"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in "xy")
    kind = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, ())
    )
    z = helper.make_value_info("z", helper.make_sequence_type_proto(kind))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph(nodes, "g", [x], [z, y])
    path = tmp_path / "zip.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    model = load(str(path))
    machine = Machine("one", two_lanes().devices[:1])
    compiled = backends.get("onnxruntime").compile(model, machine)
    given = np.array([[0.1, 0.2, 0.3]], dtype=np.float32)
    order = {kind: i for i, kind in enumerate(("Exp", "ZipMap", "Sin", "Cos"))}
    ops = sorted(compiled.kernels.ops, key=lambda op: order[op.kind])
    schedule = Schedule(tuple(Segment("cpu:0", (op.name,)) for op in ops))
    program = compiled.open(schedule, compiled.feeds(0, {"x": given}))
    for i in range(4):
        program.run(i)
    (found,) = program.outputs()["z"]
    assert list(found.values()) == pytest.approx(np.exp(given[0]).tolist(), rel=1e-5)


def test_a_session_that_cannot_be_made_says_so_once_and_prints_nothing(monkeypatch, capsys):
    import onnxruntime as ort

    def fail(self, *arguments):
        raise RuntimeError("no driver")

    monkeypatch.setattr(ort.InferenceSession, "_create_inference_session", fail)
    with pytest.raises(RuntimeError, match="no driver"):
        sessions.session(b"", sessions.options(1), [sessions.CPU])
    assert capsys.readouterr().out == ""


def test_folders_of_dead_processes_go_when_the_next_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen((sys.executable, "-c", ""))
    dead.wait()
    left = tmp_path / f"placement-ort-{dead.pid}-x"
    left.mkdir()
    kept = Folder()
    assert list(tmp_path.iterdir()) == [kept.path]


THREADS = Path("/proc/self/task")


@pytest.mark.skipif(not THREADS.is_dir(), reason="this system does not list a process's threads")
@pytest.mark.parametrize("is_whole", [True, False])
def test_threads_of_a_device_with_all_cores_have_one_each(tmp_path, is_whole, monkeypatch):
    """Of one with fewer, which is not told where, the system chooses."""
    monkeypatch.setattr(sessions, "_shared_pool", [])
    cores = os.sched_getaffinity(0)
    if is_whole and len(usable_cores()) < len(cores):
        pytest.skip("this process has a share of its cores only")
    number = len(cores) if is_whole else len(cores) + 1
    device = Device("cpu", runtime="onnxruntime", provider=sessions.CPU, cores=number)
    nodes = [helper.make_node("Exp", ["x"], ["y"])]
    model = saved(tmp_path, nodes, {"x": [4]}, {"y": [4]})
    compiled = backends.get("onnxruntime").compile(model, Machine("one", (device,)))
    before = set(THREADS.iterdir())
    program = compiled.unplaced(device, compiled.feeds(0, {}))
    others = [int(thread.name) for thread in set(THREADS.iterdir()) - before]
    threads = set(threading.enumerate())
    lanes = program.carried([Lane(device, (0,), ((),))], 1)
    try:
        lanes.step(60.0)
        (own,) = (thread.native_id for thread in set(threading.enumerate()) - threads)
        assert os.sched_getaffinity(own) == ({usable_cores()[0]} if is_whole else cores)
    finally:
        assert lanes.close()
    # The first one is left to the thread that runs the session.
    wanted = [{core} for core in usable_cores()[1:]] if is_whole else [cores] * len(others)
    # A thread pins itself once it runs, which on a busy computer is after the session was made.
    ends_s = time.monotonic() + 60
    while (masks := _masks(others)) != wanted and time.monotonic() < ends_s:
        time.sleep(0.01)
    program.close()
    assert len(others) == number - 1 and masks == wanted


def test_threads_of_lanes_stay_on_the_first_of_their_cores(monkeypatch):
    """Where two devices of a program have all cores, or all sessions one pool, anywhere."""
    monkeypatch.setattr(sessions, "_shared_pool", [])
    cpu = partial(Device, provider=sessions.CPU)
    pair = [cpu("a", cores=2, core_ids=(4, 5)), cpu("b", cores=1, core_ids=(7, 8))]
    whole = [cpu(name, cores=len(usable_cores()) + 1) for name in "ab"]
    cases = [(pair, [(4,), (7, 8)]), (whole, [(), ()]), ([*pair[:1], Device("gpu")], [(4,), ()])]
    for devices, wanted in cases:
        lanes = [Lane(device, (i,), ((),)) for i, device in enumerate(devices)]
        found = sessions.on_first_cores(lanes)
        assert [lane.device.core_ids for lane in found] == wanted
        assert [(lane.device.name, lane.segments) for lane in found] == [
            (lane.device.name, lane.segments) for lane in lanes
        ]
    monkeypatch.setattr(sessions, "_shared_pool", [2])
    lanes = [Lane(pair[0], (0,), ((),))]
    assert sessions.on_first_cores(lanes) == lanes


def _masks(threads):
    return sorted(map(os.sched_getaffinity, threads), key=min)
