"""Sequential policies: units decided one by one, by what is known once those before are placed.

After DOPPLER (ICLR 2026) and GiPH (MLSys 2023): units are taken by falling upward rank, and a small
network scores each device for each unit from finish times, transfers and loads. All it sees are
ratios, so that the same weights serve any number of units and devices, and other graphs. Beyond
these, every roll-out draws an appeal for each device, how many devices it uses and, for throughput,
how full one may become, so that roll-outs differ by whole ways of using the machine and not by
single units alone. Roll-outs are compiled.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints, starts
from placement.core.objective import Execution, Objective
from placement.learning.course import NUM_FEATURES, NUM_HIDDEN, NUM_WEIGHTS, Course
from placement.learning.environment import Environment
from placement.parallel.calls import Call, travels
from placement.parallel.executor import HERE, Executor, Job, num_cores
from placement.schedule.order import by_priority
from placement.splits.model.instance import device_columns

# What chance adds to scores and to the appeal of devices in the boldest of several roll-outs.
MOST_NOISE, MOST_APPEAL = 2.0, 1.0


def course_of(environment: Environment) -> Course:
    """The course of an environment's units; clusters on a cycle are taken by their first kernel."""
    from placement.learning.compiled.paths import longest_paths, optimistic_costs

    problem = environment.problem
    costs, unit_of = problem.costs, environment.unit_of_kernel
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
    speed = (np.maximum(1e-30, least_s)[:, None] / np.maximum(1e-30, work_s)).mean(axis=0)
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
        speed=speed + 1e-6,
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
    roll-out, `width` (R,) how many devices it uses. They are made by the `executor`.
    """

    course: Course
    seeds: Ints
    noise: Floats
    appeal: Floats
    width: Ints
    executor: Executor = HERE

    def repeated(self, num: int) -> "Rollouts":
        """The same chances this many times, so that only weights make a difference."""
        return Rollouts(
            self.course,
            np.tile(self.seeds, num),
            np.tile(self.noise, num),
            np.tile(self.appeal, num),
            np.tile(self.width, num),
            self.executor,
        )

    def devices(self, weights: Floats) -> Ints:
        """Devices of the units (R, U), with weights (W,) or of each roll-out (R, W)."""
        num, course = self.seeds.size, self.course
        # A copy, for roll-outs would be compiled once more for rows that may not be written.
        rows = np.array(np.broadcast_to(weights, (num, NUM_WEIGHTS)), order="C")
        drawn = (rows, self.seeds, self.noise, self.appeal, self.width)
        visits = course.work_s.size + course.readers.size
        num_parts = min(num, self.executor.num_parts(float(num * visits)))
        if num_parts < 2:
            return _on_all_cores(course, *drawn)
        jobs = [
            Job(
                here=lambda stop, some=some: _on_all_cores(course, *some),  # type: ignore[misc]
                away=partial(Call, rolled_out, (course,), some),
            )
            for some in zip(*(np.array_split(each, num_parts) for each in drawn), strict=True)
        ]
        return np.concatenate(self.executor.each(jobs))


def _on_all_cores(course: Course, *drawn: Ints | Floats) -> Ints:
    num_parts = max(1, min(len(drawn[0]), num_cores()))
    parts = (np.array_split(each, num_parts) for each in drawn)
    with ThreadPoolExecutor(num_parts) as pool:
        return np.concatenate([*pool.map(partial(rolled_out, course), *parts)])


@travels
def rolled_out(
    course: Course, weights: Floats, seeds: Ints, noise: Floats, appeal: Floats, width: Ints
) -> Ints:
    """Devices of the units (R, U) by roll-outs with weights (R, W), on one core."""
    from placement.learning.compiled.sequential import roll_out_each

    found = np.empty((len(seeds), course.order.size), dtype=np.int64)
    roll_out_each(course, weights, seeds, noise, appeal, width, found)
    return found


def rollouts(course: Course, num: int, seed: int, executor: Executor = HERE) -> Rollouts:
    """The first without chance and on all devices, half of the others on some devices alone; most
    have little noise, for noise adds up over units."""
    chance, num_devices = np.random.default_rng(seed), course.alone_s.size
    seeds = chance.integers(1, 1 << 31, size=num)
    noise, appeal, narrow, share = chance.random((4, num))
    noise[0] = appeal[0] = narrow[0] = 0.0
    # As many chances for one device as for all of many.
    some = np.floor((num_devices + 1.0) ** share).astype(np.int64)
    width = np.where(narrow > 0.5, np.clip(some, 1, num_devices), num_devices)
    return Rollouts(course, seeds, MOST_NOISE * noise**3, MOST_APPEAL * appeal, width, executor)


def untrained(seed: int) -> Floats:
    """Weights (W,) to begin with: units go where they end first, and hidden numbers count for
    nothing yet."""
    weights = np.zeros(NUM_WEIGHTS)
    num_inner = NUM_HIDDEN * NUM_FEATURES
    weights[:num_inner] = 0.3 * np.random.default_rng(seed).standard_normal(num_inner)
    own = weights[num_inner + NUM_HIDDEN :]
    own[0], own[1], own[20], own[27] = -10.0, -5.0, 1.0, -20.0
    return weights
