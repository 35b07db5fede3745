"""Open a model: a bundled sample, an uploaded file, or a file on this computer by its path."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from pages.ui import cached, choices, commands, kinds, loading, phases, switching, units, words
from pages.ui.projects import Project
from pages.ui.studio import Studio
from placement import loaders
from placement.core.graph import Tensor
from placement.core.model import Model
from placement.loaders import SymbolicDim

NOTHING = "Choose…"


def show(now: Studio) -> None:
    """The three ways in; whatever fails says why and leaves the open model where it is."""
    locked = not choices.may_write()
    st.subheader("Open a model")
    names = [NOTHING, *(s["name"] for s in cached.samples())]
    key, drawn = _sample_menu(now.project)
    st.selectbox(
        "Sample",
        names,
        index=names.index(drawn),
        key=key,
        on_change=_open_sample,
        args=(key, drawn),
        disabled=locked,
        help="Networks that come with the onnx package or are built in code, with seeded random"
        " weights; a name with :training is one training step.",
    )
    # A list of endings that fits (assets/studio.css hides the longer one): the others are those
    # of pickles, which may be dropped here to be told why they are refused.
    with st.container(key="model-file"):
        upload = st.file_uploader(
            "File (.onnx, .pt2, .json)",
            type=[s.removeprefix(".") for s in suffixes()],
            key="upload",
            disabled=locked,
            help="Drop it here. It is copied into the project, read, never executed; up to 1 GB.",
        )
    if upload is not None and not choices.upload_seen("model", upload.file_id):
        _open_upload(now, upload)
    st.text_input(
        "Path on this computer",
        key="path",
        on_change=_open_path,
        disabled=locked,
        placeholder="/home/me/model.onnx",
        help="For large models, and those with weights in files beside them.",
    )


def _sample_menu(opened: Project) -> tuple[str, str]:
    """Key of the menu of samples, and what it shows."""
    settings = opened.settings
    known = settings.model_kind == "sample" and settings.model in {
        s["name"] for s in cached.samples()
    }
    return f"sample-{opened.id}-{settings.model}", settings.model if known else NOTHING


def show_sample_again(opened: Project) -> None:
    """Set the menu of samples to the model that is open; from a callback only."""
    choices.put(*_sample_menu(opened))


def suffixes() -> list[str]:
    return sorted({suffix for loader in loaders.loaders() for suffix in loader.suffixes})


def dimension_fields(now: Studio) -> None:
    """A field for each dimension that the file leaves open, with the size that stands for it."""
    dims = symbolic_dims(now)
    if not dims:
        return
    with st.popover(f"Open dimensions ({len(dims)})", width="stretch"):
        st.caption("The file leaves these sizes open; the ones here are used.")
        for dim in dims:
            key = f"dim-{now.model.graph.fingerprint}-{dim.name}"
            drawn = int(now.settings.dims.get(dim.name, dim.size))
            st.number_input(
                words.plain(dim.name),
                min_value=1,
                max_value=2**31 - 1,
                value=drawn,
                key=key,
                help=words.plain(f"{dim.where}; {dim.size} where nothing else is said"),
                on_change=_set_dim,
                args=(dim.name, key, drawn),
                disabled=not choices.may_write(),
            )


def symbolic_dims(now: Studio) -> tuple[SymbolicDim, ...]:
    """The sizes that the model's file leaves open, where its format knows such."""
    return getattr(now.model.executable, "symbolic_dims", ())


def _open_sample(key: str, drawn: str) -> None:
    name = choices.changed(key, drawn)
    if name not in (None, NOTHING):
        choices.clear("path")
        _switch("sample", str(name))


def _switch(kind: str, model: str) -> None:
    switching.enter(switching.home_of(kind, model), kind, model)


def _open_path() -> None:
    path = str(choices.typed("path", "")).strip().strip("'\"")
    if not path:
        return
    full = str(Path(path).expanduser().absolute())
    if any(s["name"] == path for s in cached.samples()):
        _switch("sample", path)
        choices.clear("path")
    elif _opens(full, {}):
        _switch("path", full)
        choices.clear("path")


