"""Style sheets of the pages: what changes on a page has only a part of it styled anew.

Chromium notes for each `:has` what may look different once it begins or ends to hold. Where a
selector goes on behind one and names nothing there (`.a:has(.b) > *`), that is all below; where the
one with `:has` names nothing itself (`.a > :not(:has(.b)) p`), it is asked of the whole document.
Either made each press of a key style the page several times over.
"""

import re
from pathlib import Path

import pytest

ASSETS = Path(__file__).parents[2] / "assets"
SHEETS = sorted(ASSETS.rglob("*.css"))


def split_outside(text: str, separators: str) -> list[str]:
    """The parts of a selector between these, but for those in brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in separators:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def selectors(sheet: str) -> list[str]:
    """All selectors, those in media queries too."""
    plain = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    heads = [head.rpartition(";")[2].strip() for head in re.findall(r"([^{}]*)\{", plain)]
    return [one for head in heads if head[:1] != "@" for one in split_outside(head, ",")]


def names_something(compound: str) -> bool:
    """Whether an element needs a tag, a class, an id or an attribute of that name."""
    return re.match(r"(:root|[\w.#\[])", compound) is not None


def restyles_all(selector: str) -> bool:
    compounds = split_outside(selector, " >+~\n")
    *before, last = compounds
    with_has = [one for one in before if ":has(" in one]
    return not all(map(names_something, [*with_has, last] if with_has else ()))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (".a:has(.b) > *", True),
        (".a:has(.b) > :has(.c)", True),
        (".a > :not(:has(.b, .c)) p", True),
        (".a:has(.b) > .c", False),
        (".a:has(> * > .b) > [data-c]:has(.d)", False),
        (".a > :has(.b)", False),
        (".a > p:not(:has(.b)) > .c", False),
    ],
)
def test_what_is_found(selector, expected):
    assert restyles_all(selector) is expected


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.relative_to(ASSETS).as_posix())
def test_no_change_styles_the_whole_page_anew(path):
    found = selectors(path.read_text())
    assert found, "this sheet has rules"
    assert not [selector for selector in found if restyles_all(selector)]
