"""An accelerator that is none: a memory of its own, and queues that work late, on other threads.

Its tensors are the CPU's, but no table holds another's, and nothing is there before a queue has
come to it; so a copy or a wait that is missing gives a value that is missing or wrong.
"""

import queue
import threading
import time
from functools import partial

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from placement.core.machine import Device, Machine
from placement.formats.torch.source import Where, functions
from profiling.backends._torch import memories, streams
from profiling.backends._torch.instead import ELSEWHERE
from profiling.backends._torch.queues import Mark, Place, Queue
from profiling.backends._torch.run import use_threads
from profiling.devices.local import nominal_links

TIMEOUT_S = 60.0


class LateMark(Mark):
    def __init__(self, owner):
        self._owner, self._reached, self._time_s = owner, threading.Event(), 0.0

    def reach(self):
        self._time_s = time.perf_counter()
        self._reached.set()

    def wait(self):
        assert self._reached.wait(TIMEOUT_S), "a mark was never reached"
        if self._owner.error is not None:
            raise self._owner.error

    @property
    def time_s(self):
        assert self._reached.is_set(), "a time was asked for before the mark was reached"
        return self._time_s


class Late(Queue):
    def __init__(self, delay_s):
        self.error, self.delay_s, self._items = None, delay_s, queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def call(self, work):
        self._items.put((work, self.delay_s))

    def mark(self):
        mark = LateMark(self)
        self._items.put((mark.reach, 0.0))
        return mark

    def after(self, mark):
        self._items.put((mark.wait, 0.0))

    def _work(self):
        use_threads(1)  # sums in the order of the lanes'
        while True:
            item, delay_s = self._items.get()
            time.sleep(delay_s)
            try:
                item()
            except Exception as error:
                self.error = self.error or error


class Launches(TorchDispatchMode):
    """Calls of operators, which can be made again on the very tensors that they worked on."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        self.calls.append((function, args, kwargs or {}, made))
        return made

    def again(self):
        for function, args, kwargs, made in self.calls:
            found = function(*args, **kwargs)
            for old, new in zip(pytree.tree_leaves(made), pytree.tree_leaves(found), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)

    def spoil(self):
        """Recording makes no values: let nobody take what lies there for one."""
        outside, made_here = set(), {}
        for _, args, kwargs, made in self.calls:
            outside |= {s.data_ptr() for s in memories_of((args, kwargs))} - made_here.keys()
            made_here |= {s.data_ptr(): s for s in memories_of(made)}
        for where in made_here.keys() - outside:
            made_here[where].fill_(255)


def memories_of(values):
    leaves = pytree.tree_leaves(values)
    return [leaf.untyped_storage() for leaf in leaves if isinstance(leaf, torch.Tensor)]


class Pretend(Place):
    """Copies or segments come late, as asked; values that were copied are counted.

    `lost` names a copy, by its way and number, that brings nothing. With `captures` segments are
    captured as a device's graphs are; replays are counted.
    """

    def __init__(self, compute_s=0.0, copy_s=0.0, captures=False):
        self.device = torch.device("cpu")
        self.compute, self.inbound, self.outbound = Late(compute_s), Late(copy_s), Late(copy_s)
        self.taken, self.given, self.lost = 0, 0, ("", 0)
        self.captures, self.replayed = captures, 0

    def capture(self):
        return partial(self.captured, []) if self.captures else None

    def captured(self, pool, work):
        """Captures of one pool share memory: a replay may write over what later ones have made."""
        launches = Launches()
        with launches:
            work()
        launches.spoil()
        pool.append(launches)

        def replay():
            self.replayed += 1
            for later in pool[pool.index(launches) + 1 :]:
                later.spoil()
            launches.again()

        return replay

    def take(self, value):
        self.taken += 1
        return self.copy(value, ("taken", self.taken))

    def give(self, value):
        self.given += 1
        return self.copy(value, ("given", self.given))

    def copy(self, value, number):
        return value.new_empty(0) if number == self.lost else value.clone()


def work_briefly(monkeypatch):
    """Fill little before a copy is timed, so that its bandwidth is not to be trusted."""
    monkeypatch.setattr(streams, "_FILLED_BYTES", 1024)


def put_in_place(patch, made):
    """Have every device of PyTorch's be what `made` makes of its name; what was made, by name."""
    places = {}
    for module in (memories, streams):
        patch.setattr(module, "place_of", lambda _, name: places.setdefault(name, made(name)))
    return places


def with_pretended(machine, number=2, **about):
    """The machine and that many accelerators "pretend:N"."""
    more = tuple(
        Device(
            f"pretend:{i}",
            "gpu",
            "torch",
            "pretend",
            flops_per_s=1e12,
            memory_bytes_per_s=1e11,
            **about,
        )
        for i in range(number)
    )
    devices = (*machine.devices, *more)
    return Machine("pretended", devices, nominal_links(devices), machine.libraries)


def everywhere(model, device):
    """The shared values of a program that runs op by op on one device."""
    program = model.executable
    names = [(k.name,) for k in program.kernels]
    run, shared = functions(program, names, [Where(device, ELSEWHERE)] * len(names))
    table = [None] * len(shared)
    for name in (*program.inputs, *program.state):
        value = program.nodes[name].meta["val"]
        if isinstance(value, torch.Tensor):
            value = torch.empty(tuple(value.shape), dtype=value.dtype, device=device)
        table[shared[name]] = value
    for function in run:
        function(table)
    return {name: table[slot] for name, slot in shared.items()}
