"""ONNX Runtime sessions: options for lanes, and one thread pool for a process that has one device.

Worker threads of a session spin for tens of milliseconds after a run and take the core of another
lane, or of the placement whose turn is next. Those of a program of several sessions are told to
stop when their run ends, for the next segment's need the cores at once; those of a session that is
alone in its program spin for a moment, or a step that follows at once would find them on their way
to sleep or not, by chance and for many steps in a row (75 or 82 us for one of 63). A device of
several cores pays at every border between segments, for its threads wake anew (1.24 times the time
of one session on Inception v2, two threads, 50 segments); a process that `dedicate`s itself to a
machine with one such device lets all sessions share one pool that keeps spinning (1.05).
"""

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from placement.core.machine import Device, Machine
from profiling.devices.cores import can_pin, usable_cores
from profiling.devices.lanes import Lane

CPU = "CPUExecutionProvider"
_STOP_SPINNING = "session.force_spinning_stop", "1"
_SPIN_A_MOMENT = "session.intra_op.spin_duration_us", "100"
# Those that read CUDA's libraries, and number their devices by an option.
_CUDA = ("CUDAExecutionProvider", "TensorrtExecutionProvider")
_NUMBERED = (*_CUDA, "ROCMExecutionProvider", "MIGraphXExecutionProvider", "DmlExecutionProvider")
_shared_pool: list[int] = []


def dedicate(machine: Machine) -> None:
    """Let all sessions of this process share one thread pool, where the machine has one CPU device.

    To be called before the process makes its first session; without effect for machines of lanes.
    Raises RuntimeError if the process already has a pool of another size.
    """
    import onnxruntime as ort

    lanes = [d for d in machine.devices if d.runtime == "onnxruntime" and d.provider == CPU]
    if len(lanes) != 1 or lanes[0].cores < 2 or _shared_pool == [lanes[0].cores]:
        return
    if _shared_pool:
        raise RuntimeError(
            f"This process has a pool of {_shared_pool[0]} threads, but device"
            f" {lanes[0].name!r} has {lanes[0].cores} cores; use a new process."
        )
    ort.set_global_thread_pool_sizes(lanes[0].cores, 1)
    _shared_pool.append(lanes[0].cores)


def has_shared_pool() -> bool:
    """Whether this process has been told to `dedicate` itself, and sessions share its threads."""
    return bool(_shared_pool)


def options(threads: int, level: str = "ORT_DISABLE_ALL", *, alone: bool = True) -> Any:
    """Session options for `threads` threads at an optimisation level named as onnxruntime does."""
    import onnxruntime as ort

    made = ort.SessionOptions()
    made.log_severity_level = 4
    made.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    if _shared_pool:
        made.use_per_session_threads = False
        return made
    made.intra_op_num_threads = threads
    made.inter_op_num_threads = 1
    made.add_session_config_entry(*spinning(alone))
    return made


def for_device(device: Device, level: str, alone: bool) -> Any:
    """Session options for a part on one device; a lane of several cores pins its threads.

    What is not `alone` shares an arena with its neighbours.
    """
    threads = max(device.cores, 1) if device.provider == CPU else 1
    made = options(threads, level, alone=alone)
    if device.provider == CPU:
        if not alone:
            _share_memory()
        for key, value in lane_entries(device, alone).items():
            made.add_session_config_entry(key, value)
    made.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return made


def spinning(alone: bool) -> tuple[str, str]:
    """For how long threads of a session, `alone` in its program or not, try for work, by
    onnxruntime's own words."""
    return _SPIN_A_MOMENT if alone else _STOP_SPINNING


def lane_entries(device: Device, alone: bool) -> dict[str, str]:
    """What the options of a session on a lane of the CPU say, by onnxruntime's own words.

    Threads of a device with all cores have one each, too, but for those of a shared pool: else one
    that has slept may wake on the core of the one that wakes it, and a step of a small network
    takes about twice as long.
    """
    entries = {}
    if not alone:
        entries["session.use_env_allocators"] = "1"
    pinned = (device.core_ids or _cores_of_all(device))[1:]
    if pinned and not _shared_pool:
        affinity = ";".join(str(core + 1) for core in pinned)
        entries["session.intra_op_thread_affinities"] = affinity
    return entries


