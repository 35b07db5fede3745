"""What a refusal for memory proposes: ways out that are ways out, and no others."""

import functools
import json
from dataclasses import replace

import pytest

import placement as pl
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine
from placement.core.model import Model
from placement.costs.offload import with_offload
from placement.loaders import load
from placement.search.feasible import remedy, require_room_for_weights
from tests.instances import random_problem
from tests.loaders.test_huggingface import TINY
from tests.thorough import either

STORED = ("int8", "int4")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Opens a tiny Llama with some settings; the same one is captured once."""
    path = tmp_path_factory.mktemp("tiny") / "config.json"
    path.write_text(json.dumps({**TINY, "num_hidden_layers": 1, "dtype": "bfloat16"}))
    return functools.cache(lambda **dims: load(str(path), {"length": 8, **dims}))


def two_devices(host_bytes, accelerator_bytes):
    devices = (
        Device("cpu:0", memory_bytes=host_bytes, flops_per_s=1e12, memory_bytes_per_s=1e10),
        Device(
            "gpu:0",
            "cuda",
            memory_bytes=accelerator_bytes,
            flops_per_s=1e13,
            memory_bytes_per_s=1e11,
        ),
    )
    links = (Link("cpu:0", "gpu:0", 1e-6, 1e10), Link("gpu:0", "cpu:0", 1e-6, 1e10))
    return Machine("two", devices, links)


def is_placed(problem):
    try:
        return not pl.place(problem, "heft").violations
    except ValueError:
        return False


@pytest.mark.thorough
def test_types_of_weights_are_named_that_fit_once_the_model_is_opened_with_them(opened):
    model = opened()
    for share in either((0.2, 0.7), (0.2, 0.4, 0.7, 0.95)):
        half = int(model.graph.param_bytes * share / 2) + 2_000
        machine = two_devices(half, half)
        with pytest.raises(ValueError, match=r"[GMK]iB") as error:
            pl.place(pl.make_problem(model, machine), "heft")
        for word in STORED:
            fits = is_placed(pl.make_problem(opened(dtype=word), machine))
            assert (word in str(error.value)) == fits, (share, word, str(error.value))


def test_narrower_weights_are_those_of_the_model_opened_so(opened):
    told = {word: opened(dtype=word).graph for word in ("float32", "bfloat16", "int8", "int4")}
    for i, graph in enumerate(told.values()):
        assert [narrower.dtype for narrower in graph.narrower] == list(told)[i + 1 :]
        for narrower in graph.narrower:
            expected = tuple(op.param_bytes for op in told[narrower.dtype].ops)
            assert narrower.param_bytes == expected, narrower.dtype
    assert opened(task="training").graph.narrower == ()


def with_memory(problem, limits):
    pairs = zip(problem.machine.devices, limits, strict=True)
    devices = tuple(replace(device, memory_bytes=limit) for device, limit in pairs)
    return replace(problem, machine=replace(problem.machine, devices=devices))


def test_pins_are_to_go_only_where_that_helps():
    problem = replace(random_problem(3), memory_model="sum")
    weights = problem.kernels.param_bytes
    second = problem.machine.devices[1].name
    pinned = tuple((op.name, second) for op in problem.graph.ops)
    roomy = replace(with_memory(problem, (weights, 10)), pins=pinned)
    assert "remove pins" in remedy(roomy)
    assert "remove pins" not in remedy(replace(with_memory(problem, (10, 10)), pins=pinned))


def chain(batch):
    ops = (Op("a", "Layer", param_bytes=100), Op("b", "Layer", param_bytes=100))
    tensors = (
        Tensor("x", None, ("a",), 400, (batch, 100)),
        Tensor("h", "a", ("b",), 400, (batch, 100)),
    )
    graph = Graph("chain", ops, tensors)
    return pl.make_problem(Model(graph), two_devices(None, 250))


def test_a_smaller_batch_is_proposed_where_there_is_one_and_values_are_what_lacks():
    assert "smaller batch" in remedy(chain(4))
    assert "smaller batch" not in remedy(chain(1))
    assert "smaller batch" not in remedy(with_memory(chain(4), (50, 50)))


def test_streaming_is_proposed_where_it_makes_room():
    pinned = (("a", "gpu:0"),)
    problem = with_memory(chain(1), (None, 50))
    assert "--offload" in remedy(problem)
    assert "--offload" not in remedy(with_offload(problem))
    assert "--offload" not in remedy(with_memory(problem, (150, 20)))
    assert "--offload" not in remedy(replace(problem, pins=pinned))


def test_a_device_more_is_no_way_out_for_an_op_larger_than_every_device():
    problem = with_memory(chain(1), (90, 150))
    assert "add a device" in remedy(problem)
    with pytest.raises(ValueError, match="give the devices more memory or add a device"):
        require_room_for_weights(with_memory(problem, (100, 99)))
    with pytest.raises(ValueError, match=r"'a'.*100 B.*99 B; give the devices more memory\.$"):
        require_room_for_weights(replace(with_memory(problem, (150, 99)), pins=(("a", "gpu:0"),)))
