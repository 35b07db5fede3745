"""What `make quick` leaves out: each line of tests/slow.txt is still the name of a test."""

import re
from pathlib import Path

from tests.conftest import SLOW

ROOT = Path(__file__).parents[1]


def test_every_line_names_a_test():
    lines = SLOW.read_text().splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        file, *_, name = line.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^ *def {name}\(", text, re.MULTILINE), line
