"""How a model gets to another host: as bytes of files that are read anew there, or refused."""

import io
import os
import pickle
from dataclasses import replace

import pytest

from profiling.backends._ray.shipping import File, Shipment, packed, unpacked
from tests.profiling.live import diamond, torch_diamond


class Planted:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


class Noting(pickle.Unpickler):
    """Reads a pickle and notes whose classes and functions it names."""

    def __init__(self, stream):
        super().__init__(stream)
        self.modules = set()

    def find_class(self, module, name):
        self.modules.add(module)
        return super().find_class(module, name)


def test_a_model_arrives_as_it_was_sent(tmp_path):
    model = diamond(tmp_path)
    arrived = unpacked(packed(model), tmp_path / "there")
    assert arrived.graph.fingerprint == model.graph.fingerprint
    assert arrived.executable.content_hash == model.executable.content_hash
    assert arrived.executable.path.parent == tmp_path / "there"


def test_what_ray_pickles_of_a_file_is_its_bytes(tmp_path):
    sent = packed(diamond(tmp_path))
    noting = Noting(io.BytesIO(pickle.dumps(sent)))
    assert noting.load() == sent
    assert noting.modules == {"profiling.backends._ray.shipping"}


@pytest.mark.parametrize("name", ["bad.onnx", "bad.pt", "bad.pt2"])
def test_a_file_that_is_a_pickle_is_refused_and_never_unpickled(tmp_path, name):
    planted = File(name, pickle.dumps(Planted(tmp_path / "made")), 0)
    with pytest.raises(ValueError, match="bad"):
        unpacked(Shipment(name, (), ("", ""), (planted,)), tmp_path / "there")
    assert not (tmp_path / "made").exists()


def test_no_file_is_written_outside_its_folder(tmp_path):
    away = Shipment("bad.onnx", (), ("", ""), (File("../bad.onnx", b"", 0),))
    with pytest.raises(ValueError, match="outside its folder"):
        unpacked(away, tmp_path / "there")
    assert not (tmp_path / "bad.onnx").exists()


def test_another_model_than_was_opened_is_refused(tmp_path):
    sent = packed(diamond(tmp_path))
    other = replace(sent, content=(sent.content[0], "of another file"))
    with pytest.raises(ValueError, match="not the same on every host"):
        unpacked(other, tmp_path / "there")


def test_what_was_made_in_python_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="was made in Python"):
        packed(torch_diamond())
