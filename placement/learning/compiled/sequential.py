"""Roll-outs of a sequential policy (compiled)."""

import numpy as np

from placement.compiled.jit import inlined, inner, jit
from placement.compiled.random import seeded, uniform
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.course import NUM_FEATURES, NUM_HIDDEN, Course


@inlined
def soft(x: float) -> float:
    """A number between -1 and 1, near 0 the number itself."""
    return x / (1.0 + abs(x))


@inner
def score(weights: Floats, features: Floats) -> float:
    """What the network says of one device; weights as `NUM_WEIGHTS` counts them."""
    of_hidden = NUM_HIDDEN * NUM_FEATURES
    total = 0.0
    for f in range(NUM_FEATURES):
        total += weights[of_hidden + NUM_HIDDEN + f] * features[f]
    for h in range(NUM_HIDDEN):
        inside = 0.0
        for f in range(NUM_FEATURES):
            inside += weights[h * NUM_FEATURES + f] * features[f]
        total += weights[of_hidden + h] * soft(inside)
    return total


@jit
def roll_out(
    course: Course,
    weights: Floats,
    seed: int,
    noise: float,
    appeal: float,
    width: int,
    device: Ints,
) -> None:
    """Decide on every unit in turn; writes `device` (U,).

    With `noise` 1 devices are drawn by the softmax of their scores, with 0 the best is taken. Only
    `width` devices are used, drawn with chances as they are fast, where these can hold the unit. A
    device that lacks memory for a unit is left out, and where all do, the roomiest is taken.
    """
    order, work_s, call_s, allowed = course.order, course.work_s, course.call_s, course.allowed
    size_bytes, limit_bytes, mean_s = course.size_bytes, course.limit_bytes, course.mean_s
    move_s, s_per_byte, on_host = course.move_s, course.s_per_byte, course.on_host
    one_at_a_time, host, by_load = course.one_at_a_time, course.host, course.by_load
    maker, net_bytes, net_s = course.maker, course.net_bytes, course.net_s
    in_ptr, in_nets, out_ptr, out_nets = (
        course.in_ptr,
        course.in_nets,
        course.out_ptr,
        course.out_nets,
    )
    reader_ptr, readers = course.reader_ptr, course.readers
    rank_s, depth_s, outlook_s = course.rank_s, course.depth_s, course.outlook_s
    alone_s, whole_s = course.alone_s, course.whole_s
    num_units, num_devices = work_s.shape
    chance = seeded(seed)
    liking, used = np.empty(num_devices), np.zeros(num_devices, np.bool_)
    used_by = np.empty(num_devices)
    for d in range(num_devices):
        used_by[d] = np.log(course.speed[d]) - np.log(-np.log(uniform(chance)))
        # A sum of three uniform numbers is near enough to a normal one.
        normal = 2.0 * (uniform(chance) + uniform(chance) + uniform(chance) - 1.5)
        liking[d] = appeal * normal
    most_fill = 1.0 + uniform(chance)
    for _ in range(min(width, num_devices)):
        d = int(used_by.argmax())
        used[d], used_by[d] = True, -np.inf
    device[:] = -1
    end_s, arrival_s = np.zeros(num_units), np.full((maker.size, num_devices), -1.0)
    free_s, load_s = np.zeros(num_devices), np.zeros(num_devices)
    link_free_s, held_bytes = np.zeros((num_devices, num_devices)), np.zeros(num_devices)
    ready_s, moving_s, here_bytes = (
        np.empty(num_devices),
        np.empty(num_devices),
        np.empty(num_devices),
    )
    kin_bytes, finish_s = np.empty(num_devices), np.empty(num_devices)
    may = np.empty(num_devices, np.bool_)
    features = np.zeros(NUM_FEATURES)
    least_alone_s = alone_s.min()
    longest_s = max(1e-30, rank_s.max())
    moving_all_s, computing_all_s = net_s.sum(), max(1e-30, mean_s.sum())
    total_load_s, share_s = 0.0, 0.0
    for u in range(num_units):
        share_s += work_s[u].min() / course.speed.sum()
    for i in range(num_units):
        u = order[i]
        any_may, any_used = False, False
        for d in range(num_devices):
            may[d] = allowed[u, d] and held_bytes[d] + size_bytes[u] <= limit_bytes[d]
            any_may = any_may or may[d]
            any_used = any_used or (may[d] and used[d])
        if any_used:
            for d in range(num_devices):
                may[d] = may[d] and used[d]
        if not any_may:
            roomiest = -1
            for d in range(num_devices):
                if allowed[u, d] and (
                    roomiest < 0
                    or limit_bytes[d] - held_bytes[d] > limit_bytes[roomiest] - held_bytes[roomiest]
                ):
                    roomiest = d
            may[max(0, roomiest)] = True
        # When inputs can be where, and what has to move for it.
        ready_s[:] = 0.0
        moving_s[:] = 0.0
        here_bytes[:] = 0.0
        all_bytes, in_s, last_s, last_at = 0.0, 0.0, -1.0, -1
        for j in range(in_ptr[u], in_ptr[u + 1]):
            n = in_nets[j]
            p = maker[n]
            if p >= 0 and device[p] < 0:
                continue
            src = device[p] if p >= 0 else host
            made_s = end_s[p] if p >= 0 else 0.0
            all_bytes += net_bytes[n]
            in_s += net_s[n]
            if p >= 0 and made_s > last_s:
                last_s, last_at = made_s, src
            for d in range(num_devices):
                at_s = made_s
                if arrival_s[n, d] >= 0.0:
                    at_s = arrival_s[n, d]
                    here_bytes[d] += net_bytes[n]
                elif src != d and (p >= 0 or (host >= 0 and not on_host[d])):
                    if one_at_a_time:
                        at_s = max(at_s, link_free_s[src, d])
                    seconds = move_s[src, d] + net_bytes[n] * s_per_byte[src, d]
                    at_s += seconds
                    moving_s[d] += seconds
                else:
                    here_bytes[d] += net_bytes[n]
                ready_s[d] = max(ready_s[d], at_s)
        # Where the other inputs of this unit's readers are.
        kin_bytes[:] = 0.0
        all_kin_bytes, out_s = 0.0, 0.0
        for o in range(out_ptr[u], out_ptr[u + 1]):
            n = out_nets[o]
            out_s += net_s[n]
            for r in range(reader_ptr[n], min(reader_ptr[n] + 4, reader_ptr[n + 1])):
                v = readers[r]
                for j in range(in_ptr[v], min(in_ptr[v] + 8, in_ptr[v + 1])):
                    p = maker[in_nets[j]]
                    if p >= 0 and p != u and device[p] >= 0:
                        kin_bytes[device[p]] += net_bytes[in_nets[j]]
                        all_kin_bytes += net_bytes[in_nets[j]]
        least_s, soonest_s, first_s, fastest_s = np.inf, np.inf, np.inf, np.inf
        least_load_s = np.inf
        for d in range(num_devices):
            if not may[d]:
                continue
            start_s = max(ready_s[d], free_s[d])
            added_s = work_s[u, d] + (call_s[d] if moving_s[d] > 0.0 else 0.0)
            # What ends last is a device's load where that is what counts.
            finish_s[d] = load_s[d] + moving_s[d] + added_s if by_load else start_s + added_s
            least_load_s = min(least_load_s, load_s[d] + added_s)
            least_s = min(least_s, finish_s[d])
            soonest_s = min(soonest_s, finish_s[d] + outlook_s[u, d])
            first_s = min(first_s, start_s)
            fastest_s = min(fastest_s, work_s[u, d])
        scale_s = fastest_s + in_s + 1e-6 * whole_s
        best, best_score = -1, -np.inf
        for d in range(num_devices):
            if not may[d]:
                continue
            later_s = finish_s[d] - least_s
            later_on_s = finish_s[d] + outlook_s[u, d] - soonest_s
            start_s = max(ready_s[d], free_s[d])
            features[0] = soft(later_s / scale_s)
            features[1] = soft(later_on_s / scale_s)
            features[2] = soft((start_s - first_s) / scale_s)
            features[3] = soft((work_s[u, d] - fastest_s) / scale_s)
            features[4] = soft((ready_s[d] - free_s[d]) / scale_s)
            features[5] = soft(moving_s[d] / scale_s)
            features[6] = here_bytes[d] / all_bytes if all_bytes > 0.0 else 0.0
            features[7] = soft(10.0 * later_s / whole_s)
            features[8] = soft(10.0 * later_on_s / whole_s)
            features[9] = load_s[d] / total_load_s if total_load_s > 0.0 else 0.0
            features[10] = least_alone_s / alone_s[d] if np.isfinite(alone_s[d]) else 0.0
            features[11] = rank_s[u] / longest_s
            features[12] = (depth_s[u] + rank_s[u]) / longest_s
            features[13] = out_s / (out_s + mean_s[u] + 1e-30)
            features[14] = moving_all_s / (moving_all_s + computing_all_s)
            features[15] = soft(computing_all_s / (longest_s * num_devices))
            features[16] = 1.0 / min(width, num_devices)
            features[17] = 1.0 if later_s <= 0.0 else 0.0
            features[18] = 1.0 if load_s[d] > 0.0 else 0.0
            features[19] = 1.0 if last_at == d else 0.0
            features[20] = liking[d]
            features[21] = soft((load_s[d] + work_s[u, d] - least_load_s) / scale_s)
            features[22] = kin_bytes[d] / all_kin_bytes if all_kin_bytes > 0.0 else 0.0
            features[23] = 0.0
            if np.isfinite(limit_bytes[d]):
                features[23] = (held_bytes[d] + size_bytes[u]) / max(1.0, limit_bytes[d])
            features[24] = 1.0 if by_load else 0.0
            features[25] = 1.0
            fill = (load_s[d] + work_s[u, d]) / (share_s + 1e-30)
            features[26] = fill / (1.0 + fill)
            features[27] = soft(100.0 * max(0.0, fill / most_fill - 1.0)) if by_load else 0.0
            value = score(weights, features)
            if noise > 0.0:
                value -= noise * np.log(-np.log(uniform(chance)))
            if best < 0 or value > best_score:
                best, best_score = d, value
        # The decision and what follows from it.
        begin_s = free_s[best]
        for j in range(in_ptr[u], in_ptr[u + 1]):
            n = in_nets[j]
            p = maker[n]
            if p >= 0 and device[p] < 0:
                continue
            src = device[p] if p >= 0 else host
            at_s = end_s[p] if p >= 0 else 0.0
            if arrival_s[n, best] >= 0.0:
                at_s = arrival_s[n, best]
            elif src != best and (p >= 0 or (host >= 0 and not on_host[best])):
                if one_at_a_time:
                    at_s = max(at_s, link_free_s[src, best])
                seconds = move_s[src, best] + net_bytes[n] * s_per_byte[src, best]
                at_s += seconds
                arrival_s[n, best] = link_free_s[src, best] = at_s
                if by_load:
                    load_s[best] += seconds
                    load_s[src] += seconds
                    total_load_s += 2.0 * seconds
            begin_s = max(begin_s, at_s)
        seconds = work_s[u, best] + (call_s[best] if moving_s[best] > 0.0 else 0.0)
        device[u] = best
        end_s[u] = free_s[best] = begin_s + seconds
        load_s[best] += seconds
        total_load_s += seconds
        held_bytes[best] += size_bytes[u]


