"""The project of this browser session as a `Studio`: with the cache of all sessions, and the right
to write that this one has."""

from contextlib import AbstractContextManager

from pages.ui.session import cache, choices, saving
from studio.project.store import Project
from studio.snapshot import Studio


class _Session:
    def may_write(self) -> bool:
        return choices.may_write()

    def unwritable(self) -> str:
        return choices.unwritable()

    def change(self, lost: str) -> AbstractContextManager[None]:
        return saving.change(lost)

    def say(self, kind: str, text: str) -> None:
        choices.say(kind, text)

    def show_run(self, job_id: str) -> None:
        choices.show_run(job_id)


def studio() -> Studio:
    """The project that this session has open."""
    return snapshot(choices.project())


def snapshot(project: Project) -> Studio:
    """A project at this moment."""
    return Studio(project, project.settings, cache, _Session())
