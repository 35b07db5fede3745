"""What a placement is judged by, and how devices run kernels: the choices that make a problem.

Objective and execution are words in files and on the command line, and equal to them. Wording that
depends on the objective is an attribute of it. Where algorithms branch on them is told in
docs/design.md. The rules are the extensions of Tarnawski et al., "Efficient Algorithms for Device
Placement of DNN Graph Operators", NeurIPS 2020.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from placement.core.amounts import MOST
from placement.core.decoding import listed, shown
from placement.core.formatting import counted
from placement.core.verb_options import option


class _Word(StrEnum):
    """One of few words; it stands in sentences as it is written in files."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        what = cls.__name__.lower()
        raise ValueError(f"The {what} {shown(value)} is not known; use one of {listed(cls)}.")

    def __repr__(self) -> str:
        return repr(self.value)


class Objective(_Word):
    """Seconds of one step, or seconds between samples of a full pipeline.

    `per` is what takes those seconds; `goal` and `heading` are the aim in few words and in full.
    """

    per: str
    goal: str
    heading: str

    LATENCY = "latency", "step", "shortest step", "Shortest step"
    THROUGHPUT = "throughput", "sample", "most samples", "Most samples per second"

    def __new__(cls, word: str, per: str = "", goal: str = "", heading: str = "") -> Self:
        self = str.__new__(cls, word)
        self._value_, self.per, self.goal, self.heading = word, per, goal, heading
        return self


class Execution(_Word):
    """Each kernel its own task, neighbours of a device in one call, or calls of subgraphs."""

    OP = "op"
    SEGMENT = "segment"
    CALL = "call"

    @property
    def uses_links(self) -> bool:
        """Whether tensors cross links as transfers of their own; calls move them inside."""
        return self is not Execution.CALL


@dataclass(frozen=True, kw_only=True)
class CallRules:
    """How a full pipeline of calls is charged: settings of the cost model that files do not state.

    They are of the objective "throughput" under the execution "call"; what they cost is stated in
    `placement/simulator/call_costs.py`. The plain sum of compute and transfers, unless a field says
    otherwise.

    With `overlap` an accelerator moves tensors while it computes, so that the longer counts. With
    `gpipe` all forward work of a batch is done before its backward work, so that the largest
    forward load and the largest backward load add up. Accelerators that share a part keep its
    weights alike at `sync_bytes_per_ms`, None is free. Accelerators are in clusters of
    `cluster_size` in declared order, None is one cluster, and what goes from one cluster to another
    takes `slow_link_factor` as long.
    """

    overlap: bool = option(
        False,
        "workload files, throughput: an accelerator moves tensors while it computes, so that only"
        " the longer of both counts, not their sum",
        flag="--overlap",
        label="Transfers overlap compute",
    )
    gpipe: bool = option(
        False,
        "workload files, throughput: forward work of a batch is done before its backward work, as"
        " in GPipe, so that the largest forward load and the largest backward load add up",
        flag="--gpipe",
        label="Forward and backward apart, as in GPipe",
    )
    sync_bytes_per_ms: float | None = option(
        None,
        "workload files, throughput: accelerators that share a stage (placer replicate) keep its"
        " weights alike at so many bytes per millisecond; left out it costs nothing",
        flag="--sync-bytes-per-ms",
        metavar="B",
        label="Bytes per ms between replicas",
        least=1.0,
    )
    cluster_size: int | None = option(
        None,
        "workload files, throughput: accelerators are in clusters of so many, with slower links"
        " between clusters",
        flag="--cluster-size",
        metavar="N",
        label="Accelerators in a cluster",
        least=1,
    )
    slow_link_factor: float = option(
        1.0,
        "how many times as long a tensor takes between accelerators of different clusters",
        flag="--slow-link-factor",
        metavar="F",
        label="Slower between clusters, times",
        least=1.0,
    )

    def __post_init__(self) -> None:
        sync, size = self.sync_bytes_per_ms, self.cluster_size
        if sync is not None and not 0 < sync <= MOST:
            raise ValueError(f"Replicas cannot exchange {sync} bytes per ms; use more than zero.")
        if size is not None and size < 1:
            raise ValueError(f"A cluster cannot have {size} accelerators; use 1 or more.")
        if not 1 <= self.slow_link_factor <= MOST:
            raise ValueError(
                "Between clusters a tensor cannot take"
                f" {self.slow_link_factor} times as long as within one; use 1 or more."
            )
        if size is None and self.slow_link_factor > 1:
            raise ValueError(
                "Links between clusters are slower, but no cluster is named; say how many"
                " accelerators each has, too (--cluster-size)."
            )

    @property
    def has_clusters(self) -> bool:
        """Whether it matters in which cluster an accelerator is."""
        return self.cluster_size is not None and self.slow_link_factor > 1

    @property
    def is_plain(self) -> bool:
        """Whether loads of placements without replicas are plain sums."""
        return not (self.overlap or self.gpipe or self.has_clusters)

    @property
    def words(self) -> str:
        """The settings that are in force, beside the plain sum; empty where there are none."""
        said = ["transfers overlap compute"] if self.overlap else []
        said += ["forward and backward apart (GPipe)"] if self.gpipe else []
        if self.has_clusters:
            said.append(
                f"clusters of {counted(self.cluster_size or 1, 'accelerator')},"
                f" {self.slow_link_factor:g} times as long between them"
            )
        if self.sync_bytes_per_ms is not None:
            said.append(f"replicas exchange {self.sync_bytes_per_ms:g} bytes per ms")
        return "; ".join(said)

    @property
    def sync_s_per_byte(self) -> float:
        """Seconds per byte between accelerators that share a part."""
        return 0.0 if self.sync_bytes_per_ms is None else 1e-3 / self.sync_bytes_per_ms

    @property
    def decisive(self) -> tuple[object, ...]:
        """What decides values, beyond `overlap`; empty where all is as usual."""
        clusters = (self.cluster_size, self.slow_link_factor) if self.has_clusters else None
        told = (self.gpipe, self.sync_bytes_per_ms, clusters)
        return () if told == (False, None, None) else told

    def clusters(self, num_accelerators: int) -> tuple[int, ...]:
        """The cluster of each accelerator in declared order."""
        size = self.cluster_size if self.has_clusters and self.cluster_size else num_accelerators
        return tuple(i // max(1, size) for i in range(num_accelerators))


PLAIN = CallRules()
