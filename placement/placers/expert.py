"""Expert: the placement that a split file describes, as a human expert or another program wrote it.

The format and the experts' splits for BERT and GNMT are those of Tarnawski et al., NeurIPS 2020.
"""

from dataclasses import dataclass
from pathlib import Path

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.files.input import read_value
from placement.formats.split_json import split_from_json
from placement.placers.base import Placer, Report, quiet, setting


@dataclass(frozen=True, kw_only=True)
class Expert(Placer):
    summary = "Takes the placement from a split file (workload files only)"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = tuple(Objective)
    executions = (Execution.CALL,)
    no_steps = "it reads the placement from a file"

    split: str = setting("", "Path of a split file: lists of node ids by device")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        if not self.split:
            raise ValueError("The placer 'expert' needs a split file; name one (split=FILE).")
        return read_value(Path(self.split), "split", lambda c: split_from_json(problem, c))


PLACER = Expert
