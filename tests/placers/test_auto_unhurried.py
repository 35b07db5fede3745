"""Without a time limit the answer of `auto` does not depend on which thread is quicker."""

import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from placement.placers import placer_class
from placement.splits.annealing import search
from tests.placers.test_placers import instance


@pytest.mark.parametrize("late", [0, 1])
def test_a_chain_that_starts_late_is_waited_for(late, monkeypatch):
    """Equal devices give two best placements, and each chain finds another of them."""
    problem = instance(7, "call", "latency", num_ops=12, num_devices=3, with_groups=True)
    auto = placer_class("auto")
    found, begun = auto().place(problem), []

    class Late(ThreadPoolExecutor):
        def submit(self, work, *given):
            number = len(begun)
            begun.append(work)

            def begin():
                time.sleep(0.3 if number == late else 0.0)
                return work(*given)

            return super().submit(begin)

    monkeypatch.setattr(search, "ThreadPoolExecutor", Late)
    monkeypatch.setattr(search, "wait", lambda left, **how: wait(left, **{**how, "timeout": 1e-3}))
    assert auto().place(problem) == found and len(begun) == 2
