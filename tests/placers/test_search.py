"""Chains of moves, and the blocks they move."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.placers.base import quiet
from placement.search.chain import Chain, start_of
from placement.search.coarsening import blocks, levels, scopes, unit_edges
from placement.search.feasible import missing_bytes
from placement.search.improvement import BEHIND, gather, improve
from placement.simulator.evaluator import Evaluator
from placement.simulator.run_state import ACCEPTED, BEST, REFUSED
from placement.simulator.throughput import largest_turn_load_s
from tests.instances import random_devices, random_problem


def chain_of(problem, seed=0, **settings):
    start = start_of(problem, problem.placement_of(random_devices(problem, 1)))
    return Chain(problem, start, blocks(problem), seed=seed, **settings)


@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize("settings", [{"kick": 2}, {"hot": 0.1, "cold": 1e-4}])
def test_what_a_chain_reports_is_what_its_placement_is_worth(objective, settings):
    for seed in range(6):
        problem = random_problem(seed, num_ops=25, num_devices=3, with_groups=True)
        problem = replace(problem, objective=objective)
        chain = chain_of(problem, **settings)
        began_s = chain.best_s
        improve(problem, [chain], quiet, max_iterations=600)
        assert chain.best_s <= began_s
        own = Evaluator(problem, chain.best_order)
        value_s = own.value_s(chain.best)
        if objective == "latency":
            assert value_s == pytest.approx(chain.best_s)
        else:
            # A power mean: never below the largest load, and near it.
            value_s = largest_turn_load_s(own.flat, own.state)
            assert value_s == chain.value_s()
            assert value_s <= chain.best_s * (1 + 1e-9)
            assert chain.best_s <= value_s * 1.5
        assert problem.allowed[np.arange(problem.num_units), chain.best].all()


@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize("settings", [{"kick": 2}, {"hot": 0.1, "cold": 1e-4}])
def test_a_trace_is_what_happened_and_changes_nothing(objective, settings):
    """Every move simulated anew, whole, from what the moves before it have made of the start."""
    for seed in range(4):
        problem = random_problem(seed, num_ops=20, num_devices=3, with_groups=True)
        problem = replace(problem, objective=objective)
        plain, traced = (chain_of(problem, traced=n, **settings) for n in (0, 120))
        for chain in (plain, traced):
            improve(problem, [chain], quiet, max_iterations=900)
        assert traced.best.tolist() == plain.best.tolist()
        assert traced.best_s == plain.best_s
        assert plain.trace.num[0] == 0 and not plain.turns
        assert traced.trace.num[0] == 120 and len(traced.turns) == 15

        devices, order, turns = traced.start.devices.copy(), traced.start.order, [*traced.turns]
        now_s, came = traced.start_s, set()
        for i, (unit, block, d, back, _, outcome) in enumerate(traced.trace.moves.tolist()):
            while turns and turns[0].num_traced <= i:
                devices, order = turns[0].devices.copy(), turns[0].order
                now_s = turns.pop(0).value_s
            heat_s, limit_s, after_s, best_s = traced.trace.figures[i]
            assert back == -1
            units = np.array([unit]) if block < 0 else traced.blocks.members(block)
            tried = devices.copy()
            tried[units[problem.allowed[units, d]]] = d
            assert (tried != devices).any()
            own = Evaluator(problem, order)
            own.value_s(tried)
            took_s = own.energy_s()
            assert limit_s >= now_s or math.isclose(limit_s, now_s)
            assert heat_s > 0 or limit_s == now_s
            if outcome >= ACCEPTED:
                assert took_s == pytest.approx(after_s)
                assert after_s <= limit_s * (1 + 1e-12)
                assert outcome != BEST or after_s == best_s
                devices, now_s = tried, after_s
            else:
                assert after_s == now_s
                assert took_s > limit_s * (1 - 1e-9)
            came.add(outcome)
        assert REFUSED in came and came & {ACCEPTED, BEST}


def test_the_same_seed_and_moves_give_the_same_placement_however_many_chains_run():
    problem = random_problem(4, num_ops=40, num_devices=3)
    alone = chain_of(problem, seed=3, hot=0.05, cold=1e-4)
    improve(problem, [alone], quiet, max_iterations=800)
    beside = [chain_of(problem, seed=s, hot=0.05, cold=1e-4) for s in (1, 3, 5)]
    improve(problem, beside, quiet, max_iterations=800)
    assert beside[1].best.tolist() == alone.best.tolist()
    assert beside[1].best_s == alone.best_s


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_chains_that_search_together_are_as_good_as_the_best_of_them(objective):
    problem = random_problem(4, num_ops=40, num_devices=3)
    problem = replace(problem, objective=objective)
    ahead, behind = (chain_of(problem, seed=s, kick=3) for s in (1, 2))
    ahead.advance(2000, 0.0, 1.0)
    assert ahead.best_s < behind.best_s * (1 - BEHIND)
    gather([behind, ahead])
    assert behind.best_s == ahead.best_s
    assert behind.best.tolist() == ahead.best.tolist()


def test_a_search_ends_at_or_near_the_optimum_of_small_problems():
    """By brute force over all placements in the order of the chain's best."""
    gaps = []
    for seed in range(10):
        problem = random_problem(seed, num_ops=8, num_devices=2, execution="op")
        chain = chain_of(problem, hot=0.2, cold=1e-3)
        improve(problem, [chain], quiet, max_iterations=3000)
        own = Evaluator(problem, chain.best_order)
        everything = np.indices((2,) * problem.num_units).reshape(problem.num_units, -1).T
        gaps.append(chain.best_s / min(own.value_s(devices) for devices in everything) - 1)
    assert min(gaps) >= -1e-9
    assert max(gaps) < 0.1
    assert sorted(gaps)[7] < 1e-9