def on_first_cores(lanes: Sequence[Lane]) -> Sequence[Lane]:
    """The lanes, those on several cores of the CPU with the first of them only, for their own
    threads: sessions have threads on the others, and two on one core take twice as long.

    Where several lanes have all cores there are, each is left as it is.
    """
    if _shared_pool:
        return lanes
    is_one = sum(lane.device.provider == CPU for lane in lanes) == 1
    found = []
    for lane in lanes:
        device = lane.device
        cores = device.core_ids or (_cores_of_all(device) if is_one else ())
        if device.provider == CPU and device.cores > 1:
            lane = replace(lane, device=replace(device, core_ids=cores[:1]))
        found.append(lane)
    return found


def _cores_of_all(device: Device) -> tuple[int, ...]:
    """The cores of a device that has all of this computer; nothing for others.

    Where a container has a share of more cores than it may keep busy, the system chooses.
    """
    if not can_pin() or device.cores != len(os.sched_getaffinity(0)):
        return ()
    cores = usable_cores()
    return cores if device.cores == len(cores) else ()


@functools.cache
def _share_memory() -> None:
    """One arena of CPU memory for all sessions that ask for it: what one frees the next may use."""
    import onnxruntime as ort

    where = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    ort.create_and_register_allocator(where, None)


def session(model: bytes | str, made_options: Any, providers: list[Any]) -> Any:
    """A session on a serialised model or a path; nothing falls back to another provider unseen."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    made = ort.InferenceSession(model, made_options, providers=providers, enable_fallback=0)
    if getattr(made, "_model_bytes", None):
        # Kept for falling back to another provider: a second copy of the weights.
        made._model_bytes = b""
    return made


def providers(device: Device, made_options: Any) -> list[Any]:
    """The device's provider and the CPU behind it; a plug-in provider joins the options."""
    import onnxruntime as ort

    if device.provider == CPU:
        return [CPU]
    if device.provider in ort.get_available_providers():
        load_cuda(device.provider)
        return [(device.provider, settings(device)), CPU]
    found = [e for e in ort.get_ep_devices() if e.ep_name == device.provider]
    if not found:
        raise ValueError(
            f"Device {device.name!r} needs {device.provider}, which the installed onnxruntime does"
            " not offer; choose another machine or install the build that has it."
        )
    made_options.add_provider_for_devices(found[:1], {})
    return []


def settings(device: Device) -> dict[str, str]:
    """What a provider is told: which of its devices, and to keep to full float32.

    Products of shortened numbers are off by a thousandth, and could not be told from wrong ones.
    """
    number = device.own_name.rpartition(":")[2]
    told = {"device_id": number} if device.provider in _NUMBERED and number.isdigit() else {}
    return told | ({"use_tf32": "0"} if device.provider == _CUDA[0] else {})


@functools.cache
def load_cuda(provider: str) -> None:
    """Load CUDA's libraries from the packages that came with the provider, where it needs them.

    They lie in folders that no loader searches by itself. What is missing is told among errors, and
    again, in better words, when a session is made.
    """
    import onnxruntime as ort

    if provider in _CUDA and hasattr(ort, "preload_dlls"):
        with contextlib.redirect_stdout(sys.stderr):
            ort.preload_dlls()


def bound_run(made: Any, binding: Any, run_options: Any) -> Callable[[], None]:
    """Run a session on its binding.

    The wrapper in Python looks for captured graphs before each run, which takes 30 us where the run
    itself needs 4; what it wraps is called directly where it is to be found.
    """
    inner, bound = getattr(made, "_sess", None), getattr(binding, "_iobinding", None)
    if inner is None or bound is None:
        return partial(made.run_with_iobinding, binding, run_options)
    return partial(inner.run_with_iobinding, bound, run_options)
