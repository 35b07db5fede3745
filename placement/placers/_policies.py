"""Settings `policy` and `save` of learners by gradient: where a network begins, and is written to.

`placement/learning/carrying.py` says what of it carries to other graphs and machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from placement.core.formatting import counted
from placement.learning.carrying import LAYOUT, Carried, Numbers
from placement.learning.checkpoint import load_policy, path_of, require_folder, save_policy
from placement.placers.base import setting

if TYPE_CHECKING:
    from placement.core.graph import Ints
    from placement.learning.budget import Budget
    from placement.learning.environment import Environment
    from placement.learning.training import Learned, Tell
    from placement.placers._learned import Find


def policy_setting(default: str = "") -> Any:
    """The setting `policy`."""
    told = "Path of a policy to begin with, or 'bundled'; empty: untrained"
    return setting(default, told, policy="read")


def save_setting() -> Any:
    """The setting `save`."""
    return setting("", "Path to write the policy to in the end; empty: nowhere", policy="written")


def written(learned: Learned, write: Callable[[], None]) -> Learned:
    """What was learned, with a remark where its policy could not be written: the placement that
    was found is worth more."""
    try:
        write()
    except (OSError, ValueError) as error:
        return replace(learned, remark=f"the policy was not saved ({error})")
    return learned


@dataclass(frozen=True)
class PolicyFiles:
    """From which file a learner's networks begin, and to which the last is written.

    `sizes` are those by which the shapes of its networks differ from others of the same learner.
    """

    learner: str
    preset: Literal["tuned", "paper"]
    policy: str
    save: str
    sizes: Mapping[str, int]

    def __post_init__(self) -> None:
        if self.preset == "paper" and (self.policy or self.save):
            raise ValueError(
                f"The preset 'paper' of {self.learner!r} knows no policies on disk; leave 'policy'"
                " and 'save' empty or take the preset 'tuned'."
            )
        require_folder(self.save)

    def begin(self, carried: Carried) -> str:
        """Let a network begin from the policy, if there is one; what is to be said of that."""
        arrays = self._arrays(carried)
        if arrays is None:
            return ""
        num_new = carried.begin(arrays)
        return f"the policy does not know {counted(num_new, 'device')}" if num_new else ""

    def keeping(self, find: Find) -> Find:
        """The method, which writes in the end what it learned."""

        def found(
            environment: Environment, budget: Budget, tell: Tell, start: Ints | None
        ) -> Learned:
            learned = find(environment, budget, tell, start)
            carried = learned.carried
            if not self.save or carried is None:
                return learned

            def write() -> None:
                arrays = carried.arrays(self._arrays(carried))
                save_policy(Path(self.save), self.learner, self._sizes, arrays)

            return written(learned, write)

        return found

    @property
    def _sizes(self) -> dict[str, int]:
        return {**LAYOUT, **self.sizes}

    def _arrays(self, carried: Carried) -> dict[str, Numbers] | None:
        path = path_of(self.policy, self.learner)
        if path is None:
            return None
        return load_policy(path, self.learner, self._sizes, carried.shapes)