@jit
def roll_out_each(
    course: Course,
    weights: Floats,
    seeds: Ints,
    noise: Floats,
    appeal: Floats,
    width: Ints,
    devices: Ints,
) -> None:
    """One roll-out after another (R, U), each with weights (R, W) of its own."""
    for r in range(seeds.size):
        roll_out(course, weights[r], seeds[r], noise[r], appeal[r], width[r], devices[r])


@jit
def start_each(course: Course, devices: Ints, start_s: Floats) -> None:
    """When each unit starts in placements (N, U), taken in the course's order; writes (N, U).

    A unit waits for its device and its inputs, and a net is sent once to each device.
    """
    num_units, num_devices = course.work_s.shape
    host, on_host = course.host, course.on_host
    end_s, free_s = np.empty(num_units), np.empty(num_devices)
    arrival_s = np.empty((course.maker.size, num_devices))
    link_free_s = np.empty((num_devices, num_devices))
    for i in range(devices.shape[0]):
        end_s[:] = -1.0
        free_s[:] = 0.0
        arrival_s[:] = -1.0
        link_free_s[:] = 0.0
        for u in course.order:
            d = devices[i, u]
            begin_s, crosses = free_s[d], False
            for j in range(course.in_ptr[u], course.in_ptr[u + 1]):
                n = course.in_nets[j]
                p = course.maker[n]
                if p >= 0 and end_s[p] < 0.0:
                    continue
                src = devices[i, p] if p >= 0 else host
                at_s = end_s[p] if p >= 0 else 0.0
                if src != d and (p >= 0 or (host >= 0 and not on_host[d])):
                    if arrival_s[n, d] < 0.0:
                        if course.one_at_a_time:
                            at_s = max(at_s, link_free_s[src, d])
                        at_s += (
                            course.move_s[src, d] + course.net_bytes[n] * course.s_per_byte[src, d]
                        )
                        arrival_s[n, d] = link_free_s[src, d] = at_s
                        crosses = True
                    at_s = arrival_s[n, d]
                begin_s = max(begin_s, at_s)
            start_s[i, u] = begin_s
            end_s[u] = begin_s + course.work_s[u, d] + (course.call_s[d] if crosses else 0.0)
            free_s[d] = end_s[u]
