"""Manual: ops placed by written rules, the rest on one device; the start for placing by hand."""

from dataclasses import dataclass

import numpy as np

from placement.constraints.rules import decide, parse
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Report, quiet, setting
from placement.search.feasible import require_memory


@dataclass(frozen=True, kw_only=True)
class Manual(Placer):
    summary = "By hand: rules such as Conv=cpu:1 or inception_3a/*=cpu:0, the rest on one device"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    no_steps = "it decides nothing, whoever writes the rules does"

    rules: str = setting(
        "",
        "Rules PATTERN=DEVICE separated by ';', the last one that matches an op wins; a pattern is"
        " an op name, an op type or a scope, with * and ? as wildcards; type:, scope: or name: in"
        " front looks at that alone, regex: searches names for a regular expression",
    )
    default: str = setting("", "Device of ops that no rule names; empty means the first device")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        machine = problem.machine
        default = machine.index[machine.device(self.default).name] if self.default else 0
        rules = parse(self.rules)
        decided = decide(problem, rules)
        for rule, matched in zip(rules, decided.num_matched, strict=True):
            if not matched:
                raise ValueError(
                    f"The rule pattern {rule.pattern!r} matches no op, op type or scope."
                )
        chosen = np.full(problem.num_units, -1, dtype=np.int64)
        for unit, device in decided.device_of_unit.items():
            chosen[unit] = device
        for unit in range(problem.num_units):
            wanted = int(chosen[unit]) if chosen[unit] >= 0 else default
            if problem.allowed[unit, wanted]:
                chosen[unit] = wanted
            elif chosen[unit] >= 0:
                name = problem.graph.ops[problem.ops_of_unit[unit][0]].name
                raise ValueError(
                    f"A rule puts op {name!r} on {machine.devices[wanted].name!r}, which a pin (of"
                    " it or of an op of its group) or missing support forbids; change the rule."
                )
            else:
                chosen[unit] = int(problem.allowed[unit].argmax())
        return require_memory(problem, problem.placement_of(chosen))


PLACER = Manual
