"""A project for each model: opening another one leaves the project with what was made in it alone.

Placements, pins and runs are about one model. So a model that was opened before opens in its own
project again, and any other in a new one. Only a project in which nobody did anything yet takes
whatever is opened.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from pages.ui.session import choices
from placement import loaders
from placement.files import output
from studio.project import store
from studio.project.store import Project

# What a new project takes over from the one before: nobody has changed the machine. A goal is
# chosen for a project; another one begins with that of every project.
COMMON = ("machine", "lanes")


def home_of(
    kind: str, model: str, holds: Callable[[Project], bool] = lambda project: True
) -> Project:
    """The project in which to open a model; made where there is none."""
    opened = choices.project()
    if not opened.settings.touched:
        return opened
    return known_home_of(kind, model, holds) or _made_beside(opened)


def known_home_of(
    kind: str, model: str, holds: Callable[[Project], bool] = lambda project: True
) -> Project | None:
    """The project that has a model, the one that is open first; None where none has.

    `holds` tells of a project with a model of this kind and name whether it is the very same.
    """

    def is_it(project: Project) -> bool:
        return _is_of(project, kind, model) and holds(project)

    opened = choices.project()
    if is_it(opened):
        return opened
    others = (p for p in store.recent(limit=None) if is_it(p) and choices.is_free(p))
    return next(others, None)


def enter(home: Project, kind: str, model: str) -> None:
    """Open a model in the project that `home_of` found, and say where the one before is."""
    opened = choices.project()
    if home.id == opened.id:
        # A file may have new content under its old name.
        if (kind == "file" or not _is_of(home, kind, model)) and choices.renew_claim(home):
            _set_in_place(home, kind, model)
        return
    # A new one may have the model by chance: the default sample.
    is_known = home.settings.touched and _is_of(home, kind, model)
    if not is_known:
        home.change(model_kind=kind, model=model, name=free_name(kind, model))
    choices.show_project(home)
    left = f"{opened.settings.name!r} is kept as it was: Projects, on the left, leads back to it."
    if is_known:
        choices.say("info", f"Back in the project {home.settings.name!r}, as you left it. {left}")
    else:
        choices.say("info", f"This model has a project of its own now. {left}")


def _set_in_place(project: Project, kind: str, model: str) -> None:
    before = project.settings
    name = before.name if before.touched else free_name(kind, model)
    dims = before.dims if _is_of(project, kind, model) else {}
    project.change(model_kind=kind, model=model, dims=dims, name=name)
    choices.select(())


def _made_beside(opened: Project) -> Project:
    """A new project on the machine of the one that is open, with what methods learned there."""
    made = store.create()
    settings = opened.settings
    made.change(touch=False, **{name: getattr(settings, name) for name in COMMON})
    for name in ("machines", "policies"):
        if (opened.folder / name).is_dir():
            with output.refusals(made.folder / name):
                shutil.copytree(opened.folder / name, made.folder / name)
    return made


def _is_of(project: Project, kind: str, model: str) -> bool:
    settings = project.settings
    return (settings.model_kind, settings.model) == (kind, model)


def free_name(kind: str, model: str) -> str:
    """The model's name, with a number where a project has that name already.

    A file is called without its ending, and a configuration by its folder, as everybody's have the
    same name; in a name as llama-3.1-8b there is no ending.
    """
    path = Path(model)
    stem = path.stem if path.suffix.lower() in loaders.suffixes() else path.name
    named = path.parent.name if path.name == "config.json" else ""
    stem = (model if kind == "sample" else named or stem)[: store.LONGEST_NAME - 5]
    taken, name, number = {p.settings.name for p in store.recent(limit=None)}, stem, 1
    while name in taken:
        number += 1
        name = f"{stem} {number}"
    return name
