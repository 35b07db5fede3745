"""What must hold for every exporter, found by its file."""

import dataclasses

import pytest

from placement.core.model import Model
from placement.exporters import Export, exporter, exporters, write
from placement.loaders import load
from tests.exporters.exports import dealt, export_of, hostile_model, measured_like
from tests.exporters.language_models import in_layers
from tests.exporters.torch_models import inference, placed
from tests.pages.problems import diamond, everywhere

NAMES = [found.name for found in exporters()]


@pytest.fixture(scope="module")
def squeezenet():
    export = export_of(load("onnx-squeezenet"))
    return dataclasses.replace(export, label="mine", measured=measured_like(export))


@pytest.fixture
def taken(name, squeezenet):
    """An export that the format takes."""
    others = (lambda: squeezenet, lambda: placed(inference()), lambda: in_layers("000111"))
    return next(export for made in others if not exporter(name).missing(export := made()))


def test_registry():
    assert len(set(NAMES)) == len(NAMES) and "networkx" in NAMES
    for found in exporters():
        assert found.suffix.startswith(".") and found.summary and found.title, found.name
    with pytest.raises(ValueError, match="networkx"):
        exporter("network")


@pytest.mark.parametrize("name", NAMES)
def test_writes_a_file(name, taken, tmp_path):
    path = tmp_path / f"out{exporter(name).suffix}"
    write(exporter(name), taken, path)
    assert path.stat().st_size > 0
    assert [p.name for p in tmp_path.iterdir()] == [path.name], "nothing else is left behind"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_export_gives_the_same_bytes(name, taken, tmp_path):
    found, contents = exporter(name), []
    for number in range(2):
        path = tmp_path / f"{number}{found.suffix}"
        write(found, taken, path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1], name


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_written_or_refused_in_a_sentence(name, tmp_path):
    export, found = export_of(hostile_model()), exporter(name)
    path = tmp_path / f"out{found.suffix}"
    if found.missing(export):
        with pytest.raises(ValueError, match=r"executable|reads words"):
            write(found, export, path)
    else:
        write(found, export, path)
        assert path.stat().st_size > 0, name


@pytest.mark.parametrize("name", NAMES)
def test_folders_that_are_not_there_and_files_in_the_way_are_named(name, taken, tmp_path):
    found = exporter(name)
    with pytest.raises(ValueError, match="There is no folder"):
        write(found, taken, tmp_path / "nowhere" / "out")
    folder = tmp_path / f"folder{found.suffix}"
    folder.mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        write(found, taken, folder)
    assert list(tmp_path.iterdir()) == [folder] and not list(folder.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_what_may_not_be_written_is_refused_and_leaves_nothing(name, taken, tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(ValueError, match="cannot be written: you have no right"):
        write(exporter(name), taken, tmp_path / f"out{exporter(name).suffix}")
    assert not list(tmp_path.iterdir())


def test_a_format_with_a_picture_asks_for_one(tmp_path):
    graph = load("onnx-squeezenet")
    export = dataclasses.replace(export_of(graph), view=None)
    for name in ("html", "graph-svg"):
        with pytest.raises(ValueError, match="picture"):
            write(exporter(name), export, tmp_path / "out")


def test_a_placement_that_splits_fused_ops_is_predicted_mended(tmp_path):
    problem = diamond()
    split = everywhere(problem)
    split = dataclasses.replace(split, device_of={**split.device_of, "b_relu": "cpu:1"})
    export = Export(Model(problem.graph), problem, split)
    whole = Export(Model(problem.graph), problem, everywhere(problem))
    assert export.simulated.value == whole.simulated.value


@pytest.mark.parametrize("name", [found.name for found in exporters()])
def test_devices_that_the_machine_lacks_are_named_or_do_not_matter(name, tmp_path):
    model = load("onnx-squeezenet")
    export = export_of(model, dealt(model.graph, 1, ("cpu:0", "gpu:7")))
    found = exporter(name)
    try:
        write(found, export, tmp_path / f"out{found.suffix}")
    except ValueError as error:
        assert "gpu:7" in str(error) or found.missing(export) == str(error)
    else:
        assert (tmp_path / f"out{found.suffix}").exists()


def test_a_table_names_devices_that_the_machine_lacks(tmp_path):
    model = load("onnx-squeezenet")
    export = export_of(model, dealt(model.graph, 1, ("cpu:0", "gpu:7")))
    with pytest.raises(ValueError, match="gpu:7"):
        write(exporter("csv"), export, tmp_path / "out.csv")
