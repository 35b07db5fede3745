"""Latency and bandwidth of every link, by a robust straight-line fit of seconds over bytes.

Lanes of one CPU share memory, so nothing is copied: what a transfer costs there is the hand-over
from one pinned thread to another (through a lock, as in a live run) plus what reading another
core's data takes beyond reading one's own. Devices with memory of their own are timed by the copies
of their runtime: latency and bandwidth where it makes them one by one, else the bandwidth alone,
for the constant part is then a call's own cost and belongs to the profile.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from placement.core.events import say_nothing
from placement.core.machine import Device, Link, Machine
from profiling import backends
from profiling.devices.lanes import pin
from profiling.devices.local import missing_devices

SIZES = tuple(1024 * 4**i for i in range(8))  # 1 KiB to 16 MiB
SHARE_BYTES = SIZES[4]
MOST_BYTES_PER_S = 1e12
MEASURED_NOTE = "Link figures were measured on this computer."
_ROUNDS = 24
_FEWEST_ROUNDS = 4
_FITS = 12


def measure_links(machine: Machine, report: Callable[[str], None] = say_nothing) -> Machine:
    """The machine with measured links among the devices that are here; the others stay as stated.

    `report` is told which pair comes next; an exception from it ends the measuring.
    """
    absent = {name for name, _ in missing_devices(machine)}
    present = [d for d in machine.devices if d.name not in absent and not backends.emulated((d,))]
    away = backends.elsewhere(present)
    remote = [d for d in present if d.name in away]
    measured, cards = _measured_there(remote), _cards_there(remote)
    present = [d for d in present if d.name not in away]
    lanes = [d for d in present if d.on_host]
    pairs = list(combinations(lanes, 2))
    rounds = max(_FEWEST_ROUNDS, _ROUNDS // max(1, len(pairs)))
    for a, b in pairs:
        report(f"measuring {a.name} with {b.name}")
        there, back = lane_seconds(a.core_ids, b.core_ids, rounds)
        measured[a.name, b.name] = fit(SIZES, there)
        measured[b.name, a.name] = fit(SIZES, back)
    stated = {(link.src, link.dst): link for link in machine.links}
    overheads: dict[tuple[str, str], float] = {}
    for device in (d for d in present if not d.on_host):
        report(f"measuring copies to and from {device.name}")
        measured |= (told := _told(device, present, stated))
        overheads |= _send_overheads(device, present, told)
    _through_host(measured, [d for d in present if not d.on_host], lanes)
    if not measured:
        return machine
    links = tuple(
        Link(*ends, *measured[ends], cards.get(ends, ""), send_overhead=overheads.get(ends, 0.0))
        if ends in measured
        else link
        for ends, link in stated.items()
    )
    return replace(machine, links=links, note=MEASURED_NOTE)


def _measured_there(devices: Sequence[Device]) -> dict[tuple[str, str], tuple[float, float]]:
    """Links among devices of other computers, as their runtimes measure them."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for name, backend in backends.of(devices).items():
        found |= backend.link_costs([d for d in devices if d.runtime == name])
    return found


def _cards_there(devices: Sequence[Device]) -> dict[tuple[str, str], str]:
    """What links among these share."""
    found: dict[tuple[str, str], str] = {}
    for name, backend in backends.of(devices).items():
        found |= backend.link_cards([d for d in devices if d.runtime == name])
    return found


def _told(
    device: Device, present: Sequence[Device], stated: Mapping[tuple[str, str], Link]
) -> dict[tuple[str, str], tuple[float, float]]:
    """Links to and from a device, as far as its runtime times copies: one host lane for all."""
    backend, found = backends.get(device.runtime), dict[tuple[str, str], tuple[float, float]]()
    lanes = [d for d in present if d.on_host]
    away = [d for d in present if not d.on_host and d.runtime == device.runtime and d != device]
    for other in (*away, *lanes[:1]):
        for src, dst in ((device, other), (other, device)):
            seconds = backend.copy_seconds(src, dst, SIZES)
            if seconds is not None:
                names = [d.name for d in lanes] if other.on_host else [other.name]
                ends = [(device.name, n) if src is device else (n, device.name) for n in names]
                found.update(dict.fromkeys(ends, fit(SIZES, seconds)))
    if backend.tells_latency:
        return found
    return {
        ends: (stated[ends].latency_s, bytes_per_s)
        for ends, (_, bytes_per_s) in found.items()
        if ends in stated
    }


