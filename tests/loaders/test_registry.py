"""Every loader is found by its file and keeps the promises of `Loader`."""

import re
import subprocess
import sys

import pytest

from placement.core.model import Model
from placement.loaders import load, loader_for, loaders, samples, symbolic_dims


def test_names_are_unique_and_every_loader_reads_something():
    names = [loader.name for loader in loaders()]
    assert len(set(names)) == len(names) and {"onnx", "networkx"} <= set(names)
    for loader in loaders():
        assert loader.suffixes, f"loader {loader.name} has no suffixes"
        assert all(s.startswith(".") and s == s.lower() for s in loader.suffixes), loader.name
        assert loader.summary, loader.name


@pytest.mark.parametrize("loader", loaders(), ids=lambda loader: loader.name)
@pytest.mark.parametrize(
    "content", [b"\x00", b"{}", b"[]", b"null", b"\xff\xfe{", b"hello", b"[" * 9999]
)
def test_nothing_but_a_clear_error_for_garbage(loader, content, tmp_path):
    for suffix in loader.suffixes:
        path = tmp_path / f"thing{suffix}"
        path.write_bytes(content)
        assert loader.accepts(path) in (True, False)
        with pytest.raises(ValueError) as error:
            load(str(path))
        message = str(error.value)
        assert "thing" in message and "\n" not in message and message.endswith("."), message


def test_sample_names_come_before_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "onnx-squeezenet").write_text("not a model")
    assert isinstance(load("onnx-squeezenet"), Model)


@pytest.mark.parametrize(
    ("input", "part"),
    [
        ("", "empty"),
        ("onnx-resnet5", "onnx-resnet50"),
        ("no/such/file.onnx", "no file"),
        ("missing.onnx", "no file"),
        (".", "folder"),
        ("/dev/null", "not a regular file"),
        ("a\0b.onnx", "NUL"),
        ("x" * 5000 + ".onnx", "cannot be opened"),
    ],
)
def test_unusable_inputs_are_named(input, part):
    for verb in (load, symbolic_dims):
        with pytest.raises(ValueError, match=part) as error:
            verb(input)
        assert "\n" not in str(error.value) and len(str(error.value)) < 600


def test_unknown_endings_list_the_known_ones(tmp_path):
    path = tmp_path / "model.h5"
    path.write_text("x")
    with pytest.raises(ValueError, match=r"\.json, .*\.onnx"):
        load(str(path))


def test_loaders_share_the_ending_json(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(
        '{"directed": true, "multigraph": false, "graph": {}, "nodes": [], "edges": []}'
    )
    assert loader_for(path).name == "networkx"


def test_listing_loads_no_heavy_library():
    code = (
        "import sys; from placement.loaders import samples, loaders; "
        "assert len(samples()) >= 9 and loaders(); "
        "heavy = {'onnx', 'onnxruntime', 'torch', 'streamlit', 'networkx'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sample_names_are_unique():
    names = [sample.name for sample in samples()]
    assert len(set(names)) == len(names)
    assert all(sample.num_ops > 0 and sample.source for sample in samples())


def test_an_unknown_ending_names_only_those_that_are_read(tmp_path):
    path = tmp_path / "model.h5"
    path.write_text("x")
    with pytest.raises(ValueError, match=r"ending '\.h5'.*; use one of ") as error:
        load(str(path))
    told = set(str(error.value).rpartition("use one of ")[2].removesuffix(".").split(", "))
    assert {".json", ".onnx", ".pt2"} <= told and not {".pt", ".pth", ".h5"} & told


def test_an_empty_file_is_told_by_its_name_alone(tmp_path):
    (tmp_path / "nothing.onnx").touch()
    with pytest.raises(ValueError) as error:
        load(str(tmp_path / "nothing.onnx"))
    assert str(error.value).startswith("The file 'nothing.onnx' is empty;")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Op 'a' stands twice; rename one.", "'some.json': Op 'a' stands twice; rename one."),
        ("The file 'some.json' is empty; take another.",) * 2,
    ],
)
def test_every_refusal_names_the_file(tmp_path, monkeypatch, said, told):
    class Refusing:
        def load(self, path, dims):
            raise ValueError(said)

    path = tmp_path / "some.json"
    path.write_text("{}")
    monkeypatch.setattr("placement.loaders.loader_for", lambda path: Refusing())
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        load(str(path))
