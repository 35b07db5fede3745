"""Problem files: any scheduling instance written down as JSON (format in core/problem_json.py)."""

from collections.abc import Mapping
from pathlib import Path

from placement.core.model import Model
from placement.core.problem_json import FORMAT, problem_from_json
from placement.files.input import read_value, refuse_dims
from placement.loaders.base import Loader


class ProblemLoader(Loader):
    """Reads a problem file; the model it gives has given costs and nothing to execute."""

    name = "problem"
    summary = "a placement problem (JSON)"
    suffixes = (".json",)

    def accepts(self, path: Path) -> bool:
        return f'"{FORMAT}"' in path.read_text(encoding="utf-8", errors="replace")

    def load(self, path: Path, dims: Mapping[str, int]) -> Model:
        refuse_dims(dims, path)
        problem = read_value(path, "problem file", lambda c: problem_from_json(c, path.stem))
        return Model(problem.graph, problem=problem)


LOADER = ProblemLoader()
