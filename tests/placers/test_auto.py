"""The automatic placer: never worse than what it tried, bounded, and honest about it."""

import re
import threading
import time
from dataclasses import replace

import pytest

from placement import place, simulate
from placement.advice import warming
from placement.core.violations import violations
from placement.placers import names, placer_class
from placement.placers.auto import _Found, _Watch, quick_placers
from placement.placers.base import Placer
from placement.schedule.segments import make_schedule
from placement.search.feasible import best_of, final_s
from placement.search.progress import gap_in_words, in_words
from profiling.measuring.lock import measuring
from tests.instances import random_devices, random_problem
from tests.thorough import either
from tests.workloads import diamond, problem_from_workload, random_workload

CASES = [("op", "latency"), ("segment", "latency"), ("op", "throughput"), ("segment", "throughput")]
# Two devices and three by turns, or each kind with four seeds.
BY_TURNS = [(number % 2, *case) for number, case in enumerate(CASES)]
EVERY = [(seed, *case) for seed in range(4) for case in CASES]


@pytest.mark.thorough
@pytest.mark.parametrize(("seed", "execution", "objective"), either(BY_TURNS, EVERY))
def test_never_worse_than_any_quick_placer(seed, execution, objective, monkeypatch):
    # Nobody looks at times here, for which each method would be run once more, ahead.
    monkeypatch.setattr(warming, "warm_up", lambda placer, problem: None)
    number = either(20, 40)
    problem = random_problem(seed, num_ops=number, num_devices=2 + seed % 2, execution=execution)
    problem = replace(problem, objective=objective)
    found = place(problem, "auto", settings={"max_iterations": 300})
    for name in quick_placers(problem):
        if objective in placer_class(name).objectives:
            assert found.value <= place(problem, name).value * (1 + 1e-9), name
    assert found.lower_bound <= found.value * (1 + 1e-9)
    assert found.violations == ()


@pytest.mark.thorough
@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_workloads_are_split_and_bounded(objective):
    for seed in range(either(1, 3)):
        problem = problem_from_workload(random_workload(seed), "random")
        problem = replace(problem, objective=objective)
        found = place(problem, "auto", settings={"max_iterations": 2000})
        for name in ("single", "greedy_fill", "linear_dp"):
            assert found.value <= place(problem, name).value * (1 + 1e-9), (seed, name)
        assert found.lower_bound <= found.value * (1 + 1e-9)
        assert found.violations == ()


def test_the_account_names_what_found_it_and_how_far_the_best_can_be():
    problem = random_problem(3, num_ops=60, num_devices=3)
    told = []
    found = place(problem, "auto", settings={"max_iterations": 500}, emit=told.append)
    assert any(name in found.account for name in quick_placers(problem))
    assert re.search(r"above the optimum|proven optimal", found.account)
    heard = [event for event in told if event.get("best") is not None]
    best = [event["best"] for event in heard]
    assert best == sorted(best, reverse=True)
    bounds = [event["bound"] for event in heard]
    assert bounds == sorted(bounds)
    assert all(bound <= value * (1 + 1e-9) for bound, value in zip(bounds, best, strict=True))
    assert heard[-1]["note"] == found.account


def test_the_account_tells_a_gain_that_three_digits_do_not_show():
    problem = random_problem(3, num_ops=6)
    placement = place(problem, "single").placement
    told = []
    watch = _Watch(lambda progress: told.append(progress.note) or True, 0.03)
    first = _Found("heft", placement, 0.03892, 0.0)
    watch.conclude(problem, first, replace(first, name="search", value_s=0.0389))
    assert "heft 38.9 ms, search saves 20 µs by moving 0 ops: 38.9 ms, at most" in told[0]


def test_a_report_that_says_stop_gets_the_best_so_far():
    problem = random_problem(3, num_ops=60, num_devices=3)
    heard = []
    placement = placer_class("auto")().place(problem, lambda p: bool(heard.append(p)) and False)
    assert final_s(problem, placement) == pytest.approx(heard[0].best_s)
    assert len(heard) <= 3


def test_a_time_limit_of_nothing_still_answers():
    problem = random_problem(5, num_ops=30, num_devices=2)
    found = place(problem, "auto", time_limit_s=0.0)
    assert found.violations == ()


