"""Commands of the README about machines that nobody has at hand: what they say can be done."""

import re
from pathlib import Path

import pytest

from placement.cli.options import make_parser
from placement.cli.reading import read_problem
from placement.search.feasible import no_room_for_weights

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"`(place [^`]*--offload)`", README)


@pytest.mark.parametrize("command", EXAMPLES)
def test_an_example_of_offload_streams_and_has_room(command):
    _, problem = read_problem(make_parser().parse_args(command.split()), measure=False)
    assert problem.offloads
    assert no_room_for_weights(problem) == ""


def test_there_is_such_an_example():
    assert EXAMPLES
