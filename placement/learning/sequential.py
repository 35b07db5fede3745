"""Sequential policies: units decided one by one, by what is known once those before are placed.

After DOPPLER (ICLR 2026) and GiPH (MLSys 2023): units are taken by falling upward rank, and a small
network scores each device for each unit from finish times, transfers and loads. All it sees are
ratios, so that the same weights serve any number of units and devices, and other graphs. Beyond
these, every roll-out has an appeal of its own for each device, drawn at random, so that roll-outs
differ by whole ways of using the machine and not by single units alone. Roll-outs are compiled.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints, starts
from placement.core.objective import Execution, Objective
from placement.learning.environment import Bools, Environment, num_cores
from placement.schedule.order import by_priority
from placement.splits.model.instance import device_columns

NUM_FEATURES, NUM_HIDDEN = 26, 16
# Each hidden number from all features, the score from the hidden numbers and from the features.
NUM_WEIGHTS = NUM_HIDDEN * NUM_FEATURES + NUM_HIDDEN + NUM_FEATURES
# What chance adds to scores and to the appeal of devices in the boldest of several roll-outs.
MOST_NOISE, MOST_APPEAL = 1.0, 1.0


class Course(NamedTuple):
    """Units (U) in the order of their decisions, nets (N) of bytes between them, devices (D).

    `work_s` (U, D) holds compute with the calls that every placement pays, infinite where a device
    may not hold the unit; `call_s` (D,) is paid where inputs cross. `maker` (N,) is -1 for what
    starts on the host. Nets that a unit reads and makes, and readers of a net, are CSR rows.
    `rank_s` and `depth_s` (U,) are the longest paths to the end and from the start by means,
    `outlook_s` (U, D) the optimistic cost table of PEFT. `whole_s` is what a step takes at least,
    about; `alone_s` (D,) what each device takes by itself.
    """

    order: Ints
    work_s: Floats
    mean_s: Floats
    call_s: Floats
    allowed: Bools
    size_bytes: Floats
    limit_bytes: Floats
    move_s: Floats
    s_per_byte: Floats
    one_at_a_time: bool
    on_host: Bools
    host: int
    maker: Ints
    net_bytes: Floats
    net_s: Floats
    in_ptr: Ints
    in_nets: Ints
    out_ptr: Ints
    out_nets: Ints
    reader_ptr: Ints
    readers: Ints
    rank_s: Floats
    depth_s: Floats
    outlook_s: Floats
    alone_s: Floats
    whole_s: float
    by_load: bool


def course_of(environment: Environment) -> Course:
    """The course of an environment's units; clusters on a cycle are taken by their first kernel."""
    from placement.learning.paths_compiled import longest_paths, optimistic_costs

    problem = environment.problem
    costs, arrays, unit_of = problem.costs, problem.kernels.arrays, environment.unit_of_kernel
    num_units, num_devices = environment.num_units, environment.num_devices
    is_call = problem.execution is Execution.CALL
    columns = device_columns(problem).all[:num_devices] if is_call else range(num_devices)
    some = np.array(columns, dtype=np.int64)
    move_s = np.ascontiguousarray(costs.latency_s[np.ix_(some, some)], dtype=np.float64)
    s_per_byte = np.ascontiguousarray(costs.s_per_byte[np.ix_(some, some)], dtype=np.float64)
    on_host = np.array([problem.machine.devices[d].on_host for d in columns], dtype=np.bool_)
    work_s = np.where(environment.allowed, environment.unit_s, np.inf)
    call_s = np.zeros(num_devices) if is_call else costs.call_s[some].astype(np.float64)
    if problem.execution is Execution.OP:
        work_s = work_s + np.bincount(unit_of, minlength=num_units)[:, None] * call_s
        call_s = np.zeros(num_devices)
    may = np.isfinite(work_s)
    mean_s = np.where(may, work_s, 0.0).sum(axis=1) / np.maximum(1, may.sum(axis=1))
    nets = _nets(environment)
    pairs = max(1, num_devices * (num_devices - 1))
    net_s = move_s.sum() / pairs + nets.num_bytes * (s_per_byte.sum() / pairs)
    first = np.argsort(_first_kernels(unit_of, np.arange(unit_of.size), num_units), kind="stable")
    rank_s, _ = longest_paths(first, mean_s, net_s, *nets.arrays)
    by_rank = np.array(by_priority(problem.kernels, -rank_s[unit_of]), dtype=np.int64)
    order = np.argsort(_first_kernels(unit_of, by_rank, num_units), kind="stable")
    rank_s, depth_s = longest_paths(order, mean_s, net_s, *nets.arrays)
    least_s = np.where(may, work_s, np.inf).min(axis=1)
    whole_s = max(float(rank_s.max(initial=0.0)), float(least_s.sum()) / num_devices, 1e-30)
    return Course(
        order=order,
        work_s=work_s,
        mean_s=mean_s,
        call_s=call_s,
        allowed=may,
        size_bytes=environment.size_bytes.astype(np.float64),
        limit_bytes=environment.limit_bytes.astype(np.float64),
        move_s=move_s,
        s_per_byte=s_per_byte,
        one_at_a_time=bool(problem.link_contention),
        on_host=on_host,
        host=int(np.flatnonzero(on_host)[0]) if on_host.any() else -1,
        maker=nets.maker,
        net_bytes=nets.num_bytes,
        net_s=net_s,
        in_ptr=nets.in_ptr,
        in_nets=nets.in_nets,
        out_ptr=nets.out_ptr,
        out_nets=nets.out_nets,
        reader_ptr=nets.reader_ptr,
        readers=nets.readers,
        rank_s=rank_s,
        depth_s=depth_s,
        outlook_s=optimistic_costs(order, work_s, net_s, *nets.arrays),
        alone_s=work_s.sum(axis=0),
        whole_s=whole_s,
        by_load=problem.objective is Objective.THROUGHPUT,
    )


