"""What a device runtime offers: its devices, the kernels it makes of a model, and running them.

`Backend.compile` turns a model into kernels, `Compiled.open` turns a schedule of those kernels into
a `Program`, whose segments the executor calls one by one. Nothing here knows threads or clocks.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from placement.core.graph import Graph, Tensor
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.schedule import Schedule
from placement.parallel.executor import Executor
from profiling.backends._ring import RingLanes
from profiling.devices.lanes import Lane, Lanes, Step
from profiling.devices.native import NativeCalls, share_cores, why_not
from profiling.devices.stream_lanes import Ran
from profiling.measuring.outputs import DEFAULT

Feeds = Mapping[str, Any]
# How long a pipeline waits for other lanes to rest.
REST_S = 60.0
# Of this computer, or by name and process of another host.
Core = int | tuple[str, int, int]
# By computer the busy seconds of its cores, and how many of these this work itself computed.
Counted = Sequence[tuple[Mapping[Core, float], float]]
# Peak arithmetic and memory speed for estimates where the driver does not tell: an integrated
# graphics unit, a small accelerator, one core of a CPU. Measured profiles do not use them.
NOMINAL = {"cpu": (80e9, 10e9), "gpu": (2e12, 60e9), "npu": (4e12, 60e9)}


@dataclass(frozen=True)
class DeviceTimes:
    """When a step's segments ran and its values were copied, as the devices themselves say.

    Start and end on the clock of `time.perf_counter`, by segment, and by value and device reached.
    """

    segments: Mapping[int, tuple[float, float]]
    copies: Mapping[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True)
class Renewal:
    """A piece of state, and the value that takes its place when a step is over, by kernels' names.

    `maker` makes that value, and `readers` read the state in the next step.
    """

    state: str
    made: str
    maker: str
    readers: tuple[str, ...]
    num_bytes: int


class RuntimeFailure(RuntimeError):
    """A runtime cannot open a model, or has failed in a step of it; the message says in what."""


class DevicesLost(RuntimeError):
    """Devices that were there when something began and are no more; the message names them."""

    def __init__(self, message: str, devices: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.devices = tuple(devices)


class ClusterEnded(RuntimeError):
    """The cluster that devices belong to is no more, and none of them with it."""

    def __init__(self) -> None:
        super().__init__(
            "The head of the Ray cluster, or its node on this computer, ended in the middle of"
            " this, and nothing that was saved is lost; start the cluster again, or use --machine"
            " local."
        )


class Carried(Protocol):
    """Lanes that run steps together until closed, wherever they are."""

    def step(self, timeout_s: float) -> Step: ...

    def close(self) -> bool: ...


class Streamed(Protocol):
    """Lanes through which samples run one behind the other until closed, wherever they are.

    Samples begin in order and are awaited in order; of some `ran` has what they did, and `busy_s`
    the seconds that each lane computed for one, or in a round. Between hosts that is with what they
    take to send values. See `profiling.devices.stream_lanes.StreamLanes`.
    """

    @property
    def ran(self) -> Sequence[Ran]: ...

    @property
    def busy_s(self) -> Mapping[str, Sequence[float]]: ...

    def begin(self, sample: int, feed: int) -> None:
        """Let a sample begin, with the inputs of this number."""

    def end(self, limit: int) -> None: ...

    def completed_s(self, sample: int, timeout_s: float) -> float: ...

    def outputs(self, sample: int) -> dict[str, Any]:
        """What a sample has made that has come out last, until another begins in its place."""

    def close(self) -> bool: ...


class Program(ABC):
    """A schedule made ready: sessions built, buffers allocated, inputs in place.

    `run(i)` computes segment i and returns when segments that read its results may be run; when a
    device's last one returns, all that was begun on it is over. Segments of different devices may
    run at the same time, those that depend on each other may not. `close` frees all.
    `actual_devices` names, per device of the schedule, the provider that really computes there;
    `fallbacks` says in sentences what runs elsewhere than requested, `fallen` in which segments.
    `tolerance` is what float32 outputs may differ by: see `profiling.measuring.outputs.compare`.
    Segments of devices that another runtime drives are not this program's to run: what they make
    and its own segments read comes by `take`, what they read of its own they get by `value`.
    Where segments are calls of native code these are `native`, and lanes may use them in the place
    of `run`; else `waits_awake` lets lanes with cores of their own try instead of sleeping while
    they wait for each other. `lanes_note` says in a sentence which lanes there are and why, where
    that is a choice. `rest` is what each thread that has run segments does before another such
    program's step, and who asks for a step before it, where threads keep something that is in the
    way of others. After so many steps (`settles_after`) a step is as all that follow. Where steps
    are repeatable (`is_repeatable`) all segments may run more often in between, and nothing is
    different then but what is random by definition. `reuses_outputs` says that `views` lie where
    the next step writes.
    """

    actual_devices: Mapping[str, str] = MappingProxyType({})
    fallbacks: tuple[str, ...] = ()
    fallen: tuple[int, ...] = ()
    peak_bytes: Mapping[str, int] = MappingProxyType({})
    tolerance: tuple[float, float] = DEFAULT
    native: NativeCalls | None = None
    waits_awake: bool = False
    lanes_note: str = ""
    settles_after: int = 1
    rest: Callable[[], None] | None = None
    is_repeatable: bool = False
    reuses_outputs: bool = False

    @abstractmethod
    def run(self, segment: int) -> None:
        """Compute one segment; the caller has seen to it that its inputs are there."""

    def launch(self, segment: int) -> None:
        """The same, but of a device's last segment this may return before all is over.

        Readers may run then; `finish` waits for the rest.
        """
        self.run(segment)

    def finish(self, segment: int) -> None:  # noqa: B027 - most are through when `launch` returns
        """Return once all that was begun on the device of a launched segment is over, if it is the
        device's last."""

    @abstractmethod
    def outputs(self) -> dict[str, Any]:
        """The model's outputs by name: arrays, lists of arrays for sequences, None if absent."""

    def output(self, name: str) -> Any:
        """One of the outputs, without making all of them."""
        return self.outputs()[name]

    def views(self) -> dict[str, Any]:
        """The same `outputs`, maybe in memory of the program's own, where its next step may write
        into them.
        """
        return self.outputs()

    def value(self, name: str) -> Any:
        """What a segment that has run made of a tensor of the kernels, as `outputs` has it.

        Outputs and state are there when a step is over. Other values are there only where another
        runtime reads them, and only until the next segment of the device that made them begins.
        """
        raise NotImplementedError(f"this program gives no values away, {name!r} was asked for")

    def view(self, name: str) -> Any:
        """The same `value`, maybe in memory of the program's own, where the next segment may write
        into it.
        """
        return self.value(name)

    def take(self, name: str, value: Any) -> None:
        """Use the `value` of another program for a tensor that no segment here makes; an array is
        copied.
        """
        raise NotImplementedError(f"this program takes no values, {name!r} came")

    def device_times(self) -> DeviceTimes | None:
        """Times of the last step, asked after it; None where the caller's clock knows them."""
        return None

    def feed(self, number: int) -> None:
        """Take the inputs of this number for the steps to come; only those of `open_ring` have
        others than number 0, which every program begins with.
        """
        assert number == 0, f"this program has one set of inputs, number {number} was asked for"

    def advance(self) -> None:  # noqa: B027
        """Let the next step start from the state that the last one made; nothing without state."""

    def state(self) -> dict[str, Any]:
        """What the next step starts from and updates, by the model's own names, in host memory."""
        return {}

    def take_state(self, state: Mapping[str, Any]) -> None:
        """Start the next step from the `state` of another program of the same model.

        Caches become this program's own: its steps write into them.
        """
        assert not state, f"this program keeps no state, {sorted(state)[:3]} came"

    def nudge(self) -> None:  # noqa: B027 - few are compared with what rounds in another order
        """Let all numbers that the next step starts from be off by rounding."""

    def pinned(self, lanes: Sequence[Lane]) -> Sequence[Lane]:
        """The same lanes, their devices with the cores on which the lanes' own threads stay."""
        return lanes

    def carried(self, lanes: Sequence[Lane], num_segments: int) -> Carried:
        """The lanes that run steps of this program: threads of this process, where it computes."""
        launch, finish, lanes = self.launch, self.finish, self.pinned(lanes)
        may_try = self.waits_awake and len(lanes) > 1 and not why_not()
        return Lanes(
            lanes,
            num_segments,
            launch,
            finish=finish,
            rest=self.rest,
            native=self.native,
            is_repeatable=self.is_repeatable,
            awake=may_try and not share_cores(lane.device for lane in lanes),
        )

    def streamed(
        self,
        ring: "Sequence[Program]",
        lanes: Sequence[Lane],
        stage_of: Sequence[int],
        watched: range,
    ) -> Streamed:
        """The lanes that run samples through a ring of programs, of which this is one."""
        if self.rest is not None:
            self.rest()
            Lanes.have_others_rest(time.monotonic() + REST_S)
        return RingLanes(ring, lanes, stage_of, watched)

    def stop(self) -> None:  # noqa: B027 - most need nothing
        """Ask segments that are running to end soon; called from another thread."""

    def close(self) -> None:  # noqa: B027
        """Free sessions and buffers; the program cannot run afterwards."""