def _open_upload(now: Studio, upload: Any) -> None:
    """Check the file in a folder of its own first, so that a bad one replaces nothing."""
    content = upload.getvalue()
    name = now.project.keep_upload(upload.name, content, folder="incoming")
    incoming = now.project.folder / "incoming" / name
    if _opens(str(incoming), {}):
        model = cached.model(str(incoming), ())
        same = now.project.id if _same_graph(now, model) else ""
        home = switching.home_of("file", name, lambda p: p.id == same or _has(p, name, content))
        if not _has(home, name, content):
            home.keep_upload(upload.name, content)
        _moved(model, home.folder / "model" / name)
        switching.enter(home, "file", name)
    incoming.unlink(missing_ok=True)
    st.rerun()


def _has(project: Project, name: str, content: bytes) -> bool:
    """Whether a project holds this very file."""
    path = project.folder / "model" / name
    is_as_long = path.is_file() and path.stat().st_size == len(content)
    return is_as_long and path.read_bytes() == content


def _same_graph(now: Studio, model: Model) -> bool:
    """Whether what was made for the open model fits another one, say with other weights."""
    try:
        return now.model.graph.fingerprint == model.graph.fingerprint
    except ValueError:
        return False


def _moved(opened: Model, path: Path) -> None:
    """Say that a model is at another path now, so that it need not be read again there."""
    executable: Any = opened.executable
    if hasattr(executable, "path"):
        executable = replace(executable, path=path)
    key = cached.model_key(str(path), ())
    loading.hand_over(key, replace(opened, executable=executable))


def _set_dim(name: str, key: str, drawn: int) -> None:
    project, size = choices.project(), choices.changed(key, drawn)
    dims = {**project.settings.dims, name: size}
    if size is not None and choices.may_write() and _opens(project.source, dims):
        project.change(dims=dims)


def _opens(source: str, dims: Mapping[str, int]) -> bool:
    try:
        cached.model(source, tuple(sorted(dims.items())))
    except ValueError as error:
        choices.say("error", str(error))
        return False
    return True


def summary(now: Studio) -> None:
    """The model in numbers, in one row."""
    graph = now.model.graph
    cells = st.columns([0.1, 0.15, 0.19, 0.32, 0.24], vertical_alignment="center")
    cells[0].metric("Ops", f"{len(graph.ops):,}", help="Operators, as the model file lists them.")
    cells[1].metric("Weights", units.num_bytes(graph.param_bytes))
    if graph.flops:
        cells[2].metric(
            "Arithmetic",
            units.flops(graph.flops),
            help="Per step; a multiplication and an addition count as two.",
        )
    with cells[3]:
        for word, tensors in (("In", graph.inputs), ("Out", graph.outputs)):
            if tensors:
                _ends(word, tensors)
        if now.model.problem is not None:
            st.caption("This file has a graph with its times, and nothing to execute.")
    with cells[4]:
        dimension_fields(now)
        kinds.show(graph, now.model.notes)
    phases.show(graph)


def _ends(word: str, tensors: tuple[Tensor, ...]) -> None:
    shown = [f"{t.name} {list(t.shape) if t.shape is not None else '?'}" for t in tensors[:2]]
    more = f" and {len(tensors) - 2} more" if len(tensors) > 2 else ""
    st.caption(words.plain(f"{word}: {', '.join(shown)}{more}", 120))


@st.fragment
def command_line() -> None:
    """What opens the model in a terminal, drawn once somebody looks: the browser fetches more for a
    line of code than for the rest of the page."""
    box = st.expander("The same on the command line", key="inspect-open", on_change="rerun")
    if box.open:
        with box:
            line = commands.text(commands.inspect(choices.project()))
            st.code(line, language="bash", wrap_lines=True)
