"""Where a method's result goes on the shelf: never over one that has been run."""

from collections.abc import Iterator

from placement.core.fingerprint import fingerprint_of
from placement.core.placement import Placement
from studio.jobs import jobs
from studio.project.facts import Facts
from studio.project.placements import Shelf
from studio.project.store import Project

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
