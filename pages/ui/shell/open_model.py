"""Open a model: a bundled sample, an uploaded file or one by its path; and what it consists of."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.ui.panels import training_phases
from pages.ui.session import choices, saving
from pages.ui.shell import glossary, model_request
from placement import loaders
from placement.core import formatting
from placement.core.graph import Graph, Tensor
from placement.core.model import SymbolicDim
from studio.jobs import command_line as commands
from studio.project.store import Project
from studio.snapshot import Studio

NOTHING = "Choose…"
# Fields of sizes are new ones after a size that could not be had.
ROUND = "sizes-round"


def show(now: Studio) -> None:
    """The three ways in; whatever fails says why and leaves the open model where it is."""
    locked = not choices.may_write()
    st.subheader("Open a model")
    names = [NOTHING, *(sample.name for sample in loaders.samples())]
    weightless = {s.name for s in loaders.samples() if not s.has_weights}
    key, drawn = _sample_menu(now.project)
    choices.preset(key, drawn)
    st.selectbox(
        "Sample",
        names,
        key=key,
        on_change=_open_sample,
        args=(key, drawn),
        disabled=locked,
        help="Networks that come with the onnx package or are built in code, with seeded random"
        " weights; a name with :training is one training step. Configurations of well-known models"
        " have no weights and are predicted only.",
        format_func=lambda name: f"{name} (no weights)" if name in weightless else name,
    )
    # A list of endings that fits (assets/studio.css hides the longer one): the others are those
    # of pickles, which may be dropped here to be told why they are refused.
    read = ", ".join(loader.summary for loader in loaders.loaders())
    with st.container(key="model-file"):
        upload = st.file_uploader(
            f"File ({', '.join(loaders.readable_suffixes())})",
            type=[s.removeprefix(".") for s in sorted(loaders.suffixes())],
            key=f"upload-{now.project.id}",
            disabled=locked,
            help=f"Drop it here: {glossary.plain(read)}. It is copied into the project, read,"
            " never executed; up to 1 GB.",
        )
    if upload is not None and not choices.upload_seen("model", upload.file_id):
        with saving.change(f"{upload.name} was not opened."):
            model_request.ask_upload(now.project, upload.name, upload.getvalue())
        st.rerun()
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
    known = settings.model_kind == "sample" and loaders.is_sample(settings.model)
    return f"sample-{opened.id}-{settings.model}", settings.model if known else NOTHING


def show_again(opened: Project) -> None:
    """Set the menu of samples and the sizes to the model that is open; before they are drawn."""
    choices.put(*_sample_menu(opened))
    choices.keep(ROUND, choices.kept(ROUND, 0) + 1)


def dimension_fields(now: Studio) -> None:
    """A field for each dimension that the file leaves open, with the size that stands for it."""
    dims = symbolic_dims(now)
    if not dims:
        return
    with st.popover(f"Open dimensions ({len(dims)})", width="stretch"):
        st.caption("The model leaves these sizes open; the ones here are used.")
        for dim in dims:
            number = choices.kept(ROUND, 0)
            key = f"dim-{now.model.graph.fingerprint}-{dim.name}-{number}"
            drawn = now.settings.dims.get(dim.name, dim.size)
            about: dict[str, Any] = {
                "label": glossary.plain(dim.name),
                "key": key,
                "help": glossary.plain(f"{dim.where}; {dim.size} where nothing else is said"),
                "on_change": _set_dim,
                "args": (dim.name, key, drawn),
                "disabled": not choices.may_write(),
            }
            if dim.words:
                st.selectbox(options=dim.words, index=dim.words.index(str(drawn)), **about)
            else:
                st.number_input(min_value=1, max_value=2**31 - 1, value=int(drawn), **about)


def symbolic_dims(now: Studio) -> tuple[SymbolicDim, ...]:
    """The sizes that the model's file leaves open, where its format knows such."""
    return getattr(now.model.executable, "symbolic_dims", ())


