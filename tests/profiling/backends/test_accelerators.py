"""Accelerators of PyTorch: what is found, how it is named, and what is said where there is none."""

import sys

import pytest

from placement.__main__ import main
from placement.core.machine import Device, Machine, machine_to_text
from profiling.backends import torch as backend
from profiling.backends._torch import accelerators
from profiling.devices.local import for_format, local_machine, missing_devices, nominal_links
from profiling.measuring import links
from tests.profiling.backends.pretend import Pretend, put_in_place, work_briefly

# As much of the library as the probe asks; the second of its GPUs does not work.
FAKE_TORCH = """
class About:
    name, total_memory, major, minor = "Some GPU", 8 << 30, 8, 6
    multi_processor_count, clock_rate = 10, 1_000_000
    memory_clock_rate, memory_bus_width = 5_000_000, 256
class Number:
    def add(self, other): return self
    def cpu(self): return self
def ones(number, device):
    if device == "cuda:1":
        raise RuntimeError("out of order")
    return Number()
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    get_device_properties = staticmethod(lambda number: About)
class xpu:
    is_available = staticmethod(lambda: False)
class backends:
    class mps:
        is_available = staticmethod(lambda: True)
class mps:
    recommended_max_memory = staticmethod(lambda: 4 << 30)
"""
GPU = Device(
    "cuda:0",
    "gpu",
    "torch",
    "cuda",
    8 << 30,
    flops_per_s=1e12,
    memory_bytes_per_s=1e11,
    label="Some GPU",
)


def test_what_the_library_says_becomes_devices(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text(FAKE_TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(accelerators, "_possible", lambda: True)
    monkeypatch.setattr(accelerators, "_probed", accelerators._probed.__wrapped__)
    gpu, metal = accelerators.accelerators()
    assert (gpu.name, gpu.kind, gpu.runtime, gpu.provider) == ("cuda:0", "gpu", "torch", "cuda")
    assert (gpu.label, gpu.memory_bytes) == ("Some GPU", 8 << 30)
    assert gpu.flops_per_s == 2 * 10 * 128 * 1e9
    assert gpu.memory_bytes_per_s == 2 * 5e9 * 32
    assert (metal.name, metal.provider, metal.memory_bytes) == ("mps:0", "mps", 4 << 30)
    assert metal.flops_per_s > 0 and not metal.on_host


def test_a_library_that_fails_has_none(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert accelerators._probed.__wrapped__() == ()


@pytest.mark.parametrize(
    ("version", "platform", "driver", "possible"),
    [
        (None, "linux", True, False),
        ("2.13.0+cpu", "linux", True, False),
        ("2.13.0", "linux", False, False),
        ("2.13.0", "linux", True, True),
        ("2.13.0", "darwin", False, True),
    ],
)
def test_the_library_is_asked_only_where_it_may_have_any(
    version, platform, driver, possible, monkeypatch
):
    monkeypatch.setattr(accelerators, "torch_version", lambda: version)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(accelerators.Path, "glob", lambda self, name: [self] if driver else [])
    assert accelerators._possible() is possible


def test_this_computer_for_pytorch_has_lanes_and_accelerators(monkeypatch):
    monkeypatch.setattr(backend, "accelerators", lambda: (GPU,))
    machine = for_format(local_machine(1), "torch")
    assert [d.name for d in machine.devices if d.runtime == "torch"] == ["cpu:0", "cuda:0"]
    assert {(k.src, k.dst) for k in machine.links} == {("cpu:0", "cuda:0"), ("cuda:0", "cpu:0")}
    assert missing_devices(machine) == ()


def test_a_device_of_a_file_keeps_the_memory_that_the_file_states(monkeypatch):
    monkeypatch.setattr(backend, "accelerators", lambda: (GPU,))
    lane = local_machine(1).devices[0]
    capped = Device("cuda:0", "gpu", "onnxruntime", "CUDAExecutionProvider", 1 << 30)
    machine = Machine("mine", (lane, capped), nominal_links((lane, capped)))
    (found,) = [d for d in for_format(machine, "torch").devices if not d.on_host]
    assert (found.runtime, found.provider, found.memory_bytes) == ("torch", "cuda", 1 << 30)


@pytest.mark.parametrize(
    ("cpu_build", "reason"),
    [(True, "built for the CPU alone"), (False, "PyTorch finds no such device")],
)
def test_why_an_accelerator_is_missing(cpu_build, reason, monkeypatch):
    monkeypatch.setattr(backend, "accelerators", lambda: ())
    monkeypatch.setattr(accelerators, "_is_cpu_build", lambda: cpu_build)
    ((name, why),) = missing_devices(Machine("m", (GPU,)))
    assert name == "cuda:0" and reason in why


def test_the_command_line_says_that_a_gpu_is_absent(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(backend, "accelerators", lambda: ())
    lane = for_format(local_machine(1), "torch").devices[0]
    machine = Machine("mine", (lane, GPU), nominal_links((lane, GPU)))
    path = tmp_path / "mine.json"
    path.write_text(machine_to_text(machine))
    sizes = ("batch=1", "length=1", "depth=2", "width=16")
    model = ["nmt", *(word for size in sizes for word in ("--dim", size)), "--machine", str(path)]
    with pytest.raises(SystemExit, match="2"):
        main(["run", *model, "--placer", "single", "--analytic"])
    said = capsys.readouterr().err
    assert "cuda:0" in said and "not on this computer" in said and "Traceback" not in said


def test_links_are_timed_by_single_copies(monkeypatch):
    work_briefly(monkeypatch)
    place = Pretend(copy_s=0.001)
    put_in_place(monkeypatch, lambda name: place)
    monkeypatch.setattr(links, "missing_devices", lambda machine: ())
    monkeypatch.setattr(links, "SIZES", (1024, 1 << 20))
    lane = for_format(local_machine(1), "torch").devices[0]
    away = Device("pretend:0", "gpu", "torch", "pretend")
    both = (lane, away)
    measured = links.measure_links(Machine("m", both, nominal_links(both)))
    assert measured.note == links.MEASURED_NOTE and place.taken > 15 < place.given
    for link in measured.links:
        assert 0.001 <= link.latency_s < 0.5 and link.bytes_per_s > 1e6
