"""Properties are tried on the same examples by `make test`, and on fresh ones by `make fuzz`."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = """
import tests.conftest
from hypothesis import given, settings, strategies as st
seen = []
@settings(max_examples=30)
@given(st.integers(), st.text(), st.sets(st.integers()))
def holds(number, text, numbers):
    seen.append((number, text, sorted(numbers)))
holds()
print(len(seen), sorted(map(repr, seen)))
"""


def examples(hash_seed, **more):
    kept = {k: v for k, v in os.environ.items() if k != "HYPOTHESIS_PROFILE"}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env={**kept, "PYTHONHASHSEED": hash_seed, **more},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def test_examples_are_the_same_at_every_run_and_fresh_where_asked_for(tmp_path):
    usual = examples("1")
    assert usual.startswith("30 ") and usual == examples("2")
    fresh = {"HYPOTHESIS_PROFILE": "fresh", "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)}
    assert len({usual, examples("1", **fresh), examples("1", **fresh)}) == 3


def test_no_test_decides_for_itself_how_examples_are_drawn():
    """`settings` of a test may count examples, not choose between fresh and the same."""
    decided = {"derandomize", "database", "load_profile", "register_profile"}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path == Path(__file__):
            continue
        text = path.read_text()
        if not any(name in text for name in decided):
            continue
        tree = ast.parse(text)
        named = {
            k.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for k in node.keywords
        }
        called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not decided & (named | called), path
