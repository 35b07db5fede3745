"""A PyTorch program compiled: its kernels, and programs that run schedules of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from placement.core.graph import Graph, Tensor
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.schedule import Schedule, Segment
from placement.formats.torch.program import Node, TorchProgram, num_bytes
from profiling.backends._torch.feeds import all_feeds
from profiling.backends._torch.kernels import joined_ops, kernel_graph
from profiling.backends._torch.memories import SpreadTorch
from profiling.backends._torch.run import PlacedTorch, WholeTorch
from profiling.backends.base import Compiled, Feeds, Program, Renewal


@dataclass(frozen=True, eq=False)
class TorchCompiled(Compiled):
    """See `profiling.backends.base.Compiled`."""

    keeps_order = True
    graph: Graph
    kernels: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...]
    program: TorchProgram
    machine: Machine
    runtime: str
    asked_for_python: bool = False

    @classmethod
    def of(cls, model: Model, machine: Machine, runtime: str) -> "TorchCompiled":
        program: Any = model.executable
        random = tuple(n.name for n in program.kernels if _is_random(n))
        sources = joined_ops(model.graph, program)
        kernels = kernel_graph(model.graph, sources)
        return cls(model.graph, kernels, sources, random, program, machine, runtime)

    def feeds(self, seed: int, given: Feeds) -> dict[str, Any]:
        return all_feeds(self.program, seed, given)

    def open(self, schedule: Schedule, feeds: Feeds) -> Program:
        return self._opened(self._of_ops(schedule), (feeds,))

    def open_ring(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int
    ) -> tuple[Program, ...]:
        first = self._opened(self._of_ops(schedule), feeds, depth)
        return (first, *(first.beside() for _ in range(depth - 1)))

    def by_op(self) -> "TorchCompiled":
        each = tuple((op.name,) for op in self.graph.ops)
        return replace(self, kernels=self.graph, sources=each)

    def in_python(self) -> "TorchCompiled":
        return replace(self, asked_for_python=True)

    def unplaced(self, device: Device | None, feeds: Feeds) -> Program:
        if device is None or device.on_host:
            return WholeTorch(self.program, device, feeds)
        names = tuple(kernel.name for kernel in self.program.kernels)
        return self._opened(Schedule((Segment(device.name, names),)), (feeds,))

    def _of_ops(self, schedule: Schedule) -> Schedule:
        """The ops in the places of the kernels that run them; ops by themselves stay."""
        if len(self.sources) == len(self.program.kernels):
            return schedule
        return Schedule(
            tuple(
                Segment(
                    segment.device,
                    tuple(op for kernel in segment.kernels for op in self._ops[kernel]),
                )
                for segment in schedule.segments
            )
        )

    @cached_property
    def _ops(self) -> Mapping[str, tuple[str, ...]]:
        """The ops that a kernel runs, by its name; an op that is no kernel runs itself."""
        each = {kernel.name: (kernel.name,) for kernel in self.program.kernels}
        pairs = zip(self.kernels.ops, self.sources, strict=True)
        return each | {kernel.name: ops for kernel, ops in pairs}

    @cached_property
    def _kernel_of(self) -> Mapping[str, str]:
        pairs = zip(self.kernels.ops, self.sources, strict=True)
        return {op: kernel.name for kernel, ops in pairs for op in ops}

    def _opened(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int | None = None
    ) -> PlacedTorch | SpreadTorch:
        """Lanes of the CPU share one memory; everything else has one each.

        What another runtime makes comes to the host, and what it reads goes there. With a `depth`
        the program is the first of a ring.
        """
        devices = [self.machine.device(s.device) for s in schedule.segments]
        away = {d.name: d for d in devices if d.runtime == self.runtime and not d.on_host}
        if not away:
            return PlacedTorch(
                self.program,
                schedule,
                self.machine,
                feeds,
                runtime=self.runtime,
                in_python=self.asked_for_python,
                depth=depth or 1,
            )
        accelerators, prompt = tuple(away.values()), depth is not None
        return SpreadTorch(
            self.program,
            schedule,
            self.machine,
            feeds,
            accelerators,
            prompt=prompt,
            in_python=self.asked_for_python,
        )

    def among(self, machine: Machine) -> "TorchCompiled":
        return replace(self, machine=machine)

    @cached_property
    def renewals(self) -> tuple[Renewal, ...]:  # type: ignore[override]
        program, nodes, kernel_of = self.program, self.program.nodes, self._kernel_of
        return tuple(
            Renewal(
                held,
                made,
                kernel_of[program.maker[made].name],
                # The model's outputs are among the users, too.
                tuple(
                    dict.fromkeys(
                        kernel_of[n.name] for n in nodes[held].users if n.name in kernel_of
                    )
                ),
                num_bytes(program.state[held]),
            )
            for held, made in program.updates
            if made in program.maker
        )

    def exchanges(self, tensor: Tensor) -> bool:
        """Tensors, where there are no caches: steps write into these where they lie."""
        node = self.program.nodes[self.program.node_of(tensor.name)]
        return isinstance(node.meta.get("val"), torch.Tensor) and not self.program.caches


def _is_random(node: Node) -> bool:
    """Whether a kernel draws numbers: ops that may, but for those told not to."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    given = {**_defaults(node), **dict(zip(_names(node), node.args, strict=False)), **node.kwargs}
    if any(given.get(name) is False for name in ("train", "training")):
        return False
    shares = [given[name] for name in ("p", "dropout", "dropout_p") if name in given]
    return not shares or any(share != 0 for share in shares)


def _names(node: Node) -> list[str]:
    return [argument.name for argument in node.target._schema.arguments]


def _defaults(node: Node) -> dict[str, Any]:
    arguments = node.target._schema.arguments
    return {a.name: a.default_value for a in arguments if a.has_default_value()}
