"""One file knows the session and the address; the rest of the pages asks it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]
KNOWN = {"pages/ui/session/choices.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_session_and_address_are_touched_in_one_place(path):
    if str(path.relative_to(ROOT)) not in KNOWN:
        assert not re.search(r"\b(session_state|query_params)\b", path.read_text())


@pytest.mark.parametrize("path", sorted((ROOT / "pages").glob("*.py")), ids=lambda p: p.stem)
def test_a_page_is_short_and_goes_through_the_frame(path):
    text = path.read_text()
    assert "frame.around()" in text and len(text.splitlines()) <= 80
