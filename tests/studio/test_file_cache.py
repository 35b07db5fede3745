"""What is kept between drawings: never an old version, never another object's result."""

from pathlib import Path

import pytest

from pages.ui.session import cache
from pages.ui.session.current import snapshot
from studio import snapshot as studio
from studio.project import store
from studio.project.file_cache import MOST_FILES, by_identity, parsed, written
from studio.project.files import write_text


def counted(path):
    """A new list for every reading of the file."""
    return [path.read_text()]


def test_a_file_is_parsed_once_per_version(tmp_path):
    path = tmp_path / "a.json"
    write_text(path, "one")
    first = parsed(path, counted)
    assert first == ["one"]
    assert parsed(path, counted) is first
    write_text(path, "two")  # as long as before, and perhaps within the same tick of the clock
    assert parsed(path, counted) == ["two"]
    path.unlink()
    write_text(path, "one")
    assert parsed(path, counted) == ["one"]


def test_what_was_written_need_not_be_read(tmp_path):
    path = tmp_path / "a.json"
    write_text(path, "one")
    value = ["one"]
    written(path, counted, value)
    assert parsed(path, counted) is value
    write_text(path, "two")
    assert parsed(path, counted) == ["two"]


def test_a_missing_file_is_asked_for_again(tmp_path):
    path = tmp_path / "a.json"

    def known(at):
        return at.exists()

    assert parsed(path, known) is False
    write_text(path, "")
    assert parsed(path, known) is True


def test_only_the_last_files_are_kept(tmp_path):
    paths = [tmp_path / str(number) for number in range(MOST_FILES + 1)]
    for path in paths:
        write_text(path, path.name)
    values = [parsed(path, counted) for path in paths]
    assert parsed(paths[-1], counted) is values[-1]
    assert parsed(paths[0], counted) is not values[0]


def test_many_files_of_one_kind_drive_none_of_another_out(tmp_path):
    path = tmp_path / "other"
    write_text(path, "one")
    value = parsed(path, Path.read_bytes)
    for number in range(MOST_FILES + 1):
        write_text(tmp_path / str(number), "small")
        parsed(tmp_path / str(number), counted)
    assert parsed(path, Path.read_bytes) is value


def test_results_belong_to_objects_and_not_to_what_equals_them():
    seen = []

    @by_identity(2)
    def total(numbers, more=()):
        seen.append(numbers)
        return sum(numbers) + sum(more)

    one, two = [1, 2], [1, 2]
    assert [total(one), total(one), total(two), total(one)] == [3, 3, 3, 3]
    assert len(seen) == 2
    assert total(one, more=two) == 6
    assert total(two) == 3  # the oldest result went, so this is computed anew or kept, but right
    # An object made in place of one that is gone never gets its result.
    assert [total([number]) for number in range(50)] == list(range(50))


def test_a_first_look_at_a_model_simulates_its_placement_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    project = store.create()
    project.change(model="onnx-squeezenet", machine="null-2")
    now = snapshot(project)
    placed = cache.placed(now.problem, "heft")
    now.shelf.add("heft", placed.placement, "heft", studio.facts_of(placed))
    assert now.simulated.timeline is placed.timeline


@pytest.mark.parametrize("name", ["project.json", "index.json"])
def test_what_cannot_be_read_for_once_is_read_the_next_time(project, name, monkeypatch):
    """Else an empty list of placements would be written over the one that is there."""
    now = snapshot(project)
    now.shelf.add("by hand", now.placement, "heft")
    path = next(f / name for f in (project.folder, now.shelf.folder) if (f / name).is_file())
    path.touch()  # a version that nobody has read yet
    read_text = Path.read_text

    def fails(self, *about, **more):
        if self == path:
            raise OSError("too many open files")
        return read_text(self, *about, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", fails)
        assert store.settings_in(project.folder) is None or not now.shelf.items
    assert store.settings_in(project.folder) is not None
    assert "by hand" in [item.name for item in now.shelf.items]