def test_no_time_ends_at_once_and_nonsense_is_refused():
    problem = random_problem(4, num_ops=10)
    chain = chain_of(problem)
    improve(problem, [chain], quiet, time_limit_s=0.0)
    assert math.isfinite(chain.best_s)
    with pytest.raises(ValueError, match="-1 moves"):
        improve(problem, [chain], quiet, max_iterations=-1)


def test_levels_nest_and_shrink():
    problem = random_problem(2, num_ops=200, num_devices=3)
    found = levels(problem)
    sizes = [problem.num_units, *(int(c.max()) + 1 for c in found)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 2
    for finer, coarser in itertools.pairwise(found):
        for cluster in range(int(finer.max()) + 1):
            assert len(set(coarser[finer == cluster].tolist())) == 1


def test_blocks_hold_each_group_once_and_scopes_all_their_units():
    problem = random_problem(2, num_ops=40, num_devices=2)
    found = blocks(problem)
    groups = [tuple(found.members(b).tolist()) for b in range(found.num)]
    assert len(set(groups)) == len(groups)
    assert all(1 < len(g) < problem.num_units for g in groups)
    for path, units in scopes(problem).items():
        wanted = sorted(
            {int(problem.unit_of_op[i]) for i, o in enumerate(problem.graph.ops) if o.scope == path}
        )
        assert units.tolist() == wanted
        assert tuple(wanted) in groups
    ptr, of_unit = found.of_units(problem.num_units)
    for unit in range(problem.num_units):
        assert of_unit[ptr[unit] : ptr[unit + 1]].tolist() == [
            b for b, g in enumerate(groups) if unit in g
        ]


def test_edges_between_units_carry_all_their_bytes():
    problem = random_problem(6, num_ops=30, num_devices=2, with_groups=True)
    source, target, num_bytes = unit_edges(problem)
    wanted = {}
    unit = {op.name: int(u) for op, u in zip(problem.graph.ops, problem.unit_of_op, strict=True)}
    for tensor in problem.kernels.tensors:
        for consumer in tensor.consumers if tensor.producer else ():
            pair = unit[tensor.producer], unit[consumer]
            if pair[0] != pair[1]:
                wanted[pair] = wanted.get(pair, 0) + tensor.num_bytes
    assert dict(
        zip(zip(source.tolist(), target.tolist(), strict=True), num_bytes, strict=True)
    ) == (wanted)


def crowded(seed):
    """Ops of unequal weights and times on a small accelerator that holds two thirds of them, beside
    their values."""
    problem = random_problem(seed, num_ops=40, num_devices=2, link_contention=False)
    total = sum(op.param_bytes for op in problem.kernels.ops)
    host, small = problem.machine.devices
    machine = replace(
        problem.machine, devices=(host, replace(small, memory_bytes=120 + 2 * total // 3))
    )
    times_s = problem.costs.compute_s * np.array([40.0, 1.0])
    return replace(problem, machine=machine, costs=replace(problem.costs, compute_s=times_s))


@pytest.mark.parametrize("settings", [{"kick": 2}, {"hot": 0.1, "cold": 1e-4}])
@pytest.mark.parametrize("seed", range(3))
def test_a_full_device_exchanges_and_never_keeps_what_does_not_fit(seed, settings):
    """From a full device single moves lead nowhere; what is kept fits with all of its values."""
    problem = crowded(seed)
    full = place(problem, "greedy_fill").placement
    start = start_of(problem, full)
    chain = Chain(problem, start, blocks(problem), seed=seed, traced=4000, **settings)
    chain.advance(4000, 0.0, 1.0)
    assert chain.best_s < 0.9 * chain.start_s
    assert (missing_bytes(problem, chain.placement) == 0).all()
    moves = chain.trace.moves[: chain.trace.num[0]]
    exchanged = moves[(moves[:, 3] >= 0) & (moves[:, 5] >= ACCEPTED)]
    assert len(exchanged) > 0
    if "kick" in settings:
        # Without temperature the base is the best, so all that is accepted fits.
        devices = start.devices.copy()
        for unit, block, dest, back_unit, back_block, came in moves.tolist():
            if came < ACCEPTED:
                continue
            group = [unit] if block < 0 else chain.blocks.members(block).tolist()
            going = [u for u in group if devices[u] != dest and problem.allowed[u, dest]]
            home, back = devices[going[0]], []
            if back_unit >= 0:
                back = [back_unit] if back_block < 0 else chain.blocks.members(back_block).tolist()
                back = [u for u in back if devices[u] == dest and problem.allowed[u, home]]
            devices[going], devices[back] = dest, home
            kept = problem.placement_of(devices, start.order.tolist())
            assert (missing_bytes(problem, kept) == 0).all()
