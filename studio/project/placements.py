"""Named placements of one graph on one machine, on disk: made by hand, or by methods."""

import dataclasses
import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from placement.core.decoding import decode
from placement.core.fingerprint import fingerprint_of
from placement.core.graph import Graph
from placement.core.machine import Machine
from placement.core.placement import Placement, placement_from_json, placement_to_text
from studio.jobs import jobs
from studio.project import former_names
from studio.project.edits import History, history_from_json
from studio.project.facts import HAND, Facts, Index, Named
from studio.project.file_cache import parsed, written
from studio.project.files import read, read_json, write_json, write_text
from studio.project.store import Project

MOST_REMOVED = 5
# Files of a shelf that are no placement.
LISTS = ("index.json", "pins.json", "sequences.json")
NO_FACTS = Facts()


def machine_key(machine: Machine) -> str:
    """What tells the shelves of one graph apart: the machine's name and devices."""
    return fingerprint_of([machine.name, [d.name for d in machine.devices]])[:8]


def is_about(project: Path, graph: Graph) -> bool:
    """Whether placements of this graph were made in a project's folder, on whatever machine."""
    shelves = project / "placements"
    return any(any(shelves.glob(f"{name}-*")) for name in _names(graph))


def _names(graph: Graph) -> Sequence[str]:
    """What shelves of a graph are called: by its fingerprint, or by the one that it had before."""
    return [graph.fingerprint, *filter(None, [graph.formerly])]


# What stands on shelves that cannot be written: the first look at a model, in memory alone.
_lent: OrderedDict[Path, tuple[Named, Placement]] = OrderedDict()
MOST_LENT = 16


class Shelf:
    """The placements that fit one graph and one set of devices; others keep their own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, project: Path, graph: Graph, machine: Machine) -> "Shelf":
        key, shelves = machine_key(machine), project / "placements"
        here = [shelves / f"{name}-{key}" for name in _names(graph)]
        return cls(next((folder for folder in here if folder.is_dir()), here[0]))

    def _index(self) -> Index:
        try:
            return parsed(self.folder / "index.json", _index_in)
        except OSError:
            # Not kept as what the file holds: it may be read the next time.
            return Index()

    def _save(
        self, items: Sequence[Named], current: str, removed: Sequence[Named] | None = None
    ) -> None:
        kept = self.removed if removed is None else removed
        write_json(self.folder / "index.json", Index(current, tuple(items), tuple(kept)))

    @property
    def items(self) -> tuple[Named, ...]:
        listed = self._index().items
        return listed or tuple(named for named, _ in filter(None, [_lent.get(self.folder)]))

    def lend(self, name: str, placement: Placement, facts: Facts) -> None:
        """Let a placement stand on an empty shelf that cannot be written, until one can be."""
        _lent[self.folder] = Named(name, "", name, facts), placement
        while len(_lent) > MOST_LENT:
            _lent.popitem(last=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written there, whatever is lent."""
        return not self._index().items

    @property
    def removed(self) -> tuple[Named, ...]:
        """The placements that were removed last, which can still be brought back; newest last."""
        return self._index().removed

    @property
    def current(self) -> Named | None:
        """The placement on the screen; None on an empty shelf."""
        items, name = self.items, self._index().current
        return next((i for i in items if i.name == name), items[0] if items else None)

    @property
    def screen(self) -> str:
        """Stands for what a person has on the screen: which placement, and what was done to it."""
        current = self.current
        if current is None:
            return ""
        return fingerprint_of([current.name, self.history(current.name).text])

    def named(self, name: str) -> Named:
        found = next((i for i in self.items if i.name == name), None)
        if found is None:
            raise ValueError(f"There is no placement named {name!r} here.")
        return found

    def of_job(self, job_id: str) -> tuple[Named, ...]:
        """What a job put here, also what somebody removed since."""
        return tuple(i for i in (*self.items, *self.removed) if i.facts.job == job_id)

    def path(self, name: str) -> Path:
        return self.folder / self.named(name).file

    def choose(self, name: str) -> None:
        self._save(list(self.items), self.named(name).name)

    def read(self, name: str) -> Placement:
        if not self.named(name).file:
            return _lent[self.folder][1]
        return parsed(self.path(name), _placement_in)

    def history(self, name: str) -> History:
        return parsed(self._history_path(self.named(name)), _history_in)

    def add(
        self,
        name: str,
        placement: Placement,
        made_by: str,
        facts: Facts = NO_FACTS,
        *,
        show: bool = True,
        beside: bool = False,
    ) -> str:
        """Put a placement on the shelf, by default as the current one; its name there is returned.

        A placer's result takes the place of an earlier result of the same placer under the same
        name; a name that is taken otherwise gets a number, and so does every one with `beside`.
        """
        items = list(self._index().items)
        same = next((i for i in items if i.name == name), None)
        if same is not None and (beside or same.made_by != made_by or made_by == HAND):
            free = _next_name(name, {i.name for i in items})
            return self.add(free, placement, made_by, facts, show=show)
        entry = Named(name, same.file if same else self._new_file(name), made_by, facts)
        self._write(self.folder / entry.file, placement)
        items = [entry if i.name == name else i for i in items] if same else [*items, entry]
        current = name if show else self._index().current
        self._save(items, current or name)
        return name

    def keep_history(self, name: str, history: History) -> None:
        """Store how a placement came about by hand, and what can be done again."""
        path = self._history_path(self.named(name))
        write_text(path, history.text)
        written(path, _history_in, history)

    @property
    def pins_path(self) -> Path:
        return self.folder / "pins.json"

    @property
    def pins(self) -> dict[str, str]:
        """Devices of the ops that were pinned, in every placement of this graph."""
        return read(self.pins_path, dict[str, str]) or {}

    def keep_pins(self, pins: Mapping[str, str]) -> None:
        write_json(self.pins_path, pins)

    @property
    def sequences_path(self) -> Path:
        return self.folder / "sequences.json"

    @property
    def sequences(self) -> dict[str, tuple[str, ...]]:
        """By device the order of its ops that was pinned, in every placement of this graph."""
        return read(self.sequences_path, dict[str, tuple[str, ...]]) or {}

    def keep_sequences(self, sequences: Mapping[str, Sequence[str]]) -> None:
        write_json(self.sequences_path, sequences)

    def replace(self, name: str, placement: Placement) -> None:
        """Store a placement anew under its name, whoever made it."""
        self._write(self.path(name), placement)

    def take_from(self, other: "Shelf", machine: str) -> int:
        """Put all of another shelf of this graph and devices here, as of a machine; how many.

        Nothing is taken where something stands here, or nothing there.
        """
        if other.is_empty or not self.is_empty:
            return 0
        for item in other.items:
            self._write(
                self.folder / item.file, dataclasses.replace(other.read(item.name), machine=machine)
            )
        current = other.current
        self._save(other.items, current.name if current else "", ())
        for item in other.items:
            self.keep_history(item.name, other.history(item.name))
        self.keep_pins(other.pins)
        self.keep_sequences(other.sequences)
        return len(other.items)

    def rename(self, name: str, to: str) -> None:
        to = to.strip()
        if not to:
            raise ValueError("A placement needs a name; type one.")
        if to != name and any(i.name == to for i in self.items):
            raise ValueError(f"There is already a placement named {to!r}; choose another name.")
        self.named(name)
        items = [replace(i, name=to) if i.name == name else i for i in self.items]
        self._save(items, to)

    def duplicate(self, name: str) -> str:
        """A hand-made copy, current from now on; its name is returned."""
        copy = _next_name(f"{name} copy", {i.name for i in self.items})
        return self.add(copy, self.read(name), HAND, Facts(start=name))

    def remove(self, name: str) -> None:
        """Take a placement off the shelf; the last few can be brought back."""
        entry = self.named(name)
        rest = [i for i in self.items if i.name != name]
        removed = [*self.removed, entry]
        self._save(rest, rest[0].name if rest else "", removed[-MOST_REMOVED:])
        for old in removed[:-MOST_REMOVED]:
            for path in (self.folder / old.file, self._history_path(old)):
                path.unlink(missing_ok=True)

    def restore(self, file: str) -> str:
        """Bring a removed placement back as the current one, with its history; its name."""
        removed = list(self.removed)
        entry = next((i for i in removed if i.file == file), None)
        if entry is None:
            raise ValueError("This placement was removed for good.")
        name = _next_name(entry.name, {i.name for i in self.items})
        rest = [i for i in removed if i is not entry]
        self._save([*self.items, replace(entry, name=name)], name, rest)
        return name

    def _write(self, path: Path, placement: Placement) -> None:
        write_text(path, placement_to_text(placement))
        written(path, _placement_in, placement)

    def _new_file(self, name: str) -> str:
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "placement"
        taken = {*LISTS, *(i.file for i in (*self.items, *self.removed))}
        return f"{_next_name(stem, {f.removesuffix('.json') for f in taken}, '-')}.json"

    def _history_path(self, entry: Named) -> Path:
        return self.folder / f"{entry.file.removesuffix('.json')}.history"


