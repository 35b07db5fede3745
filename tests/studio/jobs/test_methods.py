"""Which methods the page calls quick: those that automatic placement tries first, by one judge."""

from dataclasses import replace

import pytest

from placement.placers import placer_class
from studio.jobs import methods
from tests.instances import random_problem


@pytest.mark.parametrize("execution", ["op", "segment"])
def test_quick_is_what_the_placer_calls_so_which_may_depend_on_memory(execution):
    problem = random_problem(1, num_ops=3_100, execution=execution)
    total = int(problem.kernels.arrays.resident_bytes.sum())

    def quick(memory_bytes):
        devices = [replace(d, memory_bytes=memory_bytes) for d in problem.machine.devices]
        machine = replace(problem.machine, devices=tuple(devices))
        posed = replace(problem, machine=machine)
        found = methods.quick(posed)
        of_placers = [n for n in methods.fitting(posed) if placer_class(n).is_quick(posed)]
        assert found == of_placers and "heft" in found
        return found

    assert "ceft_pbqp" not in quick(None)
    assert "ceft_pbqp" in quick(total // 2 + 1)
