"""What a learner begins from, and where it writes what it has learned: the files of a project.

Settings that name policies are no text fields here, for a visitor of a page has no paths there:
what is read is chosen among the files of the project, to which one may add a file, and what is
written gets the method's name.
"""

from collections.abc import Mapping
from functools import partial
from itertools import chain, count
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.session import choices, saving
from pages.ui.shell import glossary
from placement.files import output
from placement.learning.checkpoint import BUNDLED, SUFFIX, learner_of
from placement.placers import names as placer_names
from studio.jobs.methods import Method, Value
from studio.snapshot import Studio

FOLDER = "policies"
WORDS = {"": "nothing learned yet", BUNDLED: "the policy that comes with the studio"}
ADD_HELP = (
    "What a method has learned is a policy: the numbers of its network, in a safetensors file. A"
    " policy of the same method, from this or another model, is a better start than none."
)
KEEP_HELP = (
    "Writes what the method has learned in its search to a file of this project, in the place of"
    " the one before; what measured steps add is not in it. The next time the method can begin from"
    " it, on another model too."
)


def show(now: Studio, method: Method, *, disabled: bool) -> None:
    """The fields of a method's settings that name policies."""
    read, written = names(method)
    if read:
        _begin_from(now, method, read, disabled)
    if written:
        st.toggle(
            "Keep what it learns",
            key=_key(method, written),
            help=f"{KEEP_HELP} The file is {_file_of(now, method).name}.",
            disabled=disabled,
        )


def names(method: Method) -> tuple[str, str]:
    """The settings of a policy that is read and of one that is written, empty where none is."""
    found = {about.policy: name for name, about in method.settings.items() if about.policy}
    return found.get("read", ""), found.get("written", "")


def typed(now: Studio, method: Method) -> Mapping[str, Value]:
    """What differs from the defaults in the fields now."""
    (read, written), asked = names(method), dict[str, Value]()
    if read:
        before, default = _chosen(now, method, read), method.settings[read].default
        policy = choices.typed(_key(method, f"{read}-{before}"), before)
        if policy != default and policy in _options(now, method):
            asked[read] = policy if policy in WORDS else str(_folder(now) / policy)
    if written and choices.typed(_key(method, written), False):
        asked[written] = str(_file_of(now, method))
    return asked


def make_room(now: Studio) -> None:
    """Make the folder that methods write what they learned to."""
    with output.refusals(_folder(now)):
        _folder(now).mkdir(exist_ok=True)


def _begin_from(now: Studio, method: Method, name: str, disabled: bool) -> None:
    options, chosen = _options(now, method), _chosen(now, method, name)
    # The key follows the choice, so that the menu shows what an upload sets.
    key = _key(method, f"{name}-{chosen}")
    st.selectbox(
        "Begin from",
        options,
        index=options.index(chosen),
        key=key,
        on_change=choices.remember(_remembered_as(method), key),
        format_func=lambda policy: WORDS.get(policy) or policy,
        help=ADD_HELP,
        disabled=disabled,
    )
    uploader = choices.own(f"policy-{method.name}")
    given = st.file_uploader(
        f"Add a policy ({SUFFIX})", type=[SUFFIX], key=uploader, disabled=disabled
    )
    saving.upload(given, uploader, partial(_take_over, now, method))
    if chosen not in WORDS:
        file = _folder(now) / chosen
        st.download_button("Download it", file.read_bytes, file_name=file.name, key="policy-file")


def _options(now: Studio, method: Method) -> list[str]:
    """The words for policies, and names of files of the project that are for the method."""
    files = sorted(_folder(now).glob(f"*{SUFFIX}"))
    return [*WORDS, *(file.name for file in files if learner_of(file) == method.name)]


def _chosen(now: Studio, method: Method, name: str) -> str:
    """What was chosen last, while it is there."""
    default = str(method.settings[name].default)
    found = str(choices.remembered(_remembered_as(method), default))
    return found if found in _options(now, method) else default


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
        name = now.project.keep_upload(_free(now, upload.name), upload.getvalue(), folder=FOLDER)
        choices.store(_remembered_as(method), name)


def _free(now: Studio, name: str) -> str:
    """A name for a file that was given: no other's, and none that a method writes to."""
    stem = Path(name).stem.strip(".") or "policy"
    taken = {file.stem.lower() for file in _folder(now).glob("*")} | set(placer_names())
    numbered = (f"{stem}-{number}" for number in count(2))
    return next(free for free in chain([stem], numbered) if free.lower() not in taken) + SUFFIX


def _folder(now: Studio) -> Path:
    return now.project.folder / FOLDER


def _file_of(now: Studio, method: Method) -> Path:
    return _folder(now) / f"{method.name}{SUFFIX}"


def _remembered_as(method: Method) -> str:
    return f"policy-{method.name}"


def _key(method: Method, setting: str) -> str:
    return choices.own(f"set-{method.name}-{setting}")
