"""What a placement is judged by, and how devices run kernels: the two choices that make a problem.

Both are words in files and on the command line, and equal to them. Wording that depends on the
objective is an attribute of it. Where algorithms branch on them is told in docs/design.md.
"""

from enum import StrEnum
from typing import Self

from placement.core.decoding import listed, shown


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
