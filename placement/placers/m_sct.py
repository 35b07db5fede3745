"""m-SCT: small communication times, within memory.

Hanen and Munier, "An approximation algorithm for scheduling dependent tasks on m processors with
small communication delays", 1995; memory as in Jeon et al., "Baechi: fast device placement of
machine learning graphs", SoCC 2020. A linear program for unlimited devices says for each kernel
which reader, its favourite child, should follow it without communication. Scheduling is then m-ETF,
but a device keeps itself free for the favourite child of its last kernel until the child's input
could be elsewhere; only an urgent kernel, whose data are everywhere, may come before. Above
`max_lp_edges` favourite children are chosen greedily instead, the longest communication first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import Children, earliest_start, mean_costs
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.search.feasible import SCALES
from placement.simulator.flat import Flat, flatten
from placement.splits.exact.program import silent_solver

# Of each kernel's edges all but one are 1 in the program: below this one the child is favourite.
FAVOURITE_BELOW = 0.5 - 1e-6


@dataclass(frozen=True, kw_only=True)
class MSct(Placer):
    summary = "Earliest task first that keeps favourite readers close, by a linear program (Baechi)"
    paper = "Hanen, Munier: Small communication delays, 1995; Jeon et al.: Baechi, SoCC 2020"
    needs = ("highspy",)
    quick_up_to = 2_000
    tells_up_to = 300
    pseudo_code = (
        "favourites: which reader should follow each op without sending, by a linear program",
        "level of an op = the longest way of mean times from its start to the end, nothing sent",
        "for each ready op and device with room: when could it start? A device stays free for the"
        " favourite reader of its last op until another device could have the input",
        "put the op that can start first there; of several the one with the highest level",
        "cut the plan into calls and predict the step",
    )

    max_lp_edges: int = setting(
        20_000, "Edges up to which a linear program chooses favourite children, else a greedy rule"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return earliest_start(problem, report, self._children(problem))

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._lists.start_steps import start_steps

        return start_steps(problem, SCALES, most, self._children(problem))

    def _children(self, problem: Problem) -> Children:
        flat = flatten(problem)
        edges = edges_of(flat)
        by_program = edges.src.size <= self.max_lp_edges
        chosen = favourites_by_program(flat, edges) if by_program else longest_first(flat, edges)
        return children_of(flat, edges, chosen)


class Edges(NamedTuple):
    """Pairs of kernels (E,) of which the second reads from the first, with mean seconds to send."""

    src: Ints
    dst: Ints
    move_s: Floats


def edges_of(flat: Flat) -> Edges:
    """Every pair once, with its longest tensor, by first kernel and then second."""
    tensor = np.repeat(np.arange(flat.producer.size), np.diff(flat.consumer_ptr))
    tensor, dst = tensor[flat.producer[tensor] >= 0], flat.consumers[flat.producer[tensor] >= 0]
    src, move_s = flat.producer[tensor], mean_costs(flat).move_s[tensor]
    order = np.lexsort((-move_s, dst, src))
    src, dst, move_s = src[order], dst[order], move_s[order]
    first = np.ones(src.size, dtype=np.bool_)
    first[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
    return Edges(src[first], dst[first], move_s[first])


def children_of(flat: Flat, edges: Edges, chosen: Ints) -> Children:
    """Favourite children by kernel, from the indices of the chosen edges."""
    num_kernels = flat.compute_s.shape[0]
    child, move_s = np.full(num_kernels, -1, dtype=np.int64), np.zeros(num_kernels)
    child[edges.src[chosen]] = edges.dst[chosen]
    move_s[edges.src[chosen]] = edges.move_s[chosen]
    return Children(child, move_s)


def longest_first(flat: Flat, edges: Edges) -> Ints:
    """Edges by falling communication while neither end has a favourite yet."""
    num_kernels = flat.compute_s.shape[0]
    has_child, has_parent = [False] * num_kernels, [False] * num_kernels
    chosen = []
    src, dst = edges.src.tolist(), edges.dst.tolist()
    for e in np.argsort(-edges.move_s, kind="stable").tolist():
        if not has_child[src[e]] and not has_parent[dst[e]]:
            has_child[src[e]] = has_parent[dst[e]] = True
            chosen.append(e)
    return np.array(chosen, dtype=np.int64)


def favourites_by_program(flat: Flat, edges: Edges) -> Ints:
    """Edges that the linear program of Hanen and Munier makes (almost) free of communication.

    Variables: x(e) in [0, 1], 0 for a favourite child; the starts s; the end w, minimised. For each
    edge s(i) + w(i) + c(e) x(e) <= s(j); of the edges out of a kernel, and of those into it, all x
    but one must sum to the rest. So at most one of them is below a half.
    """
    import highspy

    if edges.src.size == 0:
        return np.zeros(0, dtype=np.int64)
    compute_s = mean_costs(flat).compute_s
    num_kernels, num_edges = compute_s.size, edges.src.size
    # In units of the longest time, so that the solver's tolerances fit.
    longest_s = max(float(compute_s.max()), float(edges.move_s.max())) or 1.0
    end, e = num_edges + num_kernels, np.arange(num_edges)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = end + 1, num_edges + 3 * num_kernels
    lp.col_cost_ = np.concatenate([np.zeros(end), [1.0]])
    lp.col_lower_ = np.zeros(end + 1)
    lp.col_upper_ = np.concatenate([np.ones(num_edges), np.full(num_kernels + 1, np.inf)])
    out_degree = np.bincount(edges.src, minlength=num_kernels)
    in_degree = np.bincount(edges.dst, minlength=num_kernels)
    before = compute_s[edges.src] / longest_s
    bounds = [before, compute_s / longest_s, out_degree - 1.0, in_degree - 1.0]
    lp.row_lower_ = np.concatenate(bounds)
    lp.row_upper_ = np.full(lp.num_row_, np.inf)
    kernels, ones = np.arange(num_kernels), np.ones(num_edges)
    rows = [e, e, e, num_edges + kernels, num_edges + kernels]
    columns = [num_edges + edges.dst, num_edges + edges.src, e, np.full(num_kernels, end)]
    columns.append(num_edges + kernels)
    values = [ones, -ones, -edges.move_s / longest_s, np.ones(num_kernels), -np.ones(num_kernels)]
    for place, kernel in ((1, edges.src), (2, edges.dst)):
        rows.append(num_edges + place * num_kernels + kernel)
        columns.append(e)
        values.append(ones)
    _fill_matrix(lp, np.concatenate(rows), np.concatenate(columns), np.concatenate(values))
    solver = silent_solver()
    solver.passModel(lp)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    x = np.array(solver.getSolution().col_value[:num_edges])
    return np.flatnonzero(x < FAVOURITE_BELOW)


def _fill_matrix(lp: Any, rows: Ints, columns: Ints, values: Floats) -> None:
    """Enter a sparse matrix by columns."""
    order = np.lexsort((rows, columns))
    counts = np.bincount(columns, minlength=lp.num_col_)
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lp.a_matrix_.index_ = rows[order].astype(np.int32)
    lp.a_matrix_.value_ = values[order]


PLACER = MSct