def _open_sample(key: str, drawn: str) -> None:
    name = choices.changed(key, drawn)
    if name is None:
        model_request.forget()
    elif name != NOTHING:
        model_request.ask(model_request.sample(str(name)))


def _open_path() -> None:
    path = str(choices.typed("path", "")).strip().strip("'\"")
    if not path:
        return
    wish = model_request.called(path)
    if wish.is_open_in(choices.project()):
        choices.put("path", "")
    else:
        model_request.ask(wish)


def _set_dim(name: str, key: str, drawn: int | str) -> None:
    size = choices.changed(key, drawn)
    if size is None:
        model_request.forget()
    else:
        model_request.ask_size(choices.project(), name, size)


def summary(now: Studio) -> None:
    """The model in numbers, in one row."""
    graph = now.model.graph
    cells = st.columns([0.1, 0.15, 0.19, 0.32, 0.24], vertical_alignment="center")
    cells[0].metric("Ops", f"{len(graph.ops):,}", help="Operators, as the model file lists them.")
    cells[1].metric("Weights", formatting.num_bytes(graph.param_bytes))
    if graph.state_bytes:
        said = f"and a cache of {formatting.num_bytes(graph.state_bytes)}"
        cells[1].caption(said, help=glossary.TOKENS)
    if graph.flops:
        cells[2].metric(
            "Arithmetic",
            formatting.flops(graph.flops),
            help="Per step; a multiplication and an addition count as two.",
        )
    with cells[3]:
        for word, tensors in (("In", graph.inputs), ("Out", graph.outputs)):
            if tensors:
                _ends(word, tensors)
        if now.model.problem is not None:
            st.caption("This file has a graph with its times, and nothing to execute.")
        if not now.model.has_weights:
            st.caption("No weights: predicted only", help=glossary.WEIGHTLESS)
    with cells[4]:
        dimension_fields(now)
        _op_kinds(graph, now.model.notes)
    training_phases.show(graph)


def _ends(word: str, tensors: tuple[Tensor, ...]) -> None:
    shown = [f"{t.name} {list(t.shape) if t.shape is not None else '?'}" for t in tensors[:2]]
    more = f" and {len(tensors) - 2} more" if len(tensors) > 2 else ""
    st.caption(glossary.plain(f"{word}: {', '.join(shown)}{more}", 120))


@st.fragment
def _op_kinds(graph: Graph, notes: Sequence[str]) -> None:
    """Kinds of ops and notes about the file, drawn once somebody looks."""
    box = st.popover("Kinds of ops", width="stretch", key="kinds-open", on_change="rerun")
    if box.open:
        with box:
            _kinds_table(graph)
            for note in notes:
                st.text(note)


def _kinds_table(graph: Graph) -> None:
    """How many ops of each kind there are and what they weigh."""
    rows: dict[str, list[float]] = {}
    for op in graph.ops:
        row = rows.setdefault(op.kind, [0, 0.0, 0])
        row[0] += 1
        row[1] += op.flops
        row[2] += op.param_bytes
    total = sum(r[1] for r in rows.values()) or 1.0
    st.dataframe(
        [
            {
                "Kind": kind,
                "Ops": int(row[0]),
                "Share of arithmetic": formatting.percent(row[1] / total),
                "Weights": formatting.num_bytes(row[2]),
            }
            for kind, row in sorted(rows.items(), key=lambda r: (-r[1][1], -r[1][0], r[0]))
        ],
        hide_index=True,
        width=520,
    )


@st.fragment
def command_line() -> None:
    """What opens the model in a terminal, drawn once somebody looks: the browser fetches more for a
    line of code than for the rest of the page."""
    box = st.expander("The same on the command line", key="inspect-open", on_change="rerun")
    if box.open:
        with box:
            line = commands.text(commands.inspect(choices.project()))
            st.code(line, language="bash", wrap_lines=True)
