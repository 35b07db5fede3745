"""Steps of searches by moves: what a chain has written down of its first moves and of its turns.

The chain is the one that `place` runs, with room for a trace; of several the one that leads to the
answer is shown. A move that turns out too slow is given up as soon as that is sure, so what it
would have taken exactly is not known, only that it is more than was allowed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from placement.core.formatting import counted, seconds
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.placers._multistart import Improved
from placement.search.chain import Chain, Turn
from placement.search.step_parts import (
    device_names,
    drawn,
    ended,
    ops_called,
    ops_of_units,
    table,
    unit_called,
    yes_or_no,
)
from placement.search.steps import Cell, Kind, Question, Step, Table
from placement.simulator.run_state import ACCEPTED, BEST, NO_ROOM

BEGIN, TRY, ACCEPT, REFUSE, TURN, ANSWER = range(6)
# Moves in the table of the last ones.
LAST = 8
VERDICTS = ("no room", "taken back", "accepted", "the best so far")


class _Move(NamedTuple):
    """A move of the trace: what it was to move, from where, and what came of it."""

    units: tuple[int, ...]
    back: tuple[int, ...]
    ops: tuple[str, ...]
    what: str
    what_back: str
    came_from: str
    dest: str
    came: int
    temperature_s: float
    limit_s: float
    before_s: float
    after_s: float
    best_s: float

    @property
    def is_accepted(self) -> bool:
        return self.came >= ACCEPTED


def walk(problem: Problem, found: Improved, most: int) -> Iterator[Step]:
    """The moves of the chain that found the answer, as many as it has traced, and the answer."""
    answer = found.best(problem)
    at = next((i for i, c in enumerate(found.chains) if c.placement == answer), 0)
    chain = found.chains[at]
    show = _Shown(problem, chain)
    yield show.begun(found.starts, at)
    turns = list(chain.turns)
    for row in range(int(chain.trace.num[0])):
        while turns and turns[0].num_traced <= row:
            yield from show.turned(turns.pop(0))
        if row == most:
            break
        yield show.moved(row)
    yield show.over(turns)
    own = answer in [each.placement for each in found.chains]
    said = "The best placement of all searches is the answer."
    if not own:
        said = "No search found better than where it started, so the best start is the answer."
    yield ended(problem, answer, ANSWER, said)


class _Shown:
    """Where the chain is at a move, and how it is told."""

    def __init__(self, problem: Problem, chain: Chain) -> None:
        self.problem, self.chain = problem, chain
        self.names = device_names(problem)
        self.is_hot = chain.cold > 0
        self.devices, self.order = chain.start.devices.copy(), chain.start.order
        self.value_s = self.best_s = chain.start_s
        self.moves: list[_Move] = []
        self.came: Counter[int] = Counter()
        self._spans: tuple[Span, ...] | None = None

    def time(self, value_s: float) -> str:
        return seconds(value_s, self.problem.unit)

    def spans(self) -> tuple[Span, ...]:
        """The timeline that is predicted of the base, where that is quick."""
        if self._spans is None:
            self._spans = drawn(self.problem, self.devices, self.order)
        return self._spans

    def step(
        self,
        line: int,
        why: str,
        focus: tuple[str, ...] = (),
        *tables: Table,
        question: Question | None = None,
    ) -> Step:
        return Step(
            line=line,
            why=why,
            devices=tuple(self.devices.tolist()),
            focus=focus,
            spans=self.spans(),
            tables=tables,
            question=question,
        )

    def begun(self, starts: Sequence[Placement], at: int) -> Step:
        which = "The search"
        if len(starts) > 1:
            which = (
                f"Of {counted(len(starts), 'search', 'searches')} number {at + 1} is followed: it"
            )
        why = f"{which} begins with a placement that takes {self.time(self.value_s)}."
        return self.step(BEGIN, why)

    def moved(self, row: int) -> Step:
        """A move of the trace, made."""
        move = self._move(row)
        self.moves.append(move)
        self.came[move.came] += 1
        if move.is_accepted:
            self._go_to(move)
        is_open = move.came != NO_ROOM
        goes = f"{move.what} goes to {move.dest}{self._making_room(move)}"
        text = f"Does the step get shorter if {goes}?"
        shorter = move.is_accepted and move.after_s < move.before_s
        return self.step(
            TRY if not is_open else ACCEPT if move.is_accepted else REFUSE,
            self._why(move),
            move.ops,
            self._last_moves(),
            self._state(move),
            question=yes_or_no(text, shorter) if is_open else None,
        )

    def _move(self, row: int) -> _Move:
        unit, block, d, back_unit, back_block, came = self.chain.trace.moves[row].tolist()
        temperature_s, limit_s, after_s, best_s = self.chain.trace.figures[row].tolist()
        free = self.problem.allowed
        units = tuple(u for u in self._group(unit, block) if self.devices[u] != d and free[u, d])
        ops, what = self._called(units)
        sources = dict.fromkeys(self.names[self.devices[u]] for u in units)
        back: tuple[int, ...] = ()
        if back_unit >= 0:
            home = int(self.devices[units[0]])
            group = self._group(back_unit, back_block)
            back = tuple(u for u in group if self.devices[u] == d and free[u, home])
        ops_back, what_back = self._called(back)
        return _Move(
            units,
            back,
            ops + ops_back,
            what,
            what_back,
            ", ".join(sources),
            self.names[d],
            came,
            temperature_s,
            limit_s,
            self.value_s,
            after_s,
            best_s,
        )

    def _group(self, unit: int, block: int) -> list[int]:
        """The units of a block, or the unit alone where there is none."""
        found: list[int] = [unit] if block < 0 else self.chain.blocks.members(block).tolist()
        return found

    def _called(self, units: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
        """The source ops of units, and what they are called together; nothing of no units."""
        ops = ops_of_units(self.problem, units)
        if not units:
            return ops, ""
        what = ops_called(self.problem, ops) if ops else unit_called(self.problem, units[0])
        return ops, f"the block {what}" if len(ops) > 1 else what

    def _go_to(self, move: _Move) -> None:
        home = int(self.devices[move.units[0]])
        self.devices[list(move.units)] = self.names.index(move.dest)
        self.devices[list(move.back)] = home
        self.value_s, self.best_s = move.after_s, move.best_s
        self._spans = None

    def _why(self, move: _Move) -> str:
        goes = f"{move.what} goes to {move.dest}{self._making_room(move)}"
        if move.came == NO_ROOM:
            return f"{move.dest} has no room for {move.what}, so nothing moves."
        if not move.is_accepted:
            limit = self.time(move.limit_s)
            allowed = f"the {limit} that chance allows" if self.is_hot else limit
            swapped = f" and {move.what_back} on {self._home(move)}" if move.back else ""
            return f"With {move.what} on {move.dest}{swapped} it would take more than {allowed}."
        takes = f"{self.time(move.after_s)} instead of {self.time(move.before_s)}"
        if move.came == BEST:
            return f"{goes}: {takes}, the best so far."
        if move.after_s < move.before_s:
            return f"{goes}: {takes}."
        if move.after_s == move.before_s:
            return f"{goes}, which takes as long as before and opens other ways."
        return f"{goes}, though it takes {takes}: while it is hot a way up is accepted at times."

    def _home(self, move: _Move) -> str:
        """Where the first of what moves came from, and what goes back goes to."""
        return move.came_from.split(", ")[0]

    def _making_room(self, move: _Move) -> str:
        return f", and {move.what_back} to {self._home(move)} to make room" if move.back else ""

    def _last_moves(self) -> Table:
        """The move beside those before it, the last one first."""
        rows: list[tuple[Cell, ...]] = []
        for move in reversed(self.moves[-LAST:]):
            figures: tuple[Cell, ...] = (None, None)
            if move.came != NO_ROOM:
                figures = move.limit_s, move.after_s if move.is_accepted else None
            rows.append(
                (
                    f"{move.what}, for {move.what_back}" if move.back else move.what,
                    move.came_from,
                    move.dest,
                    move.before_s,
                    *figures,
                    VERDICTS[move.came],
                )
            )
        columns: dict[str, Kind] = {"op": "text", "from": "text", "to": "text", "before": "seconds"}
        columns |= {"allowed": "seconds", "after": "seconds", "came of it": "text"}
        return table("The last moves", columns, rows, (0,))

    def _state(self, move: _Move) -> Table:
        """Where the search is: one row."""
        num_accepted = sum(num for came, num in self.came.items() if came >= ACCEPTED)
        columns: dict[str, Kind] = {"value": "seconds", "best": "seconds"}
        row: list[Cell] = [self.value_s, self.best_s]
        if self.is_hot:
            columns["temperature"] = "seconds"
            row.append(move.temperature_s)
        columns |= {"moves tried": "number", "accepted": "number"}
        row += [float(self.came.total()), float(num_accepted)]
        return table("The search so far", columns, [tuple(row)])

    def turned(self, turn: Turn) -> Iterator[Step]:
        """A step where a turn has changed what the chain goes on from; none where it has not."""
        before_s, old, old_order = self.value_s, self.devices, self.order
        self._take(turn)
        if turn.kicked:
            changed = (old != turn.devices).nonzero()[0]
            ops = ops_of_units(self.problem, changed.tolist())
            why = (
                "No move has helped for a while, so some blocks of the best placement go anywhere:"
                f" it takes {self.time(turn.value_s)} now, and the search goes on from there."
            )
            yield self.step(TURN, why, ops)
        elif (old_order != turn.order).any():
            why = (
                "With the same devices another order of the ops takes"
                f" {self.time(turn.value_s)} instead of {self.time(before_s)}."
            )
            yield self.step(TURN, why)

    def _take(self, turn: Turn) -> None:
        self.devices, self.order = turn.devices.copy(), turn.order
        self.value_s, self.best_s = turn.value_s, turn.best_s
        self._spans = None

    def over(self, turns: list[Turn]) -> Step:
        """The end of the chain, beyond the moves that are shown, with the course of it all."""
        self.devices, self.order = self.chain.best, self.chain.best_order
        self._spans = None
        columns: dict[str, Kind] = {"turn": "number", "value": "seconds", "best": "seconds"}
        columns |= {"temperature": "seconds"} if self.is_hot else {}
        rows: list[tuple[Cell, ...]] = [
            (i + 1.0, turn.value_s, turn.best_s, turn.temperature_s)[: len(columns)]
            for i, turn in enumerate(self.chain.turns)
        ]
        best = self.time(self.chain.best_s)
        why = f"After {counted(self.chain.num_moves, 'move')} the best placement takes {best}."
        if turns:
            why = f"The other moves went the same way. {why}"
        return self.step(TURN, why, (), table("The whole search", columns, rows))
