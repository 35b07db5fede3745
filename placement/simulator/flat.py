"""A problem as one tuple of arrays: what compiled code reads."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints, starts
from placement.core.problem import Execution, Problem
from placement.simulator.lowering import host_of


class Flat(NamedTuple):
    """Kernels (K), tensors (T), devices (D), units (U) of a problem; CSR pairs as in GraphArrays.

    `move_s` (D, D) and `s_per_byte` (D, D): a tensor of b bytes takes move_s + b * s_per_byte, of
    which the shares `overhead` (2, D, D) hold up sender and receiver (`has_overhead`: anywhere) and
    way_s + b * way_s_per_byte are left.
    `channel` (D * D,) is the pair of devices whose queue a tensor of each pair waits in, and
    `shares_channels` whether that is another pair anywhere.
    `host` is -1 where no device computes in host memory. `each_pays`: every kernel is a call of its
    own (execution "op"). `one_at_a_time`: links are first-in first-out channels. `wide` devices
    run any number of kernels at once. `engine` (D,) is the device that each computes on,
    `values_in` and `weights_in` (D,) are those whose memories it fills. `pipelined`: each stage
    works on another request, with state of its own.
    """

    compute_s: Floats
    call_s: Floats
    move_s: Floats
    s_per_byte: Floats
    overhead: Floats
    has_overhead: bool
    way_s: Floats
    way_s_per_byte: Floats
    channel: Ints
    shares_channels: bool
    contention: float
    in_ptr: Ints
    in_tensors: Ints
    out_ptr: Ints
    out_tensors: Ints
    producer: Ints
    consumer_ptr: Ints
    consumers: Ints
    tensor_bytes: Floats
    is_output: NDArray[np.bool_]
    on_host: NDArray[np.bool_]
    host: int
    each_pays: bool
    one_at_a_time: bool
    wide: NDArray[np.bool_]
    unit_of_kernel: Ints
    kernel_ptr: Ints
    kernels_of_unit: Ints
    allowed: NDArray[np.bool_]
    param_bytes: Floats
    state_bytes: Floats
    limit_bytes: Floats
    live_memory: bool
    engine: Ints
    values_in: Ints
    weights_in: Ints
    pipelined: bool


_known: WeakKeyDictionary[Problem, Flat] = WeakKeyDictionary()


def flatten(problem: Problem) -> Flat:
    """The arrays of a problem, made once; devices without a limit have an infinite one."""
    if problem not in _known:
        _known[problem] = _flattened(problem)
    return _known[problem]


def _flattened(problem: Problem) -> Flat:
    """The arrays themselves.

    All are copies that may be written: compiled code would else be compiled once more for those
    that may not, such as the condensed problem's and the problem's own.
    """
    arrays, costs, machine = problem.kernels.arrays, problem.costs, problem.machine
    unit_of_kernel = problem.unit_of_kernel
    flat = Flat(
        compute_s=costs.compute_s,
        call_s=costs.call_s,
        move_s=costs.latency_s,
        s_per_byte=costs.s_per_byte,
        overhead=costs.overhead,
        has_overhead=bool(costs.overhead.any()),
        way_s=(1.0 - costs.overhead.sum(axis=0)) * costs.latency_s,
        way_s_per_byte=(1.0 - costs.overhead.sum(axis=0)) * costs.s_per_byte,
        channel=machine.channels,
        shares_channels=problem.link_contention and machine.shares_channels,
        contention=float(costs.contention),
        in_ptr=arrays.in_ptr,
        in_tensors=arrays.in_tensors,
        out_ptr=arrays.out_ptr,
        out_tensors=arrays.out_tensors,
        producer=arrays.producer,
        consumer_ptr=arrays.consumer_ptr,
        consumers=arrays.consumers,
        tensor_bytes=arrays.tensor_bytes,
        is_output=arrays.is_output,
        on_host=np.array([d.on_host for d in machine.devices], dtype=np.bool_),
        host=host_of(problem),
        each_pays=problem.execution is Execution.OP,
        one_at_a_time=problem.link_contention,
        wide=np.zeros(len(machine.devices), dtype=np.bool_),
        unit_of_kernel=unit_of_kernel,
        kernel_ptr=starts(np.bincount(unit_of_kernel, minlength=problem.num_units)),
        kernels_of_unit=np.argsort(unit_of_kernel, kind="stable").astype(np.int64),
        allowed=problem.allowed,
        param_bytes=arrays.param_bytes,
        state_bytes=arrays.state_bytes,
        limit_bytes=machine.limit_bytes,
        live_memory=problem.memory_model == "live",
        engine=machine.places.engine,
        values_in=machine.places.values,
        weights_in=machine.places.weights,
        pipelined=problem.is_pipelined,
    )
    return Flat._make(np.array(p) if isinstance(p, np.ndarray) else p for p in tuple(flat))
