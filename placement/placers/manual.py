"""Manual: ops placed by written rules, the rest on one device; the start for placing by hand."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import EXECUTIONS, Problem
from placement.placers._base import Placer, Report, quiet, setting
from placement.placers._feasible import require_memory


@dataclass(frozen=True, kw_only=True)
class Manual(Placer):
    summary = "By hand: rules such as Conv=cpu:1 or inception_3a/*=cpu:0, the rest on one device"
    objectives = ("latency", "throughput")
    executions = EXECUTIONS

    rules: str = setting(
        "",
        "Rules PATTERN=DEVICE separated by ';', a later rule wins; a pattern is an op name, an op"
        " type or a scope, with * and ? as wildcards",
    )
    default: str = setting("", "Device of ops that no rule names; empty means the first device")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        machine = problem.machine
        default = machine.index[machine.device(self.default).name] if self.default else 0
        chosen = np.full(problem.num_units, -1, dtype=np.int64)
        for pattern, device in self._parsed(problem):
            matched = False
            for i, op in enumerate(problem.graph.ops):
                path = f"{op.scope}/{op.name}" if op.scope else op.name
                if any(fnmatchcase(text, pattern) for text in (op.name, op.kind, op.scope, path)):
                    chosen[problem.unit_of_op[i]] = device
                    matched = True
            if not matched:
                raise ValueError(f"The rule pattern {pattern!r} matches no op, op type or scope.")
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

    def _parsed(self, problem: Problem) -> list[tuple[str, int]]:
        rules = []
        for rule in filter(None, (part.strip() for part in self.rules.split(";"))):
            pattern, sign, device = rule.rpartition("=")
            if not sign or not pattern.strip():
                raise ValueError(f"The rule {rule!r} is not of the form PATTERN=DEVICE.")
            name = problem.machine.device(device.strip()).name
            rules.append((pattern.strip(), problem.machine.index[name]))
        return rules


PLACER = Manual
