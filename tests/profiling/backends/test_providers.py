"""Which execution providers become devices, on made-up builds of onnxruntime and GPU drivers."""

import sys
from types import SimpleNamespace

import pytest

from profiling.backends._ort import providers
from profiling.backends._ort.providers import short_name, works
from profiling.backends.base import NOMINAL


def build(listed, available):
    """A stand-in for the onnxruntime module: (provider, kind, label) listed, names available."""
    devices = [
        SimpleNamespace(
            ep_name=provider,
            device=SimpleNamespace(
                type=SimpleNamespace(name=kind), metadata={"Description": label} if label else {}
            ),
        )
        for provider, kind, label in listed
    ]
    return SimpleNamespace(
        get_ep_devices=lambda: devices, get_available_providers=lambda: available
    )


class NVMLError(Exception):
    pass


def driver(*, broken=()):
    """A stand-in for the pynvml module with two GPUs of 80 GiB; `broken` calls raise."""

    def answers(name, value):
        def call(*arguments):
            if name in broken:
                raise NVMLError
            return value(*arguments) if callable(value) else value

        return call

    calls = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetHandleByIndex": lambda number: number,
        "nvmlDeviceGetName": lambda number: f"GPU model {number}",
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 << 30),
        "nvmlDeviceGetMaxClockInfo": lambda handle, domain: {"sm": 2000, "mem": 3000}[domain],
        "nvmlDeviceGetNumGpuCores": 10_000,
        "nvmlDeviceGetMemoryBusWidth": 5120,
    }
    return SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM="sm",
        NVML_CLOCK_MEM="mem",
        **{name: answers(name, value) for name, value in calls.items()},
    )


@pytest.fixture
def install(monkeypatch):
    """Put stand-ins in the place of modules; every provider but those named broken works."""

    def put(onnxruntime, pynvml=None, broken=()):
        monkeypatch.setitem(sys.modules, "onnxruntime", onnxruntime)
        monkeypatch.setitem(sys.modules, "pynvml", pynvml)
        monkeypatch.setattr(providers, "works", lambda provider: provider not in broken)

    return put


def test_a_build_with_only_a_cpu_has_no_other_devices(install):
    install(
        build(
            [("CPUExecutionProvider", "CPU", "")],
            ["AzureExecutionProvider", "CPUExecutionProvider"],
        )
    )
    assert providers.providers() == ()


def test_providers_are_numbered_and_described(install):
    cuda = ("CUDAExecutionProvider", "GPU", "")
    install(
        build(
            [
                ("CPUExecutionProvider", "CPU", ""),
                cuda,
                cuda,
                ("OpenVINOExecutionProvider", "NPU", "Maker's NPU"),
            ],
            ["CUDAExecutionProvider", "WebGpuExecutionProvider", "CPUExecutionProvider"],
        ),
        driver(),
    )
    found = providers.providers()
    assert [(d.name, d.kind, d.label) for d in found] == [
        ("cuda:0", "gpu", "GPU model 0"),
        ("cuda:1", "gpu", "GPU model 1"),
        ("openvino:0", "npu", "Maker's NPU"),
        ("webgpu:0", "gpu", "WebGpuExecutionProvider"),
    ]
    assert found[0].memory_bytes == 80 << 30
    assert found[0].flops_per_s == 2 * 2000e6 * 10_000
    assert found[0].memory_bytes_per_s == 2 * 3000e6 * 5120 / 8
    assert found[3].memory_bytes is None
    assert (found[3].flops_per_s, found[3].memory_bytes_per_s) == NOMINAL["gpu"]


def test_a_provider_that_does_not_work_is_no_device(install):
    names = ["CUDAExecutionProvider", "WebGpuExecutionProvider", "CPUExecutionProvider"]
    install(build([], names), broken=("CUDAExecutionProvider",))
    assert [d.name for d in providers.providers()] == ["webgpu:0"]


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetHandleByIndex"])
def test_without_its_driver_a_gpu_has_nominal_figures(install, call):
    install(build([], ["CUDAExecutionProvider"]), driver(broken=(call,)))
    (device,) = providers.providers()
    assert (device.memory_bytes, device.label) == (None, "CUDAExecutionProvider")


def test_a_driver_that_tells_only_some_is_believed_that_far(install):
    silent = driver(broken=("nvmlDeviceGetNumGpuCores", "nvmlDeviceGetMemoryBusWidth"))
    install(build([], ["CUDAExecutionProvider"]), silent)
    (device,) = providers.providers()
    assert device.memory_bytes == 80 << 30
    assert (device.flops_per_s, device.memory_bytes_per_s) == NOMINAL["gpu"]


def test_no_onnxruntime_no_devices(install):
    install(None)
    assert providers.providers() == ()


def test_the_probe_tells_what_works_from_what_does_not():
    assert works("CPUExecutionProvider")
    assert not works("NoSuchExecutionProvider")


def test_names_of_providers():
    assert short_name("CUDAExecutionProvider") == "cuda"
    assert short_name("WebGpuExecutionProvider") == "webgpu"
    assert short_name("DmlExecutionProvider") == "directml"
