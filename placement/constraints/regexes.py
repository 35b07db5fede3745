"""Regular expressions over names, in one process and under one budget.

Matching by backtracking takes exponential time on some names, and expressions may come from
anywhere. So all expressions of a question are matched in a process of their own, which shares its
computing time among them by turns: quick ones finish in the first, and one that never ends keeps no
other waiting. What has not finished when the budget is used up is too slow.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

# Computing time of all expressions together, and what the clock may show on a busy computer.
BUDGET_S = 2.0
WALL_PER_BUDGET = 3.0


@dataclass(frozen=True)
class Searched:
    """Indices of the names in which an expression was found; or why nobody knows."""

    found: tuple[int, ...] = ()
    too_slow: bool = False
    error: str = ""


def search_names(
    patterns: Sequence[str],
    names: Sequence[str],
    *,
    any_case: bool = False,
    budget_s: float | None = None,
) -> tuple[Searched, ...]:
    """What each expression finds in the names, all of them within one budget."""
    if not patterns:
        return ()
    limit_s = BUDGET_S if budget_s is None else budget_s
    told = _told(json.dumps([list(patterns), list(names), any_case, limit_s]), limit_s)
    answers = {}
    # A line that was cut off when the process ended is none.
    for line in told[: told.rfind("\n") + 1].splitlines():
        number, found, error = json.loads(line)
        answers[number] = Searched(tuple(found), error=error)
    return tuple(answers.get(n, Searched(too_slow=True)) for n in range(len(patterns)))


def _told(question: str, limit_s: float) -> str:
    """The lines that the process wrote until it ended, or was ended."""
    command = [sys.executable, "-I", "-S", "-c", MATCHER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            told, _ = process.communicate(question, timeout=WALL_PER_BUDGET * limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            told, _ = process.communicate()
    return told


# Each turn gives the expressions that are left equal shares of a part of the time that is left, a
# tenth at first, then more, and they go on at the name where they were. The clock tells when a turn
# ends, because its timer is finer. Windows has none: there it is one after another.
MATCHER = """
import json, re, signal, sys, time

patterns, names, any_case, budget_s = json.load(sys.stdin)
timer = getattr(signal, "ITIMER_REAL", None)
armed = False


class Late(Exception):
    pass


def ring(*_):
    if armed:
        raise Late


class Search:
    def __init__(self, number):
        self.number, self.expression, self.next, self.found = number, None, 0, {}

    def go_on(self, seconds):
        global armed
        try:
            armed = True
            if timer is not None:
                signal.setitimer(timer, seconds)
            error = self.work()
            armed = False
        except Late:
            armed = False
            return False
        print(json.dumps([self.number, list(self.found), error]), flush=True)
        return True

    def work(self):
        try:
            if self.expression is None:
                flags = re.IGNORECASE if any_case else 0
                self.expression = re.compile(patterns[self.number], flags)
        except (re.error, OverflowError, RecursionError) as error:
            return str(error) or "it cannot be read"
        while self.next < len(names):
            if self.expression.search(names[self.next]):
                self.found[self.next] = True
            self.next += 1
        return ""


if timer is not None:
    signal.signal(signal.SIGALRM, ring)
left = [Search(number) for number in range(len(patterns))]
part = 0.1
end_s = time.process_time() + budget_s
while left:
    time_left_s = end_s - time.process_time()
    if timer is not None and time_left_s < 0.02 * budget_s:
        break
    share_s = max(0.001, part * time_left_s / len(left))
    part = min(0.5, 2 * part)
    left = [search for search in left if not search.go_on(share_s)]
"""
