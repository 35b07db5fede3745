"""How many ops of each kind a model has, and what is to know about its file."""

from collections.abc import Sequence

import streamlit as st

from placement.core import formatting as units
from placement.core.graph import Graph


@st.fragment
def show(graph: Graph, notes: Sequence[str]) -> None:
    """Kinds of ops and notes about the file, drawn once somebody looks."""
    box = st.popover("Kinds of ops", width="stretch", key="kinds-open", on_change="rerun")
    if box.open:
        with box:
            _table(graph)
            for note in notes:
                st.text(note)


def _table(graph: Graph) -> None:
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
                "Share of arithmetic": units.percent(row[1] / total),
                "Weights": units.num_bytes(row[2]),
            }
            for kind, row in sorted(rows.items(), key=lambda r: (-r[1][1], -r[1][0], r[0]))
        ],
        hide_index=True,
        width=520,
    )