@dataclass(frozen=True)
class _Nets:
    """What units send to others; see Course."""

    maker: Ints
    num_bytes: Floats
    in_ptr: Ints
    in_nets: Ints
    out_ptr: Ints
    out_nets: Ints
    reader_ptr: Ints
    readers: Ints

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.out_ptr, self.out_nets, self.reader_ptr, self.readers


def _nets(environment: Environment) -> _Nets:
    """Tensors between units; those of one maker with the same readers are one net."""
    arrays, unit_of = environment.problem.kernels.arrays, environment.unit_of_kernel
    made_of: dict[tuple[int, ...], float] = {}
    for t, (maker, num_bytes) in enumerate(
        zip(arrays.producer.tolist(), arrays.tensor_bytes.tolist(), strict=True)
    ):
        unit = int(unit_of[maker]) if maker >= 0 else -1
        kernels = arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]]
        readers = sorted(set(unit_of[kernels].tolist()) - {unit})
        if readers:
            key = (unit, *readers)
            made_of[key] = made_of.get(key, 0.0) + num_bytes
    num_units, num = environment.num_units, len(made_of)
    maker = np.array([key[0] for key in made_of], dtype=np.int64)
    readers_of = [key[1:] for key in made_of]
    counts = np.array([len(row) for row in readers_of], dtype=np.int64)
    flat = np.array([unit for row in readers_of for unit in row], dtype=np.int64)
    net_of = np.repeat(np.arange(num), counts)
    made = np.flatnonzero(maker >= 0)
    return _Nets(
        maker=maker,
        num_bytes=np.array(list(made_of.values()), dtype=np.float64),
        in_ptr=starts(np.bincount(flat, minlength=num_units)),
        in_nets=net_of[np.argsort(flat, kind="stable")],
        out_ptr=starts(np.bincount(maker[made], minlength=num_units)),
        out_nets=made[np.argsort(maker[made], kind="stable")],
        reader_ptr=starts(counts),
        readers=flat,
    )


def _first_kernels(unit_of: Ints, kernels: Ints, num_units: int) -> Ints:
    """The first place of each unit (U,) in an order of kernels; those without kernels come last."""
    found = np.full(num_units, unit_of.size, dtype=np.int64)
    np.minimum.at(found, unit_of[kernels], np.arange(unit_of.size))
    return found


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Placements by a sequential policy.

    `noise` and `appeal` (R,) are what chance adds to scores and to the appeal of devices in each
    roll-out.
    """

    course: Course
    seeds: Ints
    noise: Floats
    appeal: Floats

    def devices(self, weights: Floats) -> Ints:
        """Devices of the units (R, U), with weights (W,) or of each roll-out (R, W)."""
        from placement.learning.sequential_compiled import roll_out_each

        num = self.seeds.size
        rows = np.ascontiguousarray(np.broadcast_to(weights, (num, NUM_WEIGHTS)))
        found = np.empty((num, self.course.order.size), dtype=np.int64)
        parts = [
            np.array_split(array, max(1, min(num, num_cores())))
            for array in (rows, self.seeds, self.noise, self.appeal, found)
        ]
        with ThreadPoolExecutor(len(parts[0])) as pool:
            list(pool.map(lambda *part: roll_out_each(self.course, *part), *parts))
        return found


def rollouts(course: Course, num: int, seed: int) -> Rollouts:
    """The first without chance, and bolder and bolder ones."""
    chance = np.random.default_rng(seed)
    seeds = chance.integers(1, 1 << 31, size=num)
    noise, appeal = chance.random((2, num))
    noise[0] = appeal[0] = 0.0
    return Rollouts(course, seeds, MOST_NOISE * noise, MOST_APPEAL * appeal)


def untrained(seed: int) -> Floats:
    """Weights (W,) to begin with: units go where they end first, and hidden numbers count for
    nothing yet."""
    weights = np.zeros(NUM_WEIGHTS)
    num_inner = NUM_HIDDEN * NUM_FEATURES
    weights[:num_inner] = 0.3 * np.random.default_rng(seed).standard_normal(num_inner)
    own = weights[num_inner + NUM_HIDDEN :]
    own[0], own[1], own[20] = -10.0, -5.0, 1.0
    return weights