def _index_in(path: Path) -> Index:
    try:
        found = json.loads(path.read_text())
    except ValueError:
        return Index()
    if not found:
        return Index()
    return former_names.in_index(decode(found, Index, remedy="restore the list of placements"))


def _placement_in(path: Path) -> Placement:
    return placement_from_json(json.loads(path.read_text()))


def _history_in(path: Path) -> History:
    return history_from_json(read_json(path))


def _next_name(name: str, taken: set[str], gap: str = " ") -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}{gap}{number}" in taken:
        number += 1
    return f"{name}{gap}{number}"


RUNS = ("run", "train")


def keep(
    project: Project,
    shelf: Shelf,
    name: str,
    placed: Placement,
    made_by: str,
    facts: Facts,
    *,
    show: bool = True,
    beside: bool = False,
) -> str:
    """Put a method's result on the shelf, and return its name there.

    It takes the place of what the method found before, but for what has been run and is another
    placement: figures that were measured stay with what they were measured of.
    """
    earlier = next((i for i in shelf.items if i.name == name), None)
    if earlier is not None and not beside:
        key = devices_key(shelf.read(name))
        beside = key != devices_key(placed) and key in set(_run(project))
    return shelf.add(name, placed, made_by, facts, show=show, beside=beside)


def devices_key(placement: Placement) -> str:
    """Tells whether two placements of one graph put every op on the same device."""
    return fingerprint_of([sorted(placement.device_of.items()), placement.order])


def _run(project: Project) -> Iterator[str]:
    """Keys of the placements that were run, however the run ended."""
    for verb in RUNS:
        for job_id in jobs.listed(project.folder, verb):
            yield jobs.read(project.folder, job_id).about.devices_key
