"""Numbers read alike wherever they stand: one function for shares, and one for how many."""

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.core import formatting

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for top in ("pages", "placement", "profiling", "studio")
    for path in (ROOT / top).rglob("*.py")
)
SCRIPTS = sorted(
    path for ending in ("js", "html") for path in (ROOT / "assets").rglob(f"*.{ending}")
)
# Without this ending and without a percent sign a file has neither of what is searched for.
PLURAL = re.compile(r"""(['"])s\1""")
# Percent signs of style sheets and of a library's own templates say nothing to people.
STYLE = re.compile(r"(width|height|left|top|size)\s*:")


def own_percents(tree):
    """Lines in which an f-string puts a percent sign behind a number that it formats itself."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for i, part in enumerate(node.values):
            if not isinstance(part, ast.FormattedValue):
                continue
            spec = "" if part.format_spec is None else ast.unparse(part.format_spec)
            after = node.values[i + 1] if i + 1 < len(node.values) else None
            text = after.value if isinstance(after, ast.Constant) else ""
            before = node.values[i - 1] if i else None
            styled = isinstance(before, ast.Constant) and STYLE.search(before.value[-12:])
            if re.search(r"%['\"}]", spec) or (re.match(r"\s?%(?!\{)", text) and not styled):
                yield node.lineno


def own_plurals(tree):
    """Lines that choose between a noun and its plural by themselves."""
    for node in ast.walk(tree):
        ends = ()
        if isinstance(node, ast.IfExp):
            ends = (node.body, node.orelse)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            ends = (node.left, node.right)
        if any(isinstance(end, ast.Constant) and end.value == "s" for end in ends):
            yield node.lineno


def test_the_searches_find_what_they_are_for():
    for text in ('f"{x:.1%}"', 'f"{100 * x:.0f} %"', 'f"{x}% of it"', 'f"{x:{s}.{n}%}"'):
        assert list(own_percents(ast.parse(text))), text
    for text in ("f'width:{x:.1f}%'", "f'{x} of y'"):
        assert not list(own_percents(ast.parse(text))), text
    for text in ("f\"{n} op{'' if n == 1 else 's'}\"", "f\"{n} op{'s' * (n > 1)}\""):
        assert list(own_plurals(ast.parse(text))), text
    assert not list(own_plurals(ast.parse("2 * 3")))


def test_nothing_but_units_formats_shares_and_plurals():
    found = {"use formatting.percent": {}, "use formatting.counted": {}}
    for path in SOURCES:
        if path == ROOT / "placement" / "core" / "formatting.py":
            continue
        text = path.read_text("utf-8")
        if "%" not in text and not PLURAL.search(text):
            continue
        tree = ast.parse(text)
        for said, lines in zip(found, (own_percents(tree), own_plurals(tree)), strict=True):
            found[said] |= {str(path.relative_to(ROOT)): lines} if (lines := list(lines)) else {}
    assert not any(found.values()), found


def test_no_script_puts_a_percent_sign_behind_a_number():
    for path in SCRIPTS:
        for line in path.read_text("utf-8").splitlines():
            found = re.search(r"\}\s?%", line) and not STYLE.search(line)
            assert not found or "toFixed(digits))}%" in line, (path.name, line)


def test_shares_have_one_digit_at_most_and_small_ones_two():
    said = {0: "0%", 1: "100%", 0.146: "14.6%", 0.0037: "0.37%", 0.83: "83%", 2.5: "250%"}
    assert {share: formatting.percent(share) for share in said} == said
    assert (
        formatting.percent(-0.05, signed=True) == "-5%" and formatting.percent(0.05, True) == "+5%"
    )
    assert formatting.percent(12.345678) == "1234.6%" and formatting.percent(-1e-9) == "0%"
    assert formatting.percent(float("inf")) == "inf%" and formatting.percent(1e7) == "1000000000%"


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_a_gap_is_never_told_too_small(value, bound):
    shown = formatting.gap(value, bound)
    assert shown >= value / bound - 1 - 1e-9
    above = max(0.0, value / bound - 1)
    assert shown <= above + (1e-3 if above >= 0.01 else 1e-4) + 1e-9
    # What is shown is what was rounded.
    assert float(formatting.percent(shown).removesuffix("%")) == pytest.approx(
        100 * shown, rel=1e-9
    )


def test_one_and_several():
    assert formatting.counted(1, "op") == "1 op" and formatting.counted(0, "op") == "0 ops"
    assert formatting.counted(2, "is", "are") == "2 are"


@pytest.mark.skipif(shutil.which("node") is None, reason="compares with a JavaScript engine")
def test_scripts_write_the_same_numbers():
    values = [
        0.0,
        3.2e-9,
        1e-6,
        0.00099999,
        0.0009994,
        0.9996,
        0.00123456,
        0.08,
        0.1004,
        0.5,
        1.0,
        12.34,
        100.4,
        4321.0,
    ]
    parts = [(ROOT / "assets" / p).read_text("utf-8") for p in ("timeline/elements.js",)]
    actions = (ROOT / "assets" / "canvas" / "actions.js").read_text("utf-8")
    parts.append(actions[actions.index("function percentText") : actions.index("Object.assign")])
    parts.append(
        f"console.log(JSON.stringify({json.dumps(values)}.map((v) => [secondsText(v), "
        "v <= 1 ? percentText(v) : null])))"
    )
    told = subprocess.run(
        ["node", "-e", "\n".join(parts)], capture_output=True, text=True, timeout=60, check=True
    )
    for value, (seconds, share) in zip(values, json.loads(told.stdout), strict=True):
        assert seconds == formatting.seconds(value)
        assert share is None or share == formatting.percent(value)
