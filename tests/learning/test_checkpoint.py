"""Policies on disk: what is saved is read again, and what is wrong with a file is one sentence."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import save

from placement.learning.checkpoint import MAX_BYTES, load_policy, save_policy

SIZES, SHAPES = {"hidden": 3}, {"weights": (2, 3)}
GOOD = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3)}
NOTE = {"learner": "some", "sizes": SIZES, "version": 1}


def read(path):
    return load_policy(path, "some", SIZES, SHAPES)


def content(arrays=GOOD, **note):
    return save(arrays, {"placement-policy": json.dumps({**NOTE, **note})})


def test_a_policy_is_read_as_it_was_saved(tmp_path):
    path = tmp_path / "policy.safetensors"
    save_policy(path, "some", SIZES, {"weights": GOOD["weights"].astype(np.float64)})
    found = read(path)
    assert list(found) == ["weights"]
    assert found["weights"].dtype == np.float32
    assert (found["weights"] == GOOD["weights"]).all()
    assert path.read_bytes() == content()


def header(text, rest=b""):
    return len(text).to_bytes(8, "little") + text + rest


HUGE = b'{"weights":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}'
WRONG = {
    "text": (b"no policy at all", "no safetensors file"),
    "a few bytes": (b"abc", "no safetensors file"),
    "truncated": (content()[:-3], "no safetensors file"),
    "half a header": (content()[:20], "no safetensors file"),
    "a header without end": ((1 << 62).to_bytes(8, "little") + b"{}", "no safetensors file"),
    "a header that is no JSON": (header(b"{" * 40), "no safetensors file"),
    "a deep header": (header(b'{"a":' * 5000), "no safetensors file"),
    "a shape that overflows": (header(HUGE, bytes(4)), "no safetensors file"),
    "no note": (save(GOOD), "does not say which learner"),
    "a note that is no JSON": (save(GOOD, {"placement-policy": "{"}), "not valid JSON"),
    "a note of another kind": (save(GOOD, {"placement-policy": "[1]"}), "expected an object"),
    "a wrong type": (content(sizes={"hidden": "3"}), "sizes"),
    "another version": (content(version=2), "version 2"),
    "another learner": (content(learner="other"), "for 'other', not 'some'"),
    "other sizes": (content(sizes={"hidden": 4}), "not {'hidden': 3}"),
    "other names": (content({"bias": GOOD["weights"]}), "holds bias, not weights"),
    "another shape": (content({"weights": GOOD["weights"].T.copy()}), r"shape \(3, 2\)"),
    "another type": (content({"weights": np.zeros((2, 3), dtype=np.int32)}), "int32"),
    "no numbers": (
        content({"weights": np.full((2, 3), np.nan, np.float32)}),
        "too large for a network",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path, what):
    given, words = WRONG[what]
    path = tmp_path / "given.safetensors"
    path.write_bytes(given)
    with pytest.raises(ValueError, match=words) as error:
        read(path)
    text = str(error.value)
    assert "given.safetensors" in text and text.endswith(".") and len(text) < 700, text


def test_files_that_cannot_be_a_policy_are_not_read(tmp_path):
    large = tmp_path / "large.safetensors"
    large.touch()
    os.truncate(large, MAX_BYTES + 1)
    with pytest.raises(ValueError, match=f"more than the {MAX_BYTES}"):
        read(large)
    with pytest.raises(ValueError, match="There is no file"):
        read(tmp_path / "missing")
    with pytest.raises(ValueError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(ValueError, match="There is no folder"):
        save_policy(tmp_path / "no" / "where", "some", SIZES, GOOD)