def test_quick_placers_fit_the_problem_and_its_size():
    problem = random_problem(1, num_ops=10)
    quick = quick_placers(problem)
    assert quick[0] == "heft"
    assert set(quick) == {n for n in names() if placer_class(n).quick_up_to and fits(n, problem)}
    calls = quick_placers(problem_from_workload(diamond(), "diamond"))
    assert "heft" not in calls
    assert "greedy_fill" in calls or "linear_dp" in calls


def test_where_memory_may_run_short_a_method_that_makes_room_is_tried_on_larger_graphs():
    problem = random_problem(1, num_ops=3_100, execution="segment")
    total = int(problem.kernels.arrays.resident_bytes.sum())

    def quick(memory_bytes):
        devices = [replace(d, memory_bytes=memory_bytes) for d in problem.machine.devices]
        machine = replace(problem.machine, devices=tuple(devices))
        return quick_placers(replace(problem, machine=machine))

    assert "ceft_pbqp" not in quick(None)
    of_short = quick(total // 2 + 1)
    assert of_short.index("ceft_pbqp") < of_short.index("linear_dp")


def fits(name: str, problem) -> bool:
    """Whether it is for such problems; moves lead on from what is short to what is a pipeline."""
    kind: type[Placer] = placer_class(name)
    known = {problem.objective, "latency"} & {*kind.objectives}
    return problem.execution in kind.executions and bool(known)


def test_memory_is_kept_where_the_fastest_placement_breaks_it():
    problem = random_problem(2, num_ops=24, num_devices=3)
    single = place(problem, "single").placement
    peaks = simulate(problem, single).peak_bytes
    limit = int(max(peaks.values()) * 0.6)
    tight = tuple(replace(d, memory_bytes=limit) for d in problem.machine.devices)
    problem = replace(problem, machine=replace(problem.machine, devices=tight))
    placement = place(problem, "auto", settings={"max_iterations": 200}).placement
    assert violations(problem, make_schedule(problem, placement)) == ()


def test_impossible_memory_says_by_how_much():
    problem = random_problem(2, num_ops=24, num_devices=2)
    tiny = tuple(replace(d, memory_bytes=3) for d in problem.machine.devices)
    problem = replace(problem, machine=replace(problem.machine, devices=tiny))
    with pytest.raises(ValueError, match=r"need \d+ B, .* have \d+ B"):
        place(problem, "auto")


@pytest.mark.thorough
@pytest.mark.parametrize(("execution", "objective"), CASES)
def test_candidates_are_compared_by_what_is_predicted_in_the_end(execution, objective):
    for seed in range(either(8, 20)):
        problem = random_problem(seed, num_ops=20, num_devices=3, execution=execution)
        problem = replace(problem, objective=objective)
        placements = [problem.placement_of(random_devices(problem, i)) for i in range(4)]
        values = [simulate(problem, placement).value for placement in placements]
        for placement, value in zip(placements, values, strict=True):
            assert final_s(problem, placement) == pytest.approx(value)
        assert simulate(problem, best_of(problem, placements)).value == pytest.approx(min(values))


def test_numbers_in_words():
    assert in_words(0.0213) == "21.3 ms"
    assert in_words(0.9999) == "1 s"
    assert in_words(1234.0) == "1234 s"
    assert in_words(4.2e-6) == "4.2 µs"
    assert gap_in_words(1.06, 1.0) == "at most 6% above the optimum"
    assert gap_in_words(1.0, 1.0) == "proven optimal"


def test_it_waits_while_something_is_measured(tmp_path, monkeypatch):
    """What computes on all cores takes the lock that a measurement holds."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    held, told = threading.Event(), []

    def measure() -> None:
        with measuring("a measurement"):
            held.set()
            while not any(event["event"] == "waiting" for event in told):
                time.sleep(0.01)

    other = threading.Thread(target=measure)
    other.start()
    assert held.wait(10)
    problem = random_problem(1, num_ops=12)
    place(problem, "auto", settings={"max_iterations": 20}, emit=told.append)
    other.join(10)
    waited = [i for i, event in enumerate(told) if event["event"] == "waiting"]
    assert "a measurement" in told[waited[0]]["holder"]
    assert all(event.get("best") is None for event in told[: waited[0]])
    assert place(problem, "heft", emit=told.append).violations == ()