class Compiled(ABC):
    """A model as the kernels that a runtime makes of it, with the real sizes of their tensors.

    `sources[k]` names the source ops whose work kernel k does: empty for the runtime's own.
    `random_ops` names source ops that are random by definition. `renewals` are the state that a
    step starts from and updates. `keeps_order` says whether a segment runs its kernels in the
    order of the schedule, or else in one that the runtime finds.
    """

    keeps_order: ClassVar[bool] = False
    kernels: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...]
    renewals: tuple[Renewal, ...] = ()

    @abstractmethod
    def feeds(self, seed: int, given: Feeds) -> dict[str, Any]:
        """Inputs for one step: those given, checked against the model, and the others seeded."""

    @abstractmethod
    def open(self, schedule: Schedule, feeds: Feeds) -> Program:
        """Make a schedule of these kernels ready to run on these inputs."""

    @abstractmethod
    def open_ring(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int
    ) -> tuple[Program, ...]:
        """The schedule `depth` times, each with memory of its own, so that as many samples can be
        in flight; each takes any of the inputs by `feed`.
        """

    @abstractmethod
    def unplaced(self, device: Device | None, feeds: Feeds) -> Program:
        """The whole model as the runtime runs it by itself: a program of one segment.

        On one device, or with None on the whole CPU with all its cores.
        """

    def in_python(self) -> "Compiled":
        """The same model, of whose programs none has `native` or replayed segments: to compare
        with.
        """
        return self

    def by_op(self) -> "Compiled | None":
        """The same model with one kernel for each source op; None where the runtime joins some in
        any case.
        """
        return None

    def with_copies(self) -> "Compiled":
        """The same model, whose programs have all state in two places where one may be lost."""
        return self

    def probe(self) -> Mapping[str, float]:
        """Seconds of a fixed piece of work by device, for those that are elsewhere."""
        return {}

    def among(self, machine: Machine) -> "Compiled":
        """The same kernels on the same devices, of which some are another runtime's now."""
        raise NotImplementedError("this runtime shares its kernels with no other")

    def exchanges(self, tensor: Tensor) -> bool:
        """Whether programs of these kernels give and take this tensor (`value` and `take`)."""
        return False

    def close(self) -> None:  # noqa: B027
        """Free what compiling has kept."""


