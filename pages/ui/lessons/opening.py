"""The way into a lesson: its file in a new project, or the project in which it was begun."""

from pathlib import Path

from pages.ui.session import choices, saving
from placement.api import lessons
from placement.files.input import regular_file
from placement.lessons.reading import MOST_BYTES
from studio import lesson as begun
from studio.project.store import Project


def begin(path: Path) -> Project | None:
    """A new project for the lesson in a file; None, and why on the page, where there is none."""
    try:
        if regular_file(path).stat().st_size > MOST_BYTES:
            raise ValueError(f"{path.name[:200]!r} is too large for a lesson; shorten it.")
        content = path.read_bytes()
    except (ValueError, OSError) as error:
        choices.say("error", str(error))
        return None
    return open_content(content, path.name, path.parent)


def open_content(content: bytes, name: str, folder: Path) -> Project | None:
    """The same for a lesson's text; what it names may lie in the folder."""
    made = list[Project]()
    with saving.change("The lesson was not opened."):
        try:
            made.append(begun.begin(content, name, folder))
        except ValueError as error:
            choices.say("error", str(error))
    for project in made:
        choices.show_project(project)
    return made[0] if made else None


def go_on(name: str) -> Project | None:
    """The project of a lesson that is here, by its name: where it was begun, else a new one."""
    home = begun.homes().get(lessons.lesson(name).hash)
    if home is None:
        return begin(lessons.path_of(name))
    choices.show_project(home)
    return home
