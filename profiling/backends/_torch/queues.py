"""What a PyTorch program asks of a memory: queues of work, marks in them, copies in and out."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

Work = Callable[[], None]
# Captures what some work launches, without launching it; what it returns launches that again. None
# where the work cannot be captured: then it has done nothing.
Capture = Callable[[Work], Work | None]


class Mark(ABC):
    """A point in a queue."""

    @abstractmethod
    def wait(self) -> None:
        """Let the calling thread sleep until all work before the mark is over."""

    @property
    @abstractmethod
    def time_s(self) -> float:
        """When that was, on the clock of `time.perf_counter`; asked once it is over."""


class Queue(ABC):
    """Work done in the order it comes."""

    @abstractmethod
    def call(self, work: Work) -> None:
        """Do the work after what is in the queue; it may be under way when this returns."""

    @abstractmethod
    def mark(self) -> Mark:
        """A mark behind what is in the queue."""

    @abstractmethod
    def after(self, mark: Mark) -> None:
        """Let what comes wait for a mark, of this queue or another."""


class Place(ABC):
    """A memory: `compute` works in it, `inbound` fills it, `outbound` copies from it to the host.

    `take` and `give` are work of those queues, and may be under way when they return. `stage` makes
    a host value ready for that: where it is left out, computing may have to wait.
    """

    device: torch.device
    compute: Queue
    inbound: Queue
    outbound: Queue

    @abstractmethod
    def take(self, value: torch.Tensor) -> torch.Tensor:
        """A copy in this memory of a value in host memory, or in another of the same kind."""

    @abstractmethod
    def give(self, value: torch.Tensor) -> torch.Tensor:
        """A copy in host memory of a value in this one."""

    def stage(self, value: torch.Tensor) -> torch.Tensor:
        """The value in host memory that copies move from without anybody's help."""
        return value

    def capture(self) -> Capture | None:
        """What captures work of the `compute` queue for one program; None where nothing does."""
        return None

    def watch_memory(self) -> int | None:
        """Bytes in use now, where the peak is watched from; None where nobody counts."""
        return None

    def peak_bytes(self) -> int:
        """The most bytes in use since then."""
        return 0

    def synchronise_clock(self) -> None:  # noqa: B027 - most follow the host's
        """Compare this device's clock with the host's; called while it is idle."""