def _send_overheads(
    device: Device, present: Sequence[Device], ends: Collection[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """The share of a copy to a device that holds up who sends it: one host lane for all."""
    lanes = {d.name: d for d in present if d.on_host}
    held_up = [(src, dst) for src, dst in ends if dst == device.name and src in lanes]
    if not held_up:
        return {}
    lane = lanes[held_up[0][0]]
    share = backends.get(device.runtime).send_overhead(lane, device, SHARE_BYTES)
    return dict.fromkeys(held_up, float(f"{share:.4g}"))


def fit(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """(latency_s, bytes_per_s) of the line that comes closest to the times, in relative terms.

    Least squares on relative errors, so that small sizes count as much as large ones, reweighted
    (Huber) so that a few disturbed sizes count little. A slope below what any memory does, negative
    ones included, becomes a bandwidth of `MOST_BYTES_PER_S`, a negative latency zero.

    >>> fit((0, 1000, 10_000), (2e-6, 3e-6, 12e-6))
    (2e-06, 1000000000.0)
    """
    x = np.asarray(sizes, dtype=np.float64)
    y = np.maximum(np.asarray(seconds, dtype=np.float64), 1e-9)
    weights = np.ones_like(x)
    latency_s, s_per_byte = 0.0, 0.0
    for _ in range(_FITS):
        scale = np.sqrt(weights) / y
        matrix = np.stack((scale, x * scale), axis=1)
        (latency_s, s_per_byte), *_ = np.linalg.lstsq(matrix, y * scale, rcond=None)
        error = np.abs((latency_s + s_per_byte * x) / y - 1.0)
        typical = max(1.4826 * float(np.median(error)), 1e-6)
        weights = np.minimum(1.0, 1.345 * typical / np.maximum(error, 1e-12))
    if s_per_byte < 1.0 / MOST_BYTES_PER_S:
        latency_s, s_per_byte = float(np.median(y)), 1.0 / MOST_BYTES_PER_S
    elif latency_s < 0:
        latency_s = 0.0
    return float(f"{latency_s:.4g}"), float(f"{1.0 / s_per_byte:.4g}")


def one_way_s(round_trips_s: Sequence[float]) -> list[float]:
    """Seconds until values are there, of those until an empty answer to them has come.

    Its way back is half of the quickest: the smallest value, but where that one was held up.

    >>> one_way_s([10.0, 1.0, 3.0])
    [9.5, 0.5, 2.5]
    """
    back_s = min(round_trips_s) / 2
    return [seconds - back_s for seconds in round_trips_s]


def lane_seconds(
    first: tuple[int, ...], second: tuple[int, ...], rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds by size for handing data from a thread on `first` cores to one on `second`, and back.

    Both directions are timed in one exchange: each thread in turn writes its buffer and releases
    the other's lock; the other notes when it woke, reads the buffer, and reads it again. The second
    reading is what one's own data costs; the difference is what the link adds.
    """
    wake = (threading.Lock(), threading.Lock())
    for lock in wake:
        lock.acquire()
    buffers = [np.zeros(SIZES[-1] // 4, dtype=np.float32) for _ in wake]
    handed_s = [0.0, 0.0]
    taken: tuple[list[list[float]], list[list[float]]] = ([], [])
    errors: list[BaseException] = []

    def receive(me: int, size: int) -> float:
        wake[me].acquire()
        woke_s = time.perf_counter()
        data = buffers[1 - me][: size // 4]
        data.max()
        read_s = time.perf_counter()
        data.max()
        again_s = time.perf_counter()
        return (woke_s - handed_s[1 - me]) + (read_s - woke_s) - (again_s - read_s)

    def send(me: int, size: int) -> None:
        buffers[me][: size // 4] += 1.0
        handed_s[me] = time.perf_counter()
        wake[1 - me].release()

    def lane(me: int, cores: tuple[int, ...]) -> None:
        try:
            pin(cores)
            for size in SIZES:
                taken[me].append([])
                for _ in range(rounds + 1):
                    if me == 0:
                        send(me, size)
                        taken[me][-1].append(receive(me, size))
                    else:
                        taken[me][-1].append(receive(me, size))
                        send(me, size)
        except BaseException as error:  # the other thread waits for this one
            errors.append(error)
            wake[1 - me].release()
            raise

    threads = [
        threading.Thread(target=lane, args=(me, cores), daemon=True)
        for me, cores in enumerate((first, second))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    # The first round of each size touches new memory and does not count.
    there, back = ([float(np.median(times[1:])) for times in taken[me]] for me in (1, 0))
    return there, back


def _through_host(
    measured: dict[tuple[str, str], tuple[float, float]],
    devices: Sequence[Device],
    lanes: Sequence[Device],
) -> None:
    """Add the links between devices with own memory: a copy to the host, then one from it."""
    for a in devices:
        for b in devices:
            host = next((h.name for h in lanes), None)
            if a is b or host is None or (a.name, b.name) in measured:
                continue
            legs = (measured.get((a.name, host)), measured.get((host, b.name)))
            if legs[0] and legs[1]:
                s_per_byte = 1.0 / legs[0][1] + 1.0 / legs[1][1]
                measured[a.name, b.name] = (legs[0][0] + legs[1][0], 1.0 / s_per_byte)
