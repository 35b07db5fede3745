"""An accelerator of PyTorch's, where this computer has one: CUDA (ROCm too), XPU or Metal.

Computers that run `make test` have none as a rule: there these tests are skipped and named.
"""

import functools
from dataclasses import replace

import pytest

import placement as pl
from profiling import backends

NONE = "PyTorch finds no accelerator on this computer"


@functools.cache
def accelerator():
    """The first accelerator that PyTorch finds here, None without one."""
    return next((d for d in backends.get("torch").devices() if not d.on_host), None)


@pytest.fixture(scope="session")
def gpu():
    return accelerator() or pytest.skip(NONE)


@pytest.fixture(scope="session")
def shared_machine(gpu):
    """The whole CPU of this computer and its first accelerator, for a PyTorch model."""

    def of(model):
        machine = pl.machine_for(model, pl.machine("local:1"))
        host = next(d for d in machine.devices if d.on_host)
        there = next(d for d in machine.devices if d.own_name == gpu.name and d.runtime == "torch")
        names = {host.name, there.name}
        links = tuple(link for link in machine.links if {link.src, link.dst} <= names)
        return replace(machine, devices=(host, there), links=links)

    return of
