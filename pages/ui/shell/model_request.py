"""The model that this session asked for and does not have yet, whichever way it asked.

It is opened, in its own project, once it has been read; where that fails or is called off, all
stays as it is. So nothing has to be taken back.
"""

import filecmp
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pages.ui.session import cache, choices
from pages.ui.shell import model_project
from placement import loaders
from placement.core.model import Dims, Model
from placement.files import named, output
from studio import model_reader
from studio.project.placements import is_about
from studio.project.store import Project

# Uploads wait here until they have been read, so that a bad one replaces nothing.
INCOMING = "incoming"
PLACEMENT = "placement-named"


@dataclass(frozen=True)
class Wanted:
    """What is to be opened: as the settings name it, and from where it is read.

    `placement` is the path of a placement that is to be opened in its project, empty for none.
    """

    kind: str
    model: str
    source: str
    dims: Dims
    placement: str = ""

    @property
    def key(self) -> model_reader.Key:
        return cache.model_key(self.source, tuple(sorted(self.dims.items())))

    @property
    def is_upload(self) -> bool:
        return Path(self.source).parent.name == INCOMING

    def is_open_in(self, opened: Project) -> bool:
        """Whether the project has this model, perhaps with other sizes; an upload is never it."""
        settings = opened.settings
        named = (settings.model_kind, settings.model, opened.source)
        return (self.kind, self.model, self.source) == named


def sample(name: str) -> Wanted:
    return _where_it_is("sample", name)


def file(path: Path) -> Wanted:
    """A file that is read where it is, now and later."""
    return _where_it_is("path", str(path.absolute()))


def called(text: str) -> Wanted:
    """A model by what a person calls it: a sample's name or a path."""
    return sample(text) if loaders.is_sample(text) else file(named.path_of(text))


def ask_named() -> None:
    """Want the model that this session's address asks for, and its placement."""
    model = choices.take_named_model()
    if model is not None:
        ask(replace(called(model), placement=named.placement()))


def _where_it_is(kind: str, model: str) -> Wanted:
    """A model with the sizes that it has in its project, if it has one."""
    home = model_project.known_home_of(kind, model)
    return Wanted(kind, model, model, dict(home.settings.dims) if home else {})


def ask(wish: Wanted) -> None:
    """Want this model from now on, in place of what was wanted before."""
    if choices.renew_claim(choices.project()):
        if current() != wish:
            forget()
        choices.keep("wanted", asdict(wish))


def ask_upload(opened: Project, name: str, content: bytes) -> None:
    """Want a model that somebody dropped on the page; it is kept beside the project's own."""
    if not choices.renew_claim(opened):
        return
    forget()
    shutil.rmtree(opened.folder / INCOMING, ignore_errors=True)
    safe = opened.keep_upload(name, content, folder=INCOMING)
    ask(Wanted("file", safe, str(opened.folder / INCOMING / safe), {}))


def ask_size(opened: Project, name: str, size: int | str) -> None:
    """Want the open model with another size where its file leaves one open."""
    settings, before = opened.settings, current()
    dims = before.dims if before is not None and before.is_open_in(opened) else settings.dims
    source = opened.source
    ask(Wanted(settings.model_kind, settings.model, source, {**dims, name: size}))


def current() -> Wanted | None:
    found = choices.kept("wanted", {})
    return Wanted(**found) if found else None


def forget() -> None:
    """Want nothing any more; what is being read is read to its end for nobody."""
    wish = current()
    if wish is None:
        return
    model_reader.forget(wish.key)
    choices.keep("wanted", {})
    if wish.is_upload:
        with suppress(OSError):
            Path(wish.source).unlink()


def take_over(opened: Project, wish: Wanted) -> None:
    """Open the model in its project; a ValueError says why it cannot be opened."""
    model = cache.model(wish.source, wish.key[1])
    if not choices.renew_claim(opened):
        forget()
        return
    if wish.is_open_in(opened):
        choices.keep("wanted", {})
        opened.change(dims=wish.dims)
    else:
        choices.put("path", "")
        home = _home(opened, wish, model)
        choices.keep("wanted", {})
        if wish.is_upload:
            _move_in(home, wish, model)
        model_project.enter(home, wish.kind, wish.model)
    # In the project that is open from now on.
    if wish.placement:
        choices.keep(PLACEMENT, wish.placement)


def take_placement() -> str:
    """The path of the placement that was asked for with the model, once; empty for none."""
    path = str(choices.kept(PLACEMENT, ""))
    if path:
        choices.keep(PLACEMENT, "")
    return path


def _home(opened: Project, wish: Wanted, model: Model) -> Project:
    """The project to open a model in; an upload's holds the very file, or one of the same graph."""
    if not wish.is_upload:
        return model_project.home_of(wish.kind, wish.model)
    same = opened.id if _same_graph(opened, model) else ""
    return model_project.home_of("file", wish.model, lambda p: p.id == same or _has(p, wish))


def _has(project: Project, wish: Wanted) -> bool:
    """Whether a project holds this very file."""
    path = project.folder / "model" / wish.model
    with suppress(FileNotFoundError):
        return filecmp.cmp(path, wish.source, shallow=False)
    return False


def _same_graph(opened: Project, model: Model) -> bool:
    """Whether what was made for the open model fits another one, say with other weights.

    Both are read with the sizes that they have by themselves. Where the file is gone, what was made
    for it says which graph it had.
    """
    try:
        return cache.model(opened.source, ()).graph.fingerprint == model.graph.fingerprint
    except ValueError:
        return is_about(opened.folder, model.graph)


def _move_in(home: Project, wish: Wanted, model: Model) -> None:
    """Put an upload in its place, and say so, that it need not be read again there."""
    path = home.folder / "model" / wish.model
    if not Path(wish.source).exists() and path.is_file():
        # A run of the page that this one overtook has moved it.
        return
    if _has(home, wish):
        Path(wish.source).unlink(missing_ok=True)
        return
    with output.refusals(path):
        path.parent.mkdir(exist_ok=True)
        os.replace(wish.source, path)
    executable: Any = model.executable
    if hasattr(executable, "path"):
        executable = replace(executable, path=path)
    key = cache.model_key(str(path), ())
    model_reader.hand_over(key, replace(model, executable=executable))
