"""What a learner begins from, and where it writes what it has learned: the files of a project.

Settings that name files are no text fields here, for a page knows no paths of its visitor: what is
read is chosen among the files of the project, to which one may add a file, and what is written gets
the method's name there.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.session import choices, saving
from pages.ui.shell import glossary
from placement.files import output
from placement.learning.checkpoint import BUNDLED, SUFFIX, learner_of
from studio.jobs.methods import Method, Value
from studio.snapshot import Studio

FOLDER = "policies"
WORDS = {"": "nothing learned yet", BUNDLED: "the policy that comes with the studio"}
ADD_HELP = (
    "What a method has learned is a policy: the numbers of its network, in a safetensors file. A"
    " policy of the same method, from this or another model, is a better start than none."
)
KEEP_HELP = (
    "Writes what the method has learned in the end to a file of this project, in the place of the"
    " one before. The next time the method can begin from it, on another model too."
)


def show(now: Studio, method: Method, *, disabled: bool) -> None:
    """The fields of a method's settings that name files."""
    read, written = names(method)
    if read:
        _begin_from(now, method, read, disabled)
    if written:
        kept = f"{_file_of(now, method).name} of this project"
        st.toggle(
            "Keep what it learns",
            key=_key(method, written),
            help=f"{KEEP_HELP} The file is {kept}.",
            disabled=disabled,
        )


def names(method: Method) -> tuple[str, str]:
    """The settings of a file that is read and of one that is written, empty where there is none."""
    found = {about.file: name for name, about in method.settings.items() if about.file}
    return found.get("read", ""), found.get("written", "")


def typed(now: Studio, method: Method) -> Mapping[str, Value]:
    """What differs from the defaults in the fields now."""
    (read, written), asked = names(method), dict[str, Value]()
    if read:
        kept, default = _chosen(method, read), method.settings[read].default
        policy = choices.typed(_key(method, f"{read}-{kept}"), kept)
        if policy != default and policy in _options(now, method):
            asked[read] = policy
    if written and choices.typed(_key(method, written), False):
        asked[written] = str(_file_of(now, method))
    return asked


def make_room(now: Studio, method: Method, settings: Mapping[str, Value]) -> None:
    """Make the folder that a method is going to write to."""
    if settings.get(names(method)[1]):
        with output.refusals(now.project.folder / FOLDER):
            (now.project.folder / FOLDER).mkdir(exist_ok=True)


def _begin_from(now: Studio, method: Method, name: str, disabled: bool) -> None:
    options, chosen = _options(now, method), _chosen(method, name)
    # The key follows the choice, so that the menu shows what an upload sets.
    key = _key(method, f"{name}-{chosen}")
    st.selectbox(
        "Begin from",
        options,
        index=options.index(chosen) if chosen in options else 0,
        key=key,
        on_change=choices.remember(_kept_as(method), key),
        format_func=lambda path: WORDS.get(path) or Path(path).name,
        help=ADD_HELP,
        disabled=disabled,
    )
    given = st.file_uploader(
        f"Add a policy ({SUFFIX})", type=[SUFFIX], key="policy-upload", disabled=disabled
    )
    saving.upload(given, "policy", partial(_take_over, now, method))
    if chosen not in WORDS and chosen in options:
        file = Path(chosen)
        st.download_button("Download it", file.read_bytes, file_name=file.name, key="policy-file")


def _options(now: Studio, method: Method) -> list[str]:
    files = sorted((now.project.folder / FOLDER).glob(f"*{SUFFIX}"))
    return [*WORDS, *(str(file) for file in files if learner_of(file) == method.name)]


def _chosen(method: Method, name: str) -> str:
    return str(choices.remembered(_kept_as(method), method.settings[name].default))


def _take_over(now: Studio, method: Method, upload: UploadedFile) -> None:
    with saving.change(f"{upload.name} was not taken over."):
        incoming = now.project.keep_upload(upload.name, upload.getvalue(), folder="incoming")
        learner = learner_of(now.project.folder / "incoming" / incoming)
        if learner != method.name:
            said = f"is a policy of {learner}" if learner else "is no policy that was saved here"
            choices.say(
                "error",
                f"{glossary.plain(upload.name)} {glossary.plain(said)}; add one of {method.name}.",
            )
            return
        name = now.project.keep_upload(upload.name, upload.getvalue(), folder=FOLDER)
        choices.store(_kept_as(method), str(now.project.folder / FOLDER / name))


def _file_of(now: Studio, method: Method) -> Path:
    return now.project.folder / FOLDER / f"{method.name}{SUFFIX}"


def _kept_as(method: Method) -> str:
    return f"policy-{method.name}"


def _key(method: Method, setting: str) -> str:
    return choices.own(f"set-{method.name}-{setting}")
