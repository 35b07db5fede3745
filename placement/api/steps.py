"""The verb `steps`: what a placer works out on its way to a placement, one step after another."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placement.api.place import COMPILING, alone, sequenced_in_words
from placement.core.events import Emit, silent
from placement.core.verb_options import PlaceOptions, StepsOptions, made

if TYPE_CHECKING:
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.placers.base import Progress
    from placement.search.steps import Step


@dataclass(frozen=True)
class Steps:
    """A method at work on a problem: the lines that it follows, and where it is at each step.

    `account` and `bound_s` are what it told of its answer, as to `place`: how it came about, and
    seconds that no placement of the problem is below, 0 where it proved none. `seconds` is how long
    it was followed, once it was compiled.
    """

    placer: str
    pseudo_code: tuple[str, ...]
    problem: Problem
    steps: tuple[Step, ...]
    account: str = ""
    bound_s: float = 0.0
    seconds: float = 0.0

    @property
    def placement(self) -> Placement:
        """The method's answer."""
        found = self.steps[-1].placement
        assert found is not None
        return found


def steps(
    problem: Problem,
    placer: str | StepsOptions = StepsOptions.placer,
    *,
    emit: Emit = silent,
    **named: Any,
) -> Steps:
    """What a placer works out on its way: the same as `place`, step by step.

    The last step has what `place` would answer. A ValueError says which placers show their steps.
    `emit` hears of each step, and of the batches of a learner, which has steps to show once its
    search has ended. An exception of its ends the work.
    """
    given = None if isinstance(placer, str) else placer
    options = made(StepsOptions, given, named if given else {"placer": placer, **named})
    from placement.advice.warming import warm_up
    from placement.placers import current_name, placer_class
    from placement.placers.base import build, require_fitting

    name = current_name(options.placer)
    kind = placer_class(name)
    if not kind.pseudo_code:
        why = f": {kind.no_steps}" if kind.no_steps else ""
        raise ValueError(
            f"Placer {name!r} does not show its steps{why}; those that do are"
            f" {', '.join(placers_with_steps())}."
        )
    require_fitting(name, kind, problem, "choose another placer")
    asked = PlaceOptions(placer=name, seed=options.seed, settings=options.settings)
    built = build(kind, asked)

    account, bound_s = "", 0.0

    def tell(progress: Progress) -> bool:
        nonlocal account, bound_s
        account, bound_s = progress.note or account, max(bound_s, progress.bound_s)
        # Who searches by samples does so in batches; others are told of by their steps.
        if progress.evaluations:
            emit({"event": "progress", "what": "batches", "step": progress.step, "of": progress.of})
        return True

    with alone(kind, problem, emit):
        emit({"event": "progress", "what": COMPILING, "step": 0, "of": 0})
        warm_up(built, problem)
        emit({"event": "progress", "what": "steps", "step": 0, "of": 0})
        found: list[Step] = []
        begun_s = time.perf_counter()
        for step in built.steps(problem, options.most, tell):
            found.append(step)
            emit({"event": "progress", "what": "steps", "step": len(found), "of": 0})
        seconds = time.perf_counter() - begun_s
    walk = _in_sequence(problem, tuple(found))
    account = sequenced_in_words(account) if len(walk) > len(found) else account
    return Steps(name, kind.pseudo_code, problem, walk, account, bound_s, seconds)


def _in_sequence(problem: Problem, found: tuple[Step, ...]) -> tuple[Step, ...]:
    """A method's steps, with one more where the sequences that the problem pins change its answer.

    No method knows of them: `place` puts its answer into their order in the end, too.
    """
    from placement.schedule.reordering import in_sequence
    from placement.search.step_parts import ended

    *before, last = found
    assert last.placement is not None
    held = in_sequence(problem, last.placement) if problem.sequences else last.placement
    if held is last.placement:
        return found
    said = "Then the ops run in the order that is pinned."
    own = replace(last, placement=None)
    return (*before, own, ended(problem, held, last.line, said))


def placers_with_steps() -> tuple[str, ...]:
    """The names of the placers that show their steps."""
    from placement.placers import names, placer_class

    return tuple(name for name in names() if placer_class(name).pseudo_code)
