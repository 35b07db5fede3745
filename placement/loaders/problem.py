"""Problem files: any scheduling instance written down as JSON (format in core/problem_json.py)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from placement.core.model import Model
from placement.core.problem_json import FORMAT, problem_from_json
from placement.files.input import read_value, refuse_dims


@dataclass(frozen=True)
class ProblemLoader:
    """Reads a problem file; the model it gives has given costs and nothing to execute."""

    name: str = "problem"
    summary: str = "a placement problem (JSON)"
    suffixes: tuple[str, ...] = (".json",)

    def accepts(self, path: Path) -> bool:
        return f'"{FORMAT}"' in path.read_text(encoding="utf-8", errors="replace")

    def load(self, path: Path, dims: Mapping[str, int]) -> Model:
        refuse_dims(dims, path)
        problem = read_value(path, "problem file", lambda c: problem_from_json(c, path.stem))
        return Model(problem.graph, problem=problem)


LOADER = ProblemLoader()
