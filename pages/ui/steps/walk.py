"""Where this session is in the steps of a method: which method, which step, what was answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pages.ui.session import cache, choices
from placement.api.steps import Steps
from placement.search.steps import Question, Step
from studio.jobs import methods
from studio.snapshot import Studio

# The widget of the dock's tabs, and this one among them.
DOCK, TAB = "dock-tab", "Steps"
METHOD, PREDICT = "steps-method", "steps-predict"
# The placement beside which methods are followed, and what had been selected when a step came.
BESIDE, SELECTED = "steps-beside", "steps-selected"
# How often the steps were left because another placement came.
LEFT = "steps-left"
FIRST = "heft"


@dataclass(frozen=True)
class Walk:
    """The steps of a method, and the one that is on the screen.

    With `predicts` a question hides its step until it is answered; `answers` are numbers of choices
    by number of the step.
    """

    method: str
    found: Steps
    at: int
    predicts: bool
    answers: Mapping[int, int]

    @property
    def steps(self) -> Sequence[Step]:
        return self.found.steps

    @property
    def step(self) -> Step:
        return self.steps[self.at]

    @property
    def called(self) -> str:
        """The step on the screen as the picture calls it."""
        return f"Step {self.at + 1} of {len(self.steps)} of {self.method}"

    @property
    def before(self) -> Step:
        """The step before, which is all that somebody knows who has to answer first."""
        return self.steps[max(0, self.at - 1)]

    @property
    def is_hidden(self) -> bool:
        return self.predicts and self._is_open(self.at)

    @property
    def furthest(self) -> int:
        """The step up to which one can go from here: no further than the next open question."""
        last = len(self.steps) - 1
        ahead = range(self.at, last if self.predicts else self.at)
        return next((i for i in ahead if self._is_open(i)), last)

    def _is_open(self, number: int) -> bool:
        return self.steps[number].question is not None and number not in self.answers

    @property
    def asks_for_op(self) -> bool:
        """Whether the answer that is hidden is what the step is about, and not where it goes."""
        question = self.step.question
        devices = {device.name for device in self.found.problem.machine.devices}
        return self.is_hidden and question is not None and question.answer not in devices

    @property
    def focus(self) -> tuple[str, ...]:
        """The ops that the step is about, as far as that may be known."""
        return () if self.asks_for_op else self.step.focus

    @property
    def devices(self) -> tuple[int, ...]:
        """The device of each unit as far as it may be known, -1 where it is not placed."""
        return (self.before if self.is_hidden and self.at else self.step).devices

    @property
    def num_right(self) -> int:
        asked = ((self.steps[at].question, given) for at, given in self.answers.items())
        return sum(_is_right(question, given) for question, given in asked)


def _is_right(question: Question | None, given: int) -> bool:
    return question is not None and question.choices[given] in question.answers


def methods_with_steps(now: Studio) -> list[str]:
    """Methods for the problem and goal on the screen that show their steps."""
    return [name for name, method in methods.fitting(now.problem).items() if method.pseudo_code]


def chosen(now: Studio) -> str:
    """The method to follow: the one picked last, else the strip's, else HEFT; empty for none."""
    names = methods_with_steps(now)
    key = choices.own(METHOD)
    typed = choices.typed(key, choices.kept(key, choices.remembered("placer", FIRST)))
    fallback = FIRST if FIRST in names else next(iter(names), "")
    return str(typed) if typed in names else fallback


def walk(now: Studio) -> Walk | None:
    """What is followed on this project; None where no method shows its steps here, or not yet."""
    method = chosen(now)
    found = cache.steps(now.pinned_problem, method) if method else None
    if found is None:
        return None
    remembered = choices.kept(_key(now, method), {})
    return Walk(
        method,
        found,
        min(int(remembered.get("at", 0)), len(found.steps) - 1),
        bool(choices.typed(choices.own(PREDICT), False)),
        {int(at): given for at, given in remembered.get("answers", {}).items()},
    )


def is_open(now: Studio) -> bool:
    """Whether the tab is open, and what it shows is still about the placement on the screen."""
    opened = choices.typed(tabs(), choices.kept(DOCK, choices.remembered(DOCK, "")))
    return bool(opened == TAB) and not is_overtaken(now)


def on_screen(now: Studio) -> Walk | None:
    """The walk that the picture shows: while its tab is open, once the method has an answer."""
    if not is_open(now):
        return None
    try:
        return walk(now)
    except ValueError:
        return None


def tabs() -> str:
    """What the widget of the dock's tabs is known by."""
    number = choices.kept(LEFT, 0)
    return f"{DOCK}-{number}" if number else DOCK


def leave(tab: str) -> None:
    """Open another tab that nobody has clicked.

    The tabs are another widget from then on: a browser that has not heard of it yet may send once
    more which of the old ones is open.
    """
    choices.keep(LEFT, choices.kept(LEFT, 0) + 1)
    choices.keep(DOCK, tab)


def begin(now: Studio) -> None:
    """Note, once for each time that the tab is open, beside which placement it is."""
    if not choices.kept(BESIDE, ""):
        choices.keep(BESIDE, _placement_of(now))
        choices.keep(SELECTED, choices.num_selections())


def end() -> None:
    choices.keep(BESIDE, "")


def is_overtaken(now: Studio) -> bool:
    """Whether another placement has come on the screen since, which somebody wants to see now."""
    begun = choices.kept(BESIDE, "")
    return bool(begun) and begun != _placement_of(now)


def _placement_of(now: Studio) -> str:
    """Stands for the placement on the screen as it is."""
    return f"{now.named.name} {cache.stamp(now.shelf.path(now.named.name))}"


def ringed(shown: Walk) -> tuple[str, ...]:
    """What the step is about, until something else is selected."""
    is_new = choices.num_selections() != choices.kept(SELECTED, 0)
    return choices.selection() if is_new and choices.selection() else shown.focus


def go_to(now: Studio, shown: Walk, at: int) -> None:
    """Show another step."""
    _keep(now, shown, min(max(0, at), shown.furthest), shown.answers)


def answer(now: Studio, shown: Walk, at: int, given: int) -> None:
    """Remember the first answer to the question of a step."""
    question = shown.steps[at].question if at < len(shown.steps) else None
    if question is not None and given < len(question.choices) and at not in shown.answers:
        _keep(now, shown, shown.at, {**shown.answers, at: given})


def _keep(now: Studio, shown: Walk, at: int, answers: Mapping[int, int]) -> None:
    # What was selected beside the step before is no part of this one.
    if choices.num_selections() != choices.kept(SELECTED, 0):
        choices.select(())
    choices.keep(SELECTED, choices.num_selections())
    state = {"at": at, "answers": {str(number): given for number, given in answers.items()}}
    choices.keep(_key(now, shown.method), state)


def _key(now: Studio, method: str) -> str:
    return f"steps-{method}-{now.pinned_problem.fingerprint}"