class Backend(ABC):
    """A device runtime.

    `format` is the one format of models that it runs, empty for any. `cpu_provider` is what it
    calls the CPU of this computer, which then may be split into lanes; empty where it offers none.
    Of the runtimes of a format the one that `leads` drives the lanes of the machine `local`. With
    `emulated` nothing is computed: a live run follows a virtual clock. `tells_latency` says that
    the constant part of `copy_seconds` is the link's own and no cost of calling the runtime.
    Devices `elsewhere` are those of other computers: no machine `local` has them.
    """

    name: ClassVar[str]
    format: ClassVar[str] = ""
    cpu_provider: ClassVar[str] = ""
    leads: ClassVar[bool] = False
    emulated: ClassVar[bool] = False
    tells_latency: ClassVar[bool] = True
    elsewhere: ClassVar[bool] = False

    def runs(self, format: str) -> bool:
        """Whether models of this format are computed here."""
        return not self.emulated and self.format in ("", format)

    def is_cpu(self, device: Device) -> bool:
        """Whether a device is the CPU itself, or a lane of it."""
        return bool(self.cpu_provider) and device.provider == self.cpu_provider

    @abstractmethod
    def missing(self) -> str:
        """What keeps this runtime from running ("needs: pip install ..."); empty if nothing."""

    @abstractmethod
    def devices(self) -> tuple[Device, ...]:
        """The devices that this runtime offers here; the whole CPU is one."""

    @abstractmethod
    def libraries(self) -> tuple[tuple[str, str], ...]:
        """(library, version) pairs whose change makes measured numbers stale."""

    def why_missing(self, device: Device, here: Mapping[str, Device]) -> str:
        """Why a device is none of those `here` (by name), as the rest of a sentence, or nothing."""
        found = here.get(device.name)
        if found is None or found.provider != device.provider:
            return f"this computer has no {device.provider or device.name} that works"
        if device.label and device.label != found.label:
            return f"this computer has {found.label}, not {device.label}"
        return ""

    def copy_seconds(
        self, src: Device, dst: Device, sizes: Sequence[int]
    ) -> Sequence[float] | None:
        """Seconds by size of a copy from one device to another; None where nobody can tell.

        One of the two is this runtime's; the other is, too, or it is on the host.
        """
        return None

    def send_overhead(self, src: Device, dst: Device, size: int) -> float:
        """The share of a copy's seconds, 0 to 1, for which the sender can do nothing else."""
        return 0.0

    def executor(
        self, address: str, lost: Callable[[str], object], *, asked: bool = True
    ) -> Executor | None:
        """The other computers as who carries out searches, where devices are elsewhere.

        `lost` hears a sentence where some of them leave. None where there are none, which is a
        ValueError where somebody `asked` for them.
        """
        return None

    def machine(self, spec: str) -> Machine:
        """What a person names by this runtime's own name, where its devices are elsewhere."""
        raise ValueError(f"{self.name} has no machine {spec!r}; use local.")

    def hosts(self, spec: str) -> Sequence[Mapping[str, Any]]:
        """The computers of such a machine, a row each; ValueError where they do not agree."""
        return ()

    def link_costs(
        self, devices: Sequence[Device]
    ) -> Mapping[tuple[str, str], tuple[float, float]]:
        """Latency in s and bytes per s between devices that are elsewhere, measured there."""
        return {}

    def link_cards(self, devices: Sequence[Device]) -> Mapping[tuple[str, str], str]:
        """The network cards that links between such devices share, measured there."""
        return {}

    def counters(self, devices: Collection[str]) -> Counted | None:
        """What cores of other computers have been busy since they were started, where devices of
        these names are elsewhere; None where nobody can tell.
        """
        return None

    def dedicate(self, machine: Machine) -> None:  # noqa: B027
        """Tell the runtime that this process serves one machine only; called before all else."""

    @abstractmethod
    def compile(self, model: Model, machine: Machine) -> Compiled:
        """Let the runtime optimise a model for the devices of a machine."""
